"""Traffic of training on the flow engine against formulas: resharding, experts beside gradients, KungFu's graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from fractions import Fraction

from collectives.dense.all_to_all import pairwise_all_to_all
from collectives.dense.ring import ring_all_reduce
from commsim import predict
from commsim.core.checking.check import check
from commsim.core.placement import Placement
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.papers.systems.kungfu import kungfu_all_reduce
from commsim.training.parallel.layer_parallel import shared_slow_down
from commsim.training.parallel.resharding import STRATEGIES, resharding_schedule, resharding_time
from topologies.star import star

from .row import Row

Form = functools.partial(Row, kind="closed_form", against="closed form", engine="flow", network="star")
BANDWIDTH = 12.5e9


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset has one size of each."""
    yield from resharding((3,) if quick else (1, 2, 3, 4, 8, 16))
    yield from experts((4,) if quick else (4, 8, 16))
    yield from graphs_of_kungfu((8,) if quick else (4, 8, 16))


def resharding(receivers: tuple[int, ...]) -> Iterator[Row]:
    """Cross-mesh resharding on a star: A T, T + (A-1)/A T, and T (1 + (A-1)/K)."""
    size = 2.0**30
    for strategy in STRATEGIES:
        for a in receivers:
            network = star(a + 1, BANDWIDTH, 0.0)
            schedule = resharding_schedule(strategy, a, 32)
            check(schedule)
            ours = predict(
                schedule, network, size, placement=Placement(network.endpoints[: a + 1]), overhead="0us"
            ).time
            yield Form(id=f"closed_form/resharding/{strategy}/{a}", model=f"resharding, {strategy}", unit="s",
                       operation="broadcast", ranks=a + 1, size=size, ours=ours,
                       reference=resharding_time(strategy, size, BANDWIDTH, a, n_chunks=32),
                       source="commsim.training.parallel.resharding, after Zhuang et al. (MLSys 2023)")  # fmt: skip


def experts(ranks: tuple[int, ...]) -> Iterator[Row]:
    """Lina's bound: an all-to-all beside all-reduces that share every port with it fairly."""
    for n in ranks:
        network = star(n, BANDWIDTH, 0.0)
        seats, part = Placement(network.endpoints[:n]), (n - 1) / n / BANDWIDTH
        for reduced, k in ((3e8, 1), (4e9, 1), (4e9, 3)):
            jobs = [FlowJob(pairwise_all_to_all(n), seats), *(FlowJob(ring_all_reduce(n), seats) for _ in range(k))]
            ours = simulate_flows(plan_flows(network, jobs), [1e9] + [reduced] * k)[0].time / (1e9 * part)
            yield Form(id=f"closed_form/experts/{n}/{reduced:g}/{k}", model="all-to-all beside all-reduces",
                       operation="all_to_all", ranks=n, size=1e9, ours=ours,
                       reference=shared_slow_down(1e9 * part, [2 * reduced * part] * k), unit="times longer",
                       source="1 + sum of min(T_r, T_a)/T_a: at most 1 + k")  # fmt: skip


def graphs_of_kungfu(ranks: tuple[int, ...]) -> Iterator[Row]:
    """Bytes of the busiest port, once the graph is proved to be an all-reduce."""
    busiest: dict[str, Callable[[int], Fraction]] = {
        "star": lambda n: Fraction(n - 1), "clique": lambda n: Fraction(2 * (n - 1), n),
        "ring": lambda n: Fraction(2 * (n - 1), n), "binary_tree": lambda n: Fraction(3 if n > 4 else 2),
    }  # fmt: skip
    for n in ranks:
        network = star(n, BANDWIDTH, 0.0)
        for strategy, form in busiest.items():
            schedule = kungfu_all_reduce(strategy, n)
            check(schedule)
            carried = predict(
                schedule, network, 1e8, placement=Placement(network.endpoints[:n]), overhead="0us"
            ).link_bytes
            yield Form(id=f"closed_form/kungfu/{strategy}/{n}", model=f"KungFu, {strategy}", unit="bytes",
                       operation="all_reduce", ranks=n, size=1e8, ours=float(carried.max()),
                       reference=1e8 * float(form(n)),
                       source="messages of the busiest rank's port, one way")  # fmt: skip
