"""CPU seconds of one decision of ``commsim place``: one packed candidate, the default, and ten that are asked for.

    python -m benchmarks.speed.place_decisions [HOSTS,... [JOBS,...]]
    python -m benchmarks.speed.place_decisions kinds       # 1,008 hosts, 50 jobs, other kinds of clusters and jobs

Racks of 16 hosts with 8 GPUs and ports of 100 Gb/s, 2:1 oversubscribed over four spines; jobs of 1 to 7 hosts that send
80 Gb/s for a fifth to a half of their iterations. The time is that of one process, without compilation.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from commsim.placement.cluster import Cluster
from commsim.placement.place import place_jobs
from commsim.prediction.network_builder import NetworkBuilder
from commsim.training.sharing.periodic import GBPS, JobPhase, PeriodicJob
from topologies.leaf_spine import leaf_spine

PERIODS = (0.1, 0.12, 0.15, 0.2, 0.24, 0.3)
GPUS = 8
HOSTS = [GPUS * n for n in range(1, 8)]


def cluster_of(n_hosts: int) -> Cluster:
    """Return a cluster of so many hosts, rounded down to whole racks."""
    network = leaf_spine(n_hosts // 16, 4, 16, bandwidth=100 * GBPS, oversubscription=2)
    return Cluster(network, np.where(network.kind == 0, GPUS, 0))


def drawn_jobs(n: int, seed: int = 0, sizes: Sequence[int] = HOSTS, n_phases: int = 1) -> list[PeriodicJob]:
    """Return jobs of these numbers of GPUs, 1 to 7 hosts by default."""
    rng = np.random.default_rng(seed)
    jobs = []
    for i in range(n):
        period = float(rng.choice(PERIODS))
        busy = float(rng.uniform(0.2, 0.5)) * period / n_phases
        ends = [(k + 1) * period / n_phases for k in range(n_phases)]
        phases = tuple(JobPhase(end - busy, busy, 80 * GBPS) for end in ends)
        jobs.append(PeriodicJob(f"job{i}", int(sizes[int(rng.integers(len(sizes)))]), period, phases))
    return jobs


def kinds() -> dict[str, tuple[Cluster, list[PeriodicJob]]]:
    """Return clusters of 1,008 hosts and 50 jobs by what is particular about them."""
    usual, large = cluster_of(1008), [GPUS * n for n in range(5, 33)]
    busy = usual.busy.copy()
    busy[np.random.default_rng(5).permutation(1008)[:756]] = GPUS
    return {
        "1 to 256 GPUs": (usual, drawn_jobs(50, 1, [2**k for k in range(9)])),
        "jobs of 5 to 32 hosts": (usual, drawn_jobs(50, 8, large)),
        "the same in three phases": (usual, drawn_jobs(50, 8, large, 3)),
        "3 of 4 hosts busy": (Cluster(usual.network, usual.gpus, busy), drawn_jobs(50, 5)),
        "jobs of 1 or 2 hosts": (usual, drawn_jobs(50, 6, [GPUS, 2 * GPUS])),
        "racks of 4 to 40 hosts": (unequal_racks(), drawn_jobs(50, 7, [GPUS * n for n in range(2, 25)])),
    }


def unequal_racks() -> Cluster:
    """Return 1,008 hosts in racks of 4 to 40, each with four uplinks of 200 Gb/s."""
    rng, built, n = np.random.default_rng(3), NetworkBuilder().switch(*(f"s{k}" for k in range(4))), 0
    for rack in range(1008):
        size = min(int(rng.choice([4, 8, 16, 24, 40])), 1008 - n)
        if not size:
            break
        built = built.switch(f"l{rack}")
        for k in range(4):
            built = built.cable(f"l{rack}", f"s{k}", bandwidth="200Gbps", latency="500ns")
        for host in range(n, n + size):
            built = built.hosts(f"h{host}").cable(f"h{host}", f"l{rack}", bandwidth="100Gbps", latency="500ns")
        n += size
    network = built.build()
    return Cluster(network, np.where(network.kind == 0, GPUS, 0))


# What is asked for: one packed candidate, those by default, and ten, none of which is left out.
ASKED: dict[str, dict[str, Any]] = {"packed": {"n": 1, "generators": ("packed",)}, "default": {}, "ten": {"n": 10}}


def row(cluster: Cluster, jobs: list[PeriodicJob]) -> str:
    """Return the CPU seconds of each kind of decision, and the stretch of its first candidate."""
    seconds, stretch = [], []
    for asked in ASKED.values():
        start = time.process_time()
        found = place_jobs(cluster, jobs, **asked)
        seconds.append(f"{time.process_time() - start:9.3f}")
        stretch.append(f"{found.candidates[0].stretch:15.4f}")
    return "  ".join(seconds + stretch)


def main(words: list[str]) -> None:
    """Print a row for each number of hosts and jobs, or for each kind."""
    row(cluster_of(64), drawn_jobs(12))  # compiles
    print(f"load {os.getloadavg()[0]:.1f}")
    heads = [*(f"{name}(s)" for name in ASKED), *(f"stretch({name})" for name in ASKED)]
    print("", *heads, sep="  ")
    if words == ["kinds"]:
        for name, (cluster, drawn) in kinds().items():
            used = sum(job.n_gpus for job in drawn) / cluster.free.sum()
            print(f"{name:26} {used:4.0%}  {row(cluster, drawn)}", flush=True)
        return
    hosts, jobs = (
        [int(value) for value in (words[i] if len(words) > i else usual).split(",")]
        for i, usual in enumerate(("256,1008", "10,25,50"))
    )
    for n_hosts in hosts:
        cluster = cluster_of(n_hosts)
        for n_jobs in jobs:
            print(f"{n_hosts:5} hosts  {n_jobs:4} jobs  {row(cluster, drawn_jobs(n_jobs))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
