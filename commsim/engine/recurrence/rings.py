"""Rounds of rings: a recurrence over a vector of connections, in memory that does not grow with the number of rounds.

Within a phase (:mod:`commsim.engine.recurrence.ring_phases`) a round starts at the later of having sent and having
received. Between phases, the first message of a connection waits for those last messages of earlier phases that touch
the same chunks. That all other waits between phases are kept is not proved but looked at in the times that come out:
they then satisfy every condition, and no earlier times can. Connections whose costs and neighbours are alike all round
the cycle have equal times, so only one of them is simulated; and once all connections advance by the same number of
ticks per round, they will for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.engine.flow_job import chunk_bytes, not_negative, one_job_result

from .connection_costs import (
    SLACK,
    ConnectionCosts,
    LockstepGroups,
    find_connection_costs,
    lockstep_groups,
    scale_for,
    shared_resources,
)
from .ring_phase_times import Claims, ResourceLoad, simulate_ring_phase
from .ring_phases import RingPhase, connections_of

if TYPE_CHECKING:
    from commsim.core.cost import Framing
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.engine.flow_job import FlowJob
    from commsim.engine.trace_files import TraceFile

Ticks = NDArray[np.int64]
Whole = NDArray[np.int64]
# Pairs of connections that are looked at: what sends from all to all twice has a pair for every three ranks.
MAX_MEETINGS = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class ConnectionWaits:
    """Pairs of connections of two phases, where the later one may wait for the earlier one.

    Parameters
    ----------
    mine, theirs : int64[n]
        Wires of the later and of the earlier phase, in rows.
    sent : bool[n]
        Whether the earlier one need only have been sent, not be complete.
    certain : bool[n]
        Whether the first message of `mine` waits for the last message of `theirs`. Else some message of the one may
        wait for some message of the other.
    """

    mine: Whole
    theirs: Whole
    sent: NDArray[np.bool_]
    certain: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Rings:
    """A schedule of phases, and its connections.

    Parameters
    ----------
    network, job
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    costs : ConnectionCosts
        All connections.
    phases : tuple of RingPhase
        Phases in program order.
    connection : tuple of int64[n]
        Number among all connections of each connection of each phase.
    waits : tuple of tuple of ConnectionWaits
        Waits of each phase for each earlier one.
    claims : tuple of Claims
        Claims of each phase.
    groups : tuple of LockstepGroups
        Wires of each phase that share links.
    """

    network: Network
    job: FlowJob
    costs: ConnectionCosts
    phases: tuple[RingPhase, ...]
    connection: tuple[NDArray[np.int64], ...]
    waits: tuple[tuple[ConnectionWaits, ...], ...]
    claims: tuple[Claims, ...]
    groups: tuple[LockstepGroups, ...]

    def seconds(self, n_bytes: Sequence[NDArray[np.float64]]) -> list[tuple[NDArray[np.float64], ...]]:
        """Return what sending, arriving and reducing take on each connection of each phase.

        Parameters
        ----------
        n_bytes : sequence of float64[n], bytes
            Size of a message of each connection of each phase, headers included.
        """
        costs = self.costs
        return [
            (
                costs.overhead[w] + b * shared.pace,
                costs.latency[w],
                b * costs.gamma[w] * any(adds for _, adds in phase.rounds),
            )
            for phase, w, b, shared in zip(self.phases, self.connection, n_bytes, self.groups, strict=True)
        ]

    def carried(self, n_bytes: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.float64], float]:
        """Return the bytes of each link, and of all messages that use one; parameters as in `seconds`."""
        per_connection = np.zeros(len(self.costs.ends))
        for phase, w, each in zip(self.phases, self.connection, n_bytes, strict=True):
            per_connection[w] += phase.n_rounds * each
        return self.costs.routes.carried(per_connection, self.costs.n_links, self.costs.bundles)


def plan_rings(
    network: Network, job: FlowJob, phases: tuple[RingPhase, ...], *, routing: str | None, seed: int
) -> Rings | None:
    """Lay out the connections of the phases of a schedule.

    Returns
    -------
    Rings or None
        None if receiving phase_costs something, connections of one phase share links at different rates, or reduction
        units at all, or have slots, or too many connections meet.
    """
    if any(phase.has_slots for phase in phases):
        return None
    schedule = job.schedule
    ends, channel, connection = connections_of(phases, schedule.n_participants)
    reduces = np.zeros(len(ends), bool)
    for phase, w in zip(phases, connection, strict=True):
        reduces[w] |= any(adds for _, adds in phase.rounds)
    costs = find_connection_costs(network, job, ends, channel, reduces, routing=routing, seed=seed)
    if costs is None:
        return None
    shared = shared_resources(costs)
    groups = [lockstep_groups(costs, w.astype(np.int32), np.array([0, len(w)]), shared) for w in connection]
    sharing = tuple(c for c in groups if c is not None)
    units = [costs.unit[w] for w in connection]
    if len(sharing) < len(groups) or any((np.bincount(unit[unit >= 0], minlength=1) > 1).any() for unit in units):
        return None
    waits = find_all_waits(phases, schedule.n_addresses)
    if waits is None:
        return None
    claims = tuple(_claims(costs, w, c.pace, shared) for w, c in zip(connection, sharing, strict=True))
    return Rings(network, job, costs, phases, connection, waits, claims, sharing)


def _claims(
    costs: ConnectionCosts, connection: NDArray[np.int64], pace: NDArray[np.float64], shared: NDArray[np.bool_]
) -> Claims:
    """Collect the rows of a phase's connections that are of resources in question."""
    if not shared.any():
        return Claims(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), 0)
    place = np.full(len(costs.ends), -1)
    place[connection] = np.arange(len(connection))
    first, link, part = costs.rows
    of_row = place[np.repeat(np.arange(len(costs.ends)), np.diff(first))]
    links = np.flatnonzero((of_row >= 0) & shared[link])
    units = np.flatnonzero((costs.unit[connection] >= 0) & shared[costs.unit[connection]])
    slower = np.ones(len(connection))
    np.divide(costs.per_byte[connection], pace, out=slower, where=pace > 0)
    return Claims(
        np.concatenate((of_row[links], units)),
        np.concatenate((link[links], costs.unit[connection][units])).astype(np.int64),
        np.concatenate((part[links] * slower[of_row[links]], np.ones(len(units)))),
        len(links),
    )


def simulate_rings(
    rings: Rings,
    size: float,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
) -> Result | None:
    """Simulate one size.

    Parameters
    ----------
    rings : Rings
        Rings from :func:`plan_rings`.
    size : float, bytes
        Size of the collective.
    starts, framing, trace
        Same as in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    Result or None
        None if a link might have been shared, or something other than what was assumed might have had to be waited for;
        or if times of every transfer are wanted.

    Raises
    ------
    InputError
        If the size is not positive and finite, or a start is negative or not finite.
    PhysicsError
        If a link carried more than it can. This is a bug in commsim.
    """
    if trace:
        return None
    costs = rings.costs
    entered = np.broadcast_to(not_negative("start", starts), rings.job.schedule.n_participants)
    chunk = chunk_bytes(rings.job, size)
    n_bytes = [np.asarray(phase.count.ravel() * chunk, np.float64) for phase in rings.phases]
    if framing is not None:
        n_bytes = [framing.on_wire(payload) for payload in n_bytes]
    phase_costs = rings.seconds(n_bytes)
    chain = sum(t.n_rounds * float((a + b + c).max()) for t, (a, b, c) in zip(rings.phases, phase_costs, strict=True))
    scale = scale_for(float(entered.max()) + chain)
    free = np.floor(entered[costs.ends].max(axis=1, initial=0.0) * scale).astype(np.int64)
    last = np.zeros(len(free), np.int64)
    times: list[tuple[Ticks, Ticks]] = []
    load = ResourceLoad(costs.n_resources if any(len(c.connection) for c in rings.claims) else 0)
    for i, phase in enumerate(rings.phases):
        w = rings.connection[i]
        start = _start(free[w], rings.waits[i], times)
        if start is None:
            return None
        ticks = [np.rint(seconds * scale).astype(np.int64) for seconds in phase_costs[i]]
        simulated = simulate_ring_phase(phase, rings.groups[i], start, last[w], ticks)
        if simulated is None or not load.add(rings.claims[i], start, *simulated):
            return None
        free[w], last[w] = simulated
        times.append(simulated)
    end = float(max((done.max(initial=0) for _, done in times), default=0) / scale)
    return one_job_result(
        rings.network, rings.job.schedule, size, entered=entered, last=end, carried=rings.carried(n_bytes),
        counters={"events": 0.0},
    )  # fmt: skip


def _start(free: Ticks, waits: Sequence[ConnectionWaits], times: Sequence[tuple[Ticks, Ticks]]) -> Ticks | None:
    """Return when each connection of a phase may start; None if one may have to wait for what was not foreseen."""
    start = free.copy()
    ends = [np.where(p.sent, sent[p.theirs], done[p.theirs]) for p, (sent, done) in zip(waits, times, strict=True)]
    for p, end in zip(waits, ends, strict=True):
        np.maximum.at(start, p.mine[p.certain], end[p.certain])
    late = any((start[p.mine] + SLACK < end).any() for p, end in zip(waits, ends, strict=True))
    return None if late else start


def find_all_waits(phases: Sequence[RingPhase], n_addresses: int) -> tuple[tuple[ConnectionWaits, ...], ...] | None:
    """Find what each phase waits for in each earlier one; None where too many connections meet to look at."""
    if count_meetings(phases) > MAX_MEETINGS:
        return None
    return tuple(
        tuple(find_waits(later, earlier, n_addresses) for earlier in phases[:i]) for i, later in enumerate(phases)
    )


def count_meetings(phases: Sequence[RingPhase]) -> int:
    """Count the pairs of connections of two phases that :func:`find_all_waits` would look at."""
    return sum(_n_meetings(later, earlier) for i, later in enumerate(phases) for earlier in phases[:i])


def find_waits(later: RingPhase, earlier: RingPhase, n_addresses: int) -> ConnectionWaits:
    """Find the connections that meet at a participant and may touch the same chunks there."""
    mine, theirs, sent = _meetings(later, earlier)
    a, b = np.divmod(mine, later.src.shape[1]), np.divmod(theirs, earlier.src.shape[1])
    first, last = later.address[a], earlier.address[(b[0] - earlier.n_rounds + 1) % len(earlier.src), b[1]]
    certain = (first < last + earlier.count[b]) & (last < first + later.count[a])
    low, high = _hull(later)
    below, above = _hull(earlier)
    possible = (low[a[1]] < above[b[1]]) & (below[b[1]] < high[a[1]])
    possible &= _carries(later, a, (below[b[1]], above[b[1]]), n_addresses)
    possible &= _carries(earlier, b, (low[a[1]], high[a[1]]), n_addresses)
    kept = certain | possible
    return ConnectionWaits(mine[kept], theirs[kept], sent[kept], certain[kept])


def _n_meetings(later: RingPhase, earlier: RingPhase) -> int:
    """How many pairs :func:`_meetings` would find."""
    n = 1 + max(int(ends.max(initial=0)) for ends in (later.src, later.dst, earlier.src, earlier.dst))
    reads, writes, sends, receives = (
        np.bincount(ends.ravel(), minlength=n) for ends in (later.src, later.dst, earlier.src, earlier.dst)
    )
    return int((reads + writes) @ receives + writes @ sends)


def _meetings(later: RingPhase, earlier: RingPhase) -> tuple[Whole, Whole, NDArray[np.bool_]]:
    """Pairs of connections that meet: what arrived where one reads, and what arrived and left where it writes."""
    pairs = [
        (*_equal(later.src, earlier.dst), False),
        (*_equal(later.dst, earlier.dst), False),
        (*_equal(later.dst, earlier.src), True),
    ]
    sent = np.concatenate([np.full(len(mine), kind) for mine, _, kind in pairs])
    return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs]), sent


def _equal(a: Whole, b: Whole) -> tuple[Whole, Whole]:
    """Find the indices of all pairs of equal members of two arrays."""
    order = np.argsort(b, axis=None)
    found = b.ravel()[order]
    low = np.searchsorted(found, a.ravel(), side="left")
    each = np.searchsorted(found, a.ravel(), side="right") - low
    of_b = np.arange(each.sum()) + np.repeat(low - np.cumsum(each) + each, each)
    return np.repeat(np.arange(a.size), each), order[of_b]


def _hull(phase: RingPhase) -> tuple[Whole, Whole]:
    """First address that any message of each cycle touches, and the end."""
    return phase.address.min(axis=0), (phase.address + phase.count).max(axis=0)


def _carries(
    phase: RingPhase, connection: tuple[Whole, Whole], hull: tuple[Whole, Whole], n_addresses: int
) -> NDArray[np.bool_]:
    """Whether each connection may carry part of an address range: False where that is in a message it never carries."""
    length, n_cycles = phase.src.shape
    place = np.argsort(phase.address, axis=0)
    starts = np.take_along_axis(phase.address, place, axis=0) + np.arange(n_cycles) * n_addresses
    found = np.searchsorted(starts.T.ravel(), hull[0] + connection[1] * n_addresses, side="right") - 1
    inside = found >= connection[1] * length
    message = place[found % length, connection[1]]
    inside &= hull[1] <= phase.address[message, connection[1]] + phase.count[message, connection[1]]
    return np.asarray(~inside | ((connection[0] - message) % length < phase.n_rounds))
