"""Jobs that share links, alone on one or in a cluster under Themis, beside what CASSINI measured."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.network import HOST, Network
from commsim.placement.cluster import Cluster
from commsim.placement.clusters.machines import machines_of
from commsim.placement.clusters.models import MODELS, Assumptions
from commsim.placement.clusters.placement_choices import Placing
from commsim.placement.clusters.simulate import simulate_cluster
from commsim.placement.clusters.traces import load_trace
from commsim.placement.starts.link_scores import score_link
from commsim.training.sharing.periodic import PeriodicJob
from commsim.training.sharing.shared_links import simulate_jobs
from topologies.leaf_spine import leaf_spine

from .published_placement import ASSUMED, LINK, SNAPSHOTS, periodic
from .row import Row

# Two jobs that met on a link got 22 of 25 Gb/s each: CASSINI, figure 2.
CONTENDED = 0.88
PLACED: tuple[Placing, Placing] = ("shuffled", "cassini")
Times = NDArray[np.float64]
VGG16_SENDS, VGG16_MB, VGG19_MB = 0.114, 528.0, 549.0
Measured = functools.partial(Row, kind="published", operation="shared link", network="one link of 50 Gb/s",
                             against="measured")  # fmt: skip
TOGETHER = "ours starts all jobs at the same time, the worst case: Themis's start times were not published"


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset simulates no cluster."""
    yield from two_equal_jobs()
    yield from ratios()
    if not quick:
        yield from cassini_cluster()


def two_equal_jobs() -> Iterator[Row]:
    """Figure 2: VGG19 sends as fast as VGG16 does, and computes as long, since only VGG16's profile was published."""
    rate = 8e-3 * VGG16_MB / VGG16_SENDS
    sends = 1e3 * VGG16_SENDS * VGG19_MB / VGG16_MB
    twins = [periodic(name, 141 + sends, (141, sends, rate)) for name in ("j1", "j2")]
    runs = [_shared(twins, shifts, 1000) for shifts in ((0.0, 0.0), (0.0, 0.120))]
    gain = np.divide(*(np.percentile(times[0], 90) for times, _ in runs))
    share = 8e-9 * twins[0].n_bytes / runs[0][1][0].mean()
    yield Measured(id="published/cassini/fig2/share", model="two VGG19 jobs", engine="shared links", ranks=4,
                   reference=22.0, ours=float(share), unit="Gb/s", source="CASSINI, figure 2: about 22 Gb/s each",
                   note="half of the line rate; the share lost to DCQCN and headers is not modelled")  # fmt: skip
    yield Measured(id="published/cassini/fig2/gain", model="two VGG19 jobs", engine="shared links", ranks=4,
                   reference=1.26, ours=float(gain), unit="times faster at the 90th percentile",
                   source="CASSINI, figure 2: same start, or the second 120 ms later",
                   note="assumed: VGG16's computation of 141 ms, and its 37 Gb/s")  # fmt: skip


def ratios() -> Iterator[Row]:
    """Table 2's communication times: started together over shifted as CASSINI says; and whether they rank alike."""
    pairs: list[tuple[float, float]] = []
    for number, (jobs, published, *_) in SNAPSHOTS.items():
        together, apart = (_shared(jobs, s, 200)[1] for s in (np.zeros(len(jobs)), score_link(jobs, LINK).shifts))
        for job, theirs, before, after in zip(jobs, published, together, apart, strict=True):
            ours = float(before[100:].mean() / after[100:].mean())
            pairs.append((theirs, ours))
            yield Measured(id=f"published/cassini/ratio/{number}/{job.name}", model="CASSINI, communication times",
                           engine="shared links", ranks=len(jobs), reference=theirs, ours=ours, unit="times shorter",
                           source=f"CASSINI, table 2, snapshot {number}: Themis over Themis with CASSINI",
                           note=f"{TOGETHER}; {ASSUMED}")  # fmt: skip
    both = [(np.sign(a[0] - b[0]), np.sign(a[1] - b[1])) for a, b in itertools.combinations(pairs, 2)]
    alike = np.mean([one == other for one, other in both])
    yield Measured(id="published/cassini/ratio/order", model="CASSINI, communication times", engine="shared links",
                   reference=100.0, ours=100 * float(alike), unit="% of pairs of jobs in the published order",
                   source="CASSINI, table 2", note=f"{TOGETHER}; {ASSUMED}")  # fmt: skip


def _shared(jobs: Sequence[PeriodicJob], shifts: ArrayLike, iterations: int) -> tuple[Times, Times]:
    """Return iteration and communication times of jobs that all send over one link."""
    link = Network("one link", ("from", "to"), [HOST, HOST], [0], [1], LINK, 0.0)
    run = simulate_jobs(link, jobs, [np.ones(1)] * len(jobs), shifts=shifts, iterations=iterations)
    return run.iteration_times, run.communication_times


def cassini_cluster() -> Iterator[Row]:
    """CASSINI's headline, on six racks of four hosts, 2:1 oversubscribed."""
    network = leaf_spine(6, 2, 4, bandwidth=LINK, oversubscription=2.0)
    seats = np.zeros(network.n_nodes, np.int64)
    seats[network.hosts] = 1
    assumed = Assumptions(restart=0.0, contended=CONTENDED)
    machines = machines_of(Cluster(network, seats), assumed)
    runs = [
        [
            simulate_cluster(machines, load_trace(f"cassini:jobs=100,load=0.9,seed={seed}", 24, MODELS), "themis",
                             placing=placing, assumed=assumed, seed=seed)
            for placing in PLACED
        ]
        for seed in range(3)
    ]  # fmt: skip
    for key, share, published in (("mean", None, 1.6), ("p99", 0.99, 1.8)):
        ours = np.mean([plain.iteration_time(share) / best.iteration_time(share) for plain, best in runs])
        yield Measured(id=f"published/cassini/cluster/{key}", model="CASSINI in a cluster", engine="cluster simulation",
                       ranks=24, network="leaf_spine", reference=published, ours=float(ours), unit="times faster",
                       source="CASSINI (NSDI 2024), figure 11: iterations under Themis over Themis with CASSINI",
                       note="Themis is taken to give any free GPUs, in any order; profiles and cabling were not"
                            " published")  # fmt: skip
