"""The ways of the flow engine, what each is expected to take, and which of them are tried.

A way is added by a record in ``WAYS``. Its estimate takes counts of the job alone; laying out imports what it needs
when the way is first tried. One that an installed package brings (``house.ways``) is tried where its name is asked for.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from commsim.extensions import house
from commsim.routing.routing import is_divided, may_collide

from . import costs

if TYPE_CHECKING:
    from commsim.core.result import Result
    from commsim.engine.flow_paths import FlowPaths

ALONE = "every message alone on its links, or sharing them with others that start and end when it does"
AUTO = "auto"
IN_STEP = "a recurrence, since messages have their links to themselves or share them in step"
# Function from ``(size, *, starts, framing, trace)`` to a result; None where a way does not apply to these.
Simulation: TypeAlias = "Callable[..., Result | None]"


class WayCost(NamedTuple):
    """Processor seconds that a way is expected to take: until it declines, or else until it answers."""

    decline: float
    answer: float


@dataclass(frozen=True, slots=True)
class Way:
    """A way of computing; its kernels are imported when it is first tried.

    Parameters
    ----------
    name : str
        The method of its results. Ways of one name are variants of one method.
    needs : str
        What it needs of a job, for the message that refuses it.
    words : str
        How it computes, and why it may: what ``commsim run -v`` says.
    estimate : callable
        Function from a job to its cost; None where it surely does not apply. It does not expand the schedule. Without
        one, only jobs with a closed form have the way, and try it before all others (``closed_form_way``).
    plan : callable
        Function from a job to its simulation, with what does not depend on the size laid out; None where the way does
        not apply.
    steps : int
        Steps in kernels per transfer, where there are few transfers; or more.
    traces : bool
        Whether it has the times of every transfer.
    general : bool
        Whether it takes pinned routes, unequal weights and measured curves.
    least : float, s
        Processor seconds below which it answers nothing: it is not estimated where the event engine takes no longer.
    """

    name: str
    needs: str
    words: str
    estimate: Callable[[FlowPaths], WayCost | None] | None = None
    plan: Callable[[FlowPaths], Simulation | None] | None = None
    steps: int = 300
    traces: bool = True
    general: bool = False
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class RingLayout:
    """What laying out rings takes.

    Parameters
    ----------
    to_find, to_wait : float, s
        Processor seconds until the phases are found, and until it is known what they wait for.
    connections : int
        Connections of all phases.
    has_slots : bool
        Whether connections carry several messages in a round.
    """

    to_find: float
    to_wait: float
    connections: int
    has_slots: bool = False


def ring_layout(paths: FlowPaths) -> RingLayout | None:
    """Estimate what laying out rings takes; None where the schedule is surely not made of rings.

    Where looking for phases is much beside the event engine, or rings would be no cheaper than going transfer by
    transfer even if all hops were one phase, it is left out: then each hop counts as a phase and every row as a
    connection.
    """
    from commsim.engine.recurrence.ring_phases import MAX_PHASES

    blocks = paths.job.schedule.blocks
    if paths.job.messages is not None or any(b.n_fences or (b.times > 1 and b.n_hops != 1) for b in blocks):
        return None
    hops = sum(b.n_hops for b in blocks)
    to_find = costs.PHASE_ROW * paths.n_rows + costs.PHASE_HOP * hops
    least = costs.RINGS_BEGIN + to_find + costs.RING_CONNECTION * paths.n_rows / max(1, hops)
    if to_find > paths.at_risk or least > paths.move_cost:
        return RingLayout(to_find, costs.PHASE_PAIR * math.comb(min(hops, MAX_PHASES), 2), paths.n_rows)
    phases = paths.ring_phases
    if not phases:
        return None
    connections = sum(phase.src.size for phase in phases)
    to_wait = 0.0
    if len(phases) > 1:
        from commsim.engine.recurrence.between_phases import count_meetings

        to_wait = costs.PHASE_PAIR * math.comb(len(phases), 2) + costs.MEETING * count_meetings(phases)
    # they are found, and kept: no way looks for them again
    return RingLayout(0.0, to_wait, connections, any(phase.has_slots for phase in phases))


def _estimate_rings(paths: FlowPaths) -> WayCost | None:
    rings = ring_layout(paths)
    if rings is None or rings.has_slots:
        return None
    laid_out = costs.RINGS_BEGIN + rings.to_find + costs.RING_CONNECTION * rings.connections
    return WayCost(laid_out, laid_out + rings.to_wait + costs.RING_MESSAGE * paths.n_transfers)


def _plan_rings(paths: FlowPaths) -> Simulation | None:
    from commsim.engine.recurrence.rings import plan_rings, simulate_rings

    phases = paths.ring_phases
    plan = plan_rings(paths.network, paths.job, phases, routing=paths.routing, seed=paths.seed) if phases else None
    return None if plan is None else partial(simulate_rings, plan)


def _estimate_moves(paths: FlowPaths) -> WayCost | None:
    if paths.n_transfers > costs.MAX_MOVES:
        return None
    decline = costs.MOVES_BEGIN / 4 + costs.MOVE_DECLINED * paths.n_transfers
    return WayCost(decline, paths.move_cost)


def _plan_moves(paths: FlowPaths) -> Simulation:
    from commsim.engine.recurrence.recurrence import RecurrencePlan, simulate_recurrence

    plan = RecurrencePlan(paths.network, paths.job, paths.routing, paths.seed, paths.shared)
    return partial(simulate_recurrence, plan)


def _estimate_simultaneous(paths: FlowPaths) -> WayCost | None:
    schedule, blocks = paths.job.schedule, paths.job.schedule.blocks
    n_channels = 1 + max((int(block.body["channel"].max(initial=0)) for block in blocks), default=0)
    if paths.n_transfers > schedule.n_participants**2 * n_channels or any(block.n_fences for block in blocks):
        return None  # some share a connection, or wait at a fence
    begin = costs.SIMULTANEOUS_BEGIN
    return WayCost(begin / 5 + costs.UNROLL * paths.n_transfers, begin + costs.SIMULTANEOUS_FLOW * paths.n_transfers)


def _plan_simultaneous(paths: FlowPaths) -> Simulation | None:
    from commsim.engine.simultaneous.simultaneous import plan_simultaneous, simulate_simultaneous

    begun = paths.begun_together
    if begun is None:
        return None
    plan = plan_simultaneous(paths.network, paths.job, routing=paths.routing, seed=paths.seed, begun=begun)
    return None if plan is None else partial(simulate_simultaneous, plan)


def _estimate_symmetric(paths: FlowPaths) -> WayCost | None:
    """Costs for one repetition, where repetitions keep to their connections, else for all transfers."""
    blocks = paths.job.schedule.blocks
    repeats = len(blocks) == 1 and blocks[0].orders is None
    repeats = repeats and not (blocks[0].n_fences or blocks[0].xor or any(blocks[0].step[:2]))
    n_pattern = paths.n_rows if repeats else paths.n_transfers
    if paths.job.messages is not None or n_pattern > costs.MAX_PATTERN:
        return None
    answer = costs.SYMMETRIC_BEGIN + costs.CLASS * n_pattern
    if may_collide(paths.network, paths.routing):  # few are alike then, if any
        answer = max(answer, paths.event_cost)
    return WayCost(costs.SYMMETRIC_BEGIN / 5 + costs.CLASS_DECLINED * n_pattern, answer)


def _plan_symmetric(paths: FlowPaths) -> Simulation | None:
    from commsim.engine.symmetry.symmetry import plan_symmetric, simulate_symmetric

    plan = plan_symmetric(paths.network, paths.job, routing=paths.routing, seed=paths.seed, shared=paths.shared)
    return None if plan is None else partial(simulate_symmetric, plan)


def _estimate_streamed(paths: FlowPaths) -> WayCost | None:
    rings = ring_layout(paths) if paths.n_transfers <= costs.MAX_STREAMED else None
    if rings is None:
        return None
    laid_out = costs.STREAMED_BEGIN + rings.to_find + costs.STREAMED_CONNECTION * rings.connections
    each = costs.STREAMED_SLOT if rings.has_slots else costs.STREAMED_MESSAGE
    return WayCost(laid_out, laid_out + rings.to_wait + each * paths.n_transfers)


def _plan_streamed(paths: FlowPaths) -> Simulation | None:
    from commsim.engine.streamed.streamed import plan_streamed, simulate_streamed

    plan = plan_streamed(paths.network, paths.job, routing=paths.routing, seed=paths.seed, phases=paths.ring_phases)
    return None if plan is None else partial(simulate_streamed, plan)


def _estimate_bottlenecks(paths: FlowPaths) -> WayCost | None:
    n_stages = 1 + sum(block.n_fences * block.times for block in paths.job.schedule.blocks)
    at_once = min(paths.n_connections, paths.n_transfers / n_stages)
    if (
        is_divided(paths.routing or paths.network.routing)
        or at_once < costs.LEAST_SHARING * paths.network.n_links
        or paths.n_transfers > costs.MAX_TRANSFERS
    ):
        return None  # too many for tables with a row for each
    begin = costs.BOTTLENECKS_BEGIN + costs.BOTTLENECK_PAIR * paths.network.n_links**2
    tables = (costs.ROUTE + costs.EVENTS_CONNECTION) * paths.n_connections
    decline = costs.BOTTLENECKS_BEGIN / 5 + costs.BOTTLENECKS_DECLINED * paths.n_connections
    return WayCost(decline, begin + costs.BOTTLENECKS_TRANSFER * paths.n_transfers + tables)


def _plan_bottlenecks(paths: FlowPaths) -> Simulation | None:
    from commsim.engine.bottlenecks.bottlenecks import simulate_bottlenecks
    from commsim.engine.bottlenecks.group_state import lay_out_groups

    from .by_routes import by_routes

    plan = paths.tables  # which the event engine begins with as well
    groups = lay_out_groups(plan)
    return None if groups is None else by_routes(paths, partial(simulate_bottlenecks, plan, groups))


def _plan_events(paths: FlowPaths) -> Simulation:
    from commsim.engine.flow import simulate_flows

    from .by_routes import by_routes

    plan = paths.tables

    def simulate(size: float, **options: Any) -> Result:
        return simulate_flows(plan, size, **options)[0]

    return by_routes(paths, simulate)


RINGS = Way("recurrence", ALONE, IN_STEP, _estimate_rings, _plan_rings, traces=False, least=costs.RINGS_BEGIN)
MOVES = Way("recurrence", ALONE, IN_STEP, _estimate_moves, _plan_moves, least=costs.MOVES_BEGIN)
SIMULTANEOUS = Way(
    "simultaneous", "messages that all start together",
    "one allocation of rates, since all messages start together",
    _estimate_simultaneous, _plan_simultaneous, least=costs.SIMULTANEOUS_BEGIN,
)  # fmt: skip
SYMMETRIC = Way(
    "symmetric", "transfers and links that fall into few classes of equals",
    "one transfer of each class of equal transfers",
    _estimate_symmetric, _plan_symmetric, steps=5000, least=costs.SYMMETRIC_BEGIN,
)  # fmt: skip
STREAMED = Way(
    "streamed", "rings of at most 2^32 messages, and no trace",
    "event by event, with one state per connection instead of per message",
    _estimate_streamed, _plan_streamed, traces=False, least=costs.STREAMED_BEGIN,
)  # fmt: skip
BOTTLENECKS = Way(
    "bottlenecks", "messages that take links whole, and links and messages that are not too many",
    "event by event, with one rate for all messages that one link holds down",
    _estimate_bottlenecks, _plan_bottlenecks, steps=20000, least=costs.BOTTLENECKS_BEGIN,
)  # fmt: skip
EVENTS = Way("events", "nothing", "event by event", plan=_plan_events, general=True)
CLOSED_FORM = Way(
    "closed-form", "a closed form and no late starters, headers, traces or flaps",
    "NCCL's closed form, since no link can be in the way of its messages",
)  # fmt: skip
LOOPS = Way(
    "loops", "a call of NCCL with many loops, and no traces or flaps",
    "some of NCCL's loops, which repeat: within some 1 % of all",
)  # fmt: skip

# A way is added here; the order of methods is that of the messages about them. Only EVENTS applies to everything.
WAYS = (RINGS, MOVES, SIMULTANEOUS, SYMMETRIC, STREAMED, BOTTLENECKS, EVENTS, CLOSED_FORM, LOOPS)
METHODS = (AUTO, *dict.fromkeys(way.name for way in WAYS))


def choose(paths: FlowPaths, *, trace: bool = False) -> Iterator[tuple[Way, float]]:
    """Ways to try, one after the other, until one answers, with the seconds of each; the event engine is the last.

    A way is tried if it is expected to answer sooner than the event engine, and if what is lost where it and those
    before it decline is little beside the event engine. It is estimated when no other is surely sooner.

    Parameters
    ----------
    paths : FlowPaths
        One job on a network.
    trace : bool
        Whether times of every transfer are wanted.
    """
    most, left = paths.event_cost, paths.at_risk
    waiting = [
        way for way in sorted(WAYS, key=attrgetter("least"))
        if way.estimate is not None and way.least < most and (way.general or paths.is_regular)
        and (way.traces or not trace)
    ]  # fmt: skip
    found: list[tuple[float, int, float, Way]] = []
    while waiting or found:
        while waiting and not (found and found[0][0] < waiting[0].least):
            way = waiting.pop(0)
            cost = way.estimate(paths) if way.estimate is not None else None
            if cost is not None:
                heapq.heappush(found, (cost.answer, WAYS.index(way), cost.decline, way))
        if found:
            answer, _, decline, way = heapq.heappop(found)
            if answer < most and decline <= left:
                left -= decline
                yield way, answer
    yield EVENTS, most


def ways_of_method(method: str) -> tuple[Way, ...]:
    """Ways of one method, which an installed package may have brought; none of an unknown one."""
    own = tuple(way for way in WAYS if way.name == method)
    brought: Way | None = None if own or method == AUTO else house().ways.get(method)
    return own if brought is None else (brought,)
