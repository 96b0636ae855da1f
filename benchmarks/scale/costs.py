"""What the parts of the flow engine's ways take per unit: the table that the choice of a way begins with.

python -m benchmarks.scale.costs [--only TEXT]

Each line is one part of a way on one work, the least processor time of several runs with loaded kernels, over its
number of units; beside it is the value of :mod:`commsim.engine.ways.costs` that the choice uses.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collectives import COLLECTIVES
from commsim.core.jit import compile_all
from commsim.core.placement import place
from commsim.core.result import Result
from commsim.engine.bottlenecks.bottlenecks import simulate_bottlenecks
from commsim.engine.bottlenecks.group_state import lay_out_groups
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.engine.job_connections import JobConnections
from commsim.engine.recurrence.between_phases import count_meetings, find_all_waits
from commsim.engine.recurrence.moves import ProgramMoves, plan_moves, simulate_moves
from commsim.engine.recurrence.ring_phases import find_ring_phases
from commsim.engine.recurrence.rings import plan_rings
from commsim.engine.simultaneous.simultaneous import SimultaneousPlan, plan_simultaneous, simulate_simultaneous
from commsim.engine.streamed.streamed import plan_streamed, simulate_streamed
from commsim.engine.symmetry.symmetry import plan_symmetric, simulate_symmetric
from commsim.engine.ways import costs
from commsim.prediction.inputs import load_network
from commsim.report.terminal import print_table

from .works import SIZE, fat_tree, rails, small_fat_tree, star

# Collective, topology from the number of ranks, ranks, routing.
WORKS: tuple[tuple[str, Callable[[int], str], int, str], ...] = (
    ("ring_all_reduce", star, 8, "dmodk"),
    ("ring_all_reduce", star, 1024, "dmodk"),
    ("ring_all_reduce", rails, 1024, "ecmp"),
    ("halving_doubling_all_reduce", rails, 1024, "dmodk"),
    ("halving_doubling_all_reduce", rails, 1024, "ecmp"),
    ("double_tree_all_reduce", rails, 1024, "dmodk"),
    ("double_tree_all_reduce", rails, 1024, "ecmp"),
    ("hierarchical_all_reduce", rails, 1024, "ecmp"),
    ("direct_all_to_all", fat_tree, 256, "dmodk"),
    ("direct_all_to_all", fat_tree, 256, "ecmp"),
    ("byteps", star, 64, "dmodk"),
    ("byteps", small_fat_tree, 128, "dmodk"),
    ("byteps", small_fat_tree, 128, "ecmp"),
)
# On the tiny work, what is measured is the beginning of a way.
BEGINS = {
    "RING_CONNECTION": "RINGS_BEGIN", "MOVE": "MOVES_BEGIN", "UNROLL": "SIMULTANEOUS_BEGIN",
    "STREAMED_CONNECTION": "STREAMED_BEGIN", "EVENTS_TRANSFER": "EVENTS_BEGIN",
}  # fmt: skip
# A part that takes longer than this is run once.
LONG, TIMES = 1.0, 4


@dataclass(frozen=True, slots=True)
class Part:
    """What a part of a way took."""

    constant: str
    work: str
    units: int
    seconds: float


class Meter:
    """Parts of one work, as they are measured."""

    def __init__(self, work: str) -> None:
        self.work = work
        self.parts: list[Part] = []

    @property
    def is_tiny(self) -> bool:
        """Whether it shows what beginning a way takes."""
        return " 8 " in self.work

    def part(self, constant: str, units: int, function: Callable[[], Any]) -> Any:
        """Run a part several times and keep the least time; return its last result."""
        least, found = np.inf, None
        for _ in range(1 + TIMES):
            begin = time.process_time()
            found = function()
            took = time.process_time() - begin
            least = min(least, took)
            if took > LONG:
                break
        if not self.is_tiny:
            self.parts.append(Part(constant, self.work, max(1, units), least))
        elif constant in BEGINS:
            self.parts.append(Part(BEGINS[constant], self.work, 1, least))
        return found


def measure(collective: str, topology: Callable[[int], str], n_ranks: int, routing: str) -> list[Part]:
    """Measure all parts of all ways on one work."""
    network, schedule = load_network(topology(n_ranks)), COLLECTIVES[collective].build(n_ranks)
    job = FlowJob(schedule, place(network, n_ranks))
    meter = Meter(f"{collective} {n_ranks} {topology.__name__} {routing}")
    begun = JobConnections(network, job, routing, 0)
    transfers, n = begun.transfers, schedule.n_transfers
    n_connections = len(begun.numbered[1])

    def route() -> None:
        vars(begun).pop("routes", None)
        begun.routes  # noqa: B018 - found when it is asked for

    meter.part("ROUTE", n_connections, route)
    _measure_rings(meter, job, network, routing)
    _measure_moves(meter, job, network, begun)

    def together() -> SimultaneousPlan | None:
        return plan_simultaneous(network, job, routing=routing)

    found = meter.part("UNROLL" if together() is None else "SIMULTANEOUS_FLOW", n, together)
    if found is not None:
        meter.part("SIMULTANEOUS_FLOW", n, lambda: simulate_simultaneous(found, SIZE))
    rows = sum(len(block.body) for block in schedule.blocks)
    if rows < len(transfers):

        def symmetric() -> Result | None:
            plan = plan_symmetric(network, job, routing=routing, shared=begun)
            return None if plan is None else simulate_symmetric(plan, SIZE)

        meter.part("CLASS_DECLINED" if symmetric() is None else "CLASS", rows, symmetric)

    def events() -> None:
        vars(begun).pop("waits", None)
        simulate_flows(plan_flows(network, [job], routing=routing, shared=begun), SIZE)

    meter.part("EVENTS_TRANSFER", n, events)
    if n_connections >= costs.LEAST_SHARING * network.n_links:
        _measure_bottlenecks(meter, n, network, begun)
    return meter.parts


def _measure_bottlenecks(meter: Meter, n: int, network: Any, begun: JobConnections) -> None:
    def tables() -> FlowPlan:
        vars(begun).pop("waits", None)
        return plan_flows(network, [begun.job], routing=begun.routing, shared=begun)

    plan = tables()
    groups = meter.part("BOTTLENECKS_DECLINED", len(plan.connection), lambda: lay_out_groups(plan))
    if groups is not None:
        meter.part("BOTTLENECKS_TRANSFER", n, lambda: simulate_bottlenecks(tables(), groups, SIZE))


def _measure_rings(meter: Meter, job: FlowJob, network: Any, routing: str) -> None:
    rows = sum(len(block.body) for block in job.schedule.blocks)
    phases = meter.part("PHASE_ROW", rows, lambda: find_ring_phases(job.schedule))
    if not phases:
        return
    n_connections = sum(phase.src.size for phase in phases)
    meter.part("MEETING", count_meetings(phases), lambda: find_all_waits(phases, job.schedule.n_addresses))
    meter.part("RING_CONNECTION", n_connections, lambda: plan_rings(network, job, phases, routing=routing, seed=0))
    streamed = meter.part(
        "STREAMED_CONNECTION", n_connections, lambda: plan_streamed(network, job, routing=routing, phases=phases)
    )
    meter.part("STREAMED_MESSAGE", job.schedule.n_transfers, lambda: simulate_streamed(streamed, SIZE))


def _measure_moves(meter: Meter, job: FlowJob, network: Any, begun: JobConnections) -> None:
    n = job.schedule.n_transfers

    def plan() -> ProgramMoves | None:
        return plan_moves(network, job, routing=begun.routing, seed=0, shared=begun)

    moves = meter.part("MOVE_DECLINED" if plan() is None else "MOVE", n, plan)
    if moves is not None:
        n_bytes, starts = moves.count * (SIZE / job.schedule.n_chunks), np.zeros(job.schedule.n_participants)
        meter.part("MOVE", n, lambda: simulate_moves(moves, n_bytes, starts))


def rows(only: str) -> Iterator[list[str]]:
    """Rows of the table, by constant."""
    parts = [
        part
        for collective, topology, n_ranks, routing in WORKS
        if only in collective
        for part in measure(collective, topology, n_ranks, routing)
    ]
    for part in sorted(parts, key=lambda part: part.constant):
        used = getattr(costs, part.constant)
        yield [part.constant, part.work, str(part.units), f"{part.seconds:.3g}",
               f"{part.seconds / part.units:.2g}", f"{used:.2g}"]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale.costs", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="collectives whose name has this in it")
    args = parser.parse_args(argv)
    compile_all()
    print_table(["constant", "work", "units", "cpu(s)", "s per unit", "used"], list(rows(args.only)), "Parts of ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
