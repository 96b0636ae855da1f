"""Every collective's closed form against the flow engine: on a star, and on networks whose links are its neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.house.table_proofs import of_chunks
from collectives import COLLECTIVES
from commsim.prediction.build import prepare
from commsim.prediction.plans.dense import Plan
from commsim.prediction.read import with_costs
from topologies.star import star

from .row import Row

MIB = 2**20
RANKS, QUICK_RANKS = (2, 3, 4, 8, 16), (5,)
SIZES, QUICK_SIZES = (64 * 1024, MIB, 16 * MIB, 256 * MIB), (MIB,)
LINKS = "bandwidth=100Gbps,latency=1us"
ELSEWHERE = (
    ("ring_all_reduce", f"ring:n_hosts=8,{LINKS}"),
    ("ring_all_gather", f"ring:n_hosts=8,{LINKS}"),
    ("ring_all_reduce", f"fully_connected:n_hosts=8,{LINKS}"),
    ("pairwise_all_to_all", f"fully_connected:n_hosts=8,{LINKS}"),
    ("halving_doubling_all_reduce", f"hypercube:dimension=4,{LINKS}"),
    ("recursive_doubling_all_gather", f"hypercube:dimension=4,{LINKS}"),
    ("torus_all_reduce:dims=4x4", f"torus:dims=4x4,{LINKS}"),
)


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset has every collective once."""
    for name in COLLECTIVES:
        if COLLECTIVES[name].metadata["cost"] is None:
            continue  # benchmarks.house.tables proves that these keep within their bounds
        for n_ranks in QUICK_RANKS if quick else RANKS:
            # a host more than ranks, which a server may take
            network = with_costs(star(n_ranks + 1), overhead=1.5e-6, gamma=2e-11)
            ready = prepare(of_chunks(name), network, n_ranks=n_ranks)
            yield from _compared(ready, "star", QUICK_SIZES if quick else SIZES)
    for name, spec in ELSEWHERE[:1] if quick else ELSEWHERE:
        yield from _compared(prepare(name, spec), spec.partition(":")[0], QUICK_SIZES if quick else SIZES)


def _compared(ready: Plan, network: str, sizes: tuple[int, ...]) -> Iterator[Row]:
    schedule = ready.schedule
    for size in sizes:
        if schedule.operation == "barrier" and size != sizes[0]:
            continue  # a barrier has no size
        form = ready.predict(size, engine="closed-form").time
        if not form:
            continue
        yield Row(
            id=f"closed_form/{schedule.name}/{network}/{schedule.n_ranks}/{size}",
            kind="closed_form",
            against="closed form",
            model=schedule.name,
            engine="flow",
            operation=schedule.operation,
            reference=form,
            ours=ready.predict(size).time,
            unit="s",
            source=f"the closed form that collectives.{schedule.name} states",
            ranks=schedule.n_ranks,
            network=network,
            size=float(size),
        )
