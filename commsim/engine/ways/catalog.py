"""The ways of the flow engine, what each is expected to take, and which of them are tried.

A way is added by a record in ``WAYS``. Its estimate takes counts of the job alone; laying out imports what it needs
when the way is first tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from commsim.core.errors import InputError
from commsim.core.result import Result
from commsim.engine.flow import simulate_flows

from . import costs
from .way import MAX_TRANSFERS, Cost, Simulation, Task, Way

ALONE = "every message alone on its links, or sharing them with others that start and end when it does"


@dataclass(frozen=True, slots=True)
class RingCounts:
    """What laying out rings grows with.

    Parameters
    ----------
    rows, hops : int
        Transfers, and hops, that are examined to find phases.
    connections : int
        Connections of all phases.
    pairs, meetings : int
        Pairs of phases, and pairs of their connections that meet at a participant.
    """

    rows: int
    hops: int
    connections: int
    pairs: int
    meetings: int

    @property
    def seconds_of_phases(self) -> float:
        """Processor seconds until the phases are found."""
        return costs.PHASE_ROW * self.rows + costs.PHASE_HOP * self.hops

    @property
    def seconds_of_waits(self) -> float:
        """Processor seconds to find what phases wait for."""
        return costs.PHASE_PAIR * self.pairs + costs.MEETING * self.meetings


def ring_counts(task: Task) -> RingCounts | None:
    """Count what laying out rings grows with; None where the schedule is surely not made of rings.

    Where looking for phases is much beside the event engine, or rings would be no cheaper than going transfer by
    transfer even if all hops were one phase, it is left out: then each hop counts as a phase and every row as a
    connection.
    """
    from commsim.engine.recurrence.ring_phases import MAX_PHASES
    from commsim.engine.recurrence.rings import count_meetings

    blocks = task.job.schedule.blocks
    if task.job.messages is not None or any(b.n_fences or (b.times > 1 and b.n_hops != 1) for b in blocks):
        return None
    hops = sum(b.n_hops for b in blocks)
    rough = RingCounts(task.n_rows, hops, task.n_rows, math.comb(min(hops, MAX_PHASES), 2), 0)
    least = costs.RINGS_BEGIN + rough.seconds_of_phases + costs.RING_CONNECTION * task.n_rows / max(1, hops)
    if rough.seconds_of_phases > task.at_risk or least > task.move_cost:
        return rough
    phases = task.ring_phases
    if not phases:
        return None
    connections = sum(phase.src.size for phase in phases)
    return RingCounts(task.n_rows, hops, connections, math.comb(len(phases), 2), count_meetings(phases))


def _estimate_rings(task: Task) -> Cost | None:
    counts = ring_counts(task)
    if counts is None:
        return None
    laid_out = costs.RINGS_BEGIN + counts.seconds_of_phases + costs.RING_CONNECTION * counts.connections
    return Cost(laid_out, laid_out + counts.seconds_of_waits + costs.RING_MESSAGE * task.n_transfers)


def _plan_rings(task: Task) -> Simulation | None:
    from commsim.engine.recurrence.rings import plan_rings, simulate_rings

    phases = task.ring_phases
    plan = plan_rings(task.network, task.job, phases, routing=task.routing, seed=task.seed) if phases else None
    return None if plan is None else partial(simulate_rings, plan)


def _estimate_moves(task: Task) -> Cost | None:
    from commsim.engine.recurrence.moves import MAX_TRANSFERS

    if task.n_transfers > MAX_TRANSFERS:
        return None
    decline = costs.MOVES_BEGIN / 4 + costs.MOVE_DECLINED * task.n_transfers
    return Cost(decline, task.move_cost)


def _plan_moves(task: Task) -> Simulation:
    from commsim.engine.recurrence.recurrence import RecurrencePlan, simulate_recurrence

    plan = RecurrencePlan(task.network, task.job, task.routing, task.seed, task.shared)
    return partial(simulate_recurrence, plan)


def _estimate_simultaneous(task: Task) -> Cost | None:
    schedule, blocks = task.job.schedule, task.job.schedule.blocks
    n_channels = 1 + max((int(block.body["channel"].max(initial=0)) for block in blocks), default=0)
    if task.n_transfers > schedule.n_participants**2 * n_channels or any(block.n_fences for block in blocks):
        return None  # some share a connection, or wait at a fence
    begin = costs.SIMULTANEOUS_BEGIN
    return Cost(begin / 5 + costs.UNROLL * task.n_transfers, begin + costs.SIMULTANEOUS_FLOW * task.n_transfers)


def _plan_simultaneous(task: Task) -> Simulation | None:
    from commsim.engine.simultaneous.simultaneous import plan_simultaneous, simulate_simultaneous

    plan = plan_simultaneous(task.network, task.job, routing=task.routing, seed=task.seed)
    return None if plan is None else partial(simulate_simultaneous, plan)


def _estimate_symmetric(task: Task) -> Cost | None:
    """Costs for one repetition, where repetitions keep to their connections, else for all transfers."""
    from commsim.engine.symmetry.pattern import MAX_EXPANDED

    blocks = task.job.schedule.blocks
    repeats = len(blocks) == 1 and not (blocks[0].n_fences or blocks[0].xor or any(blocks[0].step[:2]))
    n_pattern = task.n_rows if repeats else task.n_transfers
    if task.job.messages is not None or n_pattern > MAX_EXPANDED:
        return None
    answer = costs.SYMMETRIC_BEGIN + costs.CLASS * n_pattern
    if task.may_collide:  # few are alike then, if any
        answer = max(answer, task.event_cost)
    return Cost(costs.SYMMETRIC_BEGIN / 5 + costs.CLASS_DECLINED * n_pattern, answer)


def _plan_symmetric(task: Task) -> Simulation | None:
    from commsim.engine.symmetry.symmetry import plan_symmetric, simulate_symmetric

    plan = plan_symmetric(task.network, task.job, routing=task.routing, seed=task.seed, shared=task.shared)
    return None if plan is None else partial(simulate_symmetric, plan)


def _estimate_streamed(task: Task) -> Cost | None:
    from commsim.engine.streamed import MAX_TRANSFERS

    counts = ring_counts(task) if task.n_transfers <= MAX_TRANSFERS else None
    if counts is None:
        return None
    laid_out = costs.STREAMED_BEGIN + counts.seconds_of_phases + costs.STREAMED_CONNECTION * counts.connections
    return Cost(laid_out, laid_out + counts.seconds_of_waits + costs.STREAMED_MESSAGE * task.n_transfers)


def _plan_streamed(task: Task) -> Simulation | None:
    from commsim.engine.streamed import plan_streamed, simulate_streamed

    plan = plan_streamed(task.network, task.job, routing=task.routing, seed=task.seed, phases=task.ring_phases)
    return None if plan is None else partial(simulate_streamed, plan)


def _estimate_bottlenecks(task: Task) -> Cost | None:
    from commsim.engine.bottlenecks.bottlenecks import LEAST_SHARING
    from commsim.engine.bottlenecks.group_state import MAX_RESOURCES

    n_stages = 1 + sum(block.n_fences * block.times for block in task.job.schedule.blocks)
    at_once = min(task.n_connections, task.n_transfers / n_stages)
    if at_once < LEAST_SHARING * task.network.n_links:
        return None
    begin = costs.BOTTLENECKS_BEGIN + costs.BOTTLENECK_PAIR * min(task.network.n_links, MAX_RESOURCES) ** 2
    tables = (costs.ROUTE + costs.EVENTS_CONNECTION) * task.n_connections
    decline = costs.BOTTLENECKS_BEGIN / 5 + costs.BOTTLENECKS_DECLINED * task.n_connections
    return Cost(decline, begin + costs.BOTTLENECKS_TRANSFER * task.n_transfers + tables)


def _plan_bottlenecks(task: Task) -> Simulation | None:
    from commsim.engine.bottlenecks.bottlenecks import simulate_bottlenecks
    from commsim.engine.bottlenecks.group_state import lay_out_groups

    plan = task.tables  # which the event engine begins with as well
    groups = lay_out_groups(plan)
    return None if groups is None else partial(simulate_bottlenecks, plan, groups)


def _estimate_events(task: Task) -> Cost:
    return Cost(task.event_cost, task.event_cost)


def _plan_events(task: Task) -> Simulation:
    plan = task.tables

    def simulate(size: float, **options: Any) -> Result:
        return simulate_flows(plan, size, **options)[0]

    return simulate


def refuse_too_many(task: Task, trace: bool) -> None:
    """Refuse what would not fit into memory.

    Raises
    ------
    InputError
        If there are more transfers than the event engine is for.
    """
    if task.n_transfers > MAX_TRANSFERS:
        why = "are to be traced" if trace else "share links here in no regular way"
        raise InputError(
            f"{task.job.schedule.name}: {task.n_transfers} transfers {why}; "
            f"the event engine is for at most {MAX_TRANSFERS}"
        )


RINGS = Way("recurrence", ALONE, _estimate_rings, _plan_rings, traces=False)
MOVES = Way("recurrence", ALONE, _estimate_moves, _plan_moves)
SIMULTANEOUS = Way("simultaneous", "messages that all start together", _estimate_simultaneous, _plan_simultaneous)
SYMMETRIC = Way(
    "symmetric", "transfers and links that fall into few classes of equals", _estimate_symmetric, _plan_symmetric,
    steps=5000,
)  # fmt: skip
STREAMED = Way(
    "streamed", "rings of at most 2^32 messages, and no trace", _estimate_streamed, _plan_streamed, traces=False
)
BOTTLENECKS = Way(
    "bottlenecks", "messages that take links whole, and links and messages that are not too many",
    _estimate_bottlenecks, _plan_bottlenecks, steps=20000,
)  # fmt: skip
EVENTS = Way("events", "nothing", _estimate_events, _plan_events, general=True)

# The last one applies to everything. A way is added here; the order of methods is that of the messages about them.
WAYS = (RINGS, MOVES, SIMULTANEOUS, SYMMETRIC, STREAMED, BOTTLENECKS, EVENTS)
METHODS = ("auto", *dict.fromkeys(way.name for way in WAYS))


def estimates(task: Task, *, trace: bool = False) -> dict[Way, Cost]:
    """Costs of the ways that may apply to a task; the event engine is always among them.

    Parameters
    ----------
    task : Task
        One job on a network.
    trace : bool
        Whether times of every transfer are wanted.
    """
    found = {}
    for way in WAYS:
        if (way.general or task.is_regular) and (way.traces or not trace):
            cost = way.estimate(task)
            if cost is not None:
                found[way] = cost
    return found


def choose(task: Task, *, trace: bool = False) -> tuple[Way, ...]:
    """Ways to try, one after the other, until one answers; the event engine is the last.

    A way is tried if it is expected to answer sooner than the event engine, and if what is lost where it and those
    before it decline is little beside the event engine.

    Parameters
    ----------
    task, trace
        Same as in :func:`estimates`.
    """
    cost = estimates(task, trace=trace)
    most = cost.pop(EVENTS).answer
    left, chosen = task.at_risk, []
    for way in sorted(cost, key=lambda way: cost[way].answer):
        if cost[way].answer < most and cost[way].decline <= left:
            left -= cost[way].decline
            chosen.append(way)
    return (*chosen, EVENTS)


def named(method: str) -> tuple[Way, ...]:
    """Ways of one method."""
    return tuple(way for way in WAYS if way.name == method)
