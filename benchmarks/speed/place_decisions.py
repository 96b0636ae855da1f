"""CPU seconds of one decision of ``commsim place``, by hosts and jobs: the default candidates, and one that is packed.

    python -m benchmarks.speed.place_decisions [HOSTS,... [JOBS,...]]

Racks of 16 hosts with 8 GPUs and ports of 100 Gb/s, 2:1 oversubscribed over four spines; jobs of 1 to 7 hosts that send
80 Gb/s for a fifth to a half of their iterations. The time is that of one process, without compilation.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from commsim.placement.cluster import Cluster
from commsim.placement.place import PlacementRanking, place_jobs
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from topologies.leaf_spine import leaf_spine

PERIODS = (0.1, 0.12, 0.15, 0.2, 0.24, 0.3)
GPUS = 8


def cluster_of(n_hosts: int) -> Cluster:
    """Return a cluster of so many hosts, rounded down to whole racks."""
    network = leaf_spine(n_hosts // 16, 4, 16, bandwidth=100 * GBPS, oversubscription=2)
    return Cluster(network, np.where(network.kind == 0, GPUS, 0))


def drawn_jobs(n: int, seed: int = 0) -> list[PeriodicJob]:
    """Return jobs of 1 to 7 hosts."""
    rng = np.random.default_rng(seed)
    jobs = []
    for i in range(n):
        period = float(rng.choice(PERIODS))
        busy = float(rng.uniform(0.2, 0.5)) * period
        phases = (JobPhase(period - busy, busy, 80 * GBPS),)
        jobs.append(PeriodicJob(f"job{i}", GPUS * int(rng.integers(1, 8)), period, phases))
    return jobs


def timed(cluster: Cluster, jobs: list[PeriodicJob], *, is_packed: bool) -> tuple[float, PlacementRanking]:
    """Return the CPU seconds of a decision, and the ranking."""
    start = time.process_time()
    found = place_jobs(cluster, jobs, n=1, generators=("packed",)) if is_packed else place_jobs(cluster, jobs)
    return time.process_time() - start, found


def main(words: list[str]) -> None:
    """Print a row for each number of hosts and jobs."""
    hosts, jobs = (
        [int(value) for value in (words[i] if len(words) > i else usual).split(",")]
        for i, usual in enumerate(("256,1008", "10,25,50"))
    )
    for is_packed in (True, False):  # compiles what has to be
        timed(cluster_of(64), drawn_jobs(12), is_packed=is_packed)
    print(
        f"load {os.getloadavg()[0]:.1f}",
        "hosts  jobs  packed(s)  default(s)  times  stretch(packed)  stretch(default)",
        sep="\n",
    )
    for n_hosts in hosts:
        cluster = cluster_of(n_hosts)
        for n_jobs in jobs:
            drawn = drawn_jobs(n_jobs)
            (one, packed), (all_of, usual) = (timed(cluster, drawn, is_packed=how) for how in (True, False))
            best = [found.candidates[0].stretch for found in (packed, usual)]
            times = f"{one:9.3f}  {all_of:10.3f}  {all_of / one:5.0f}"
            print(f"{n_hosts:5}  {n_jobs:4}  {times}  {best[0]:15.4f}  {best[1]:16.4f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
