"""Rounds of rings: a recurrence over a vector of connections, in memory that does not grow with the number of rounds.

Within a phase (:mod:`commsim.engine.recurrence.ring_phases`) a round starts at the later of having sent and having
received. Between phases, the first message of a connection waits for those last messages of earlier phases that touch
the same chunks. That all other waits between phases are kept is not proved but looked at in the times that come out:
they then satisfy every condition, and no earlier times can. Connections whose costs and neighbours are alike all round
the cycle have equal times, so only one of them is simulated; and once all connections advance by the same number of
ticks per round, they will for ever.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.jit import expected_work
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
from .ring_phases import RingPhase, connections_of

if TYPE_CHECKING:
    from commsim.core.cost import Framing
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.engine.flow_job import FlowJob
    from commsim.engine.trace_files import TraceFile

    from .between_phases import Claims, ConnectionWaits

Ticks = NDArray[np.int64]
# Rounds before the first test whether all connections advance alike; then after twice as many, and so on.
FIRST_LOOK = 16


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
        Claims of each phase; none where connections cannot overload a resource together.
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
    waits: tuple[tuple[ConnectionWaits, ...], ...] | None = ((),)
    claims: tuple[Claims, ...] = ()
    if len(phases) > 1:
        from .between_phases import find_all_waits

        waits = find_all_waits(phases, schedule.n_addresses)
    if shared.any():
        from .between_phases import claims_of

        claims = tuple(claims_of(costs, w, c.pace, shared) for w, c in zip(connection, sharing, strict=True))
    return None if waits is None else Rings(network, job, costs, phases, connection, waits, claims, sharing)


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
    last, per_connection = np.zeros(len(free), np.int64), np.zeros(len(free))
    times: list[tuple[Ticks, Ticks]] = []
    if len(rings.phases) > 1 or rings.claims:
        from .between_phases import ResourceLoad, first_starts

        load = ResourceLoad(costs.n_resources if rings.claims else 0)
    for i, (phase, w) in enumerate(zip(rings.phases, rings.connection, strict=True)):
        start = first_starts(free[w], rings.waits[i], times) if i else free[w]
        if start is None:
            return None
        ticks = [np.rint(seconds * scale).astype(np.int64) for seconds in phase_costs[i]]
        simulated = simulate_ring_phase(phase, rings.groups[i], start, last[w], ticks)
        if simulated is None or (rings.claims and not load.add(rings.claims[i], start, *simulated)):
            return None
        free[w], last[w] = simulated
        times.append(simulated)
        per_connection[w] += phase.n_rounds * n_bytes[i]
    end = float(max((done.max(initial=0) for _, done in times), default=0) / scale)
    carried = costs.routes.carried(per_connection, costs.n_links, costs.bundles)
    return one_job_result(
        rings.network, rings.job.schedule, size, entered=entered, last=end, carried=carried, counters={"events": 0.0}
    )


def simulate_ring_phase(
    phase: RingPhase, groups: LockstepGroups, start: Ticks, last: Ticks, costs: Sequence[Ticks]
) -> tuple[Ticks, Ticks] | None:
    """Simulate all rounds of a phase, for one connection of those that are alike.

    Parameters
    ----------
    phase : RingPhase
        Rounds, length and number of cycles.
    groups : LockstepGroups
        Wires that share links, and have to be in step.
    start, last : int64[n], ticks
        Time at which each connection may start, and at which its last message of an earlier phase was complete.
    costs : (int64[n], int64[n], int64[n]), ticks
        What sending, arriving and reducing take.

    Returns
    -------
    sent, done : int64[n], ticks
        When each connection's last message had left, and was complete; None if a group was not in step.
    """
    from .ring_phase_kernel import pass_on, pass_on_and_reduce

    table, alike = _alike(phase, start, last, costs)
    n_cycles = table.shape[2]
    start, done, send, latency, reduction = (a.ravel() for a in table)
    pairs = _pairs_in_step(groups.group, alike, send) if groups.n_groups else np.empty((0, 2), np.intp)
    if pairs is None:
        return None
    adds = any(reduces for _, reduces in phase.rounds) and bool(reduction.any())
    in_order = not adds and bool((done <= start + send + latency).all())  # then what arrives is complete
    sent, nothing = np.zeros_like(start), np.zeros_like(reduction)
    state: tuple[Ticks, ...] = (start,) if in_order else (start, done, sent)
    runs: list[tuple[int, Callable[[int], bool]]]
    if in_order:
        runs = [(phase.n_rounds - 1, functools.partial(pass_on, start, send, send + latency, pairs, n_cycles))]
    else:
        taken = [(n, (send, latency, reduction if reduces else nothing)) for n, reduces in phase.rounds]
        runs = [
            (n, functools.partial(pass_on_and_reduce, start, done, sent, costs, pairs, n_cycles)) for n, costs in taken
        ]
    for n_rounds, simulate in runs:
        for n in _to_simulate(state, n_rounds, table.shape[1]):
            with expected_work(4 * len(start) * n):
                if not simulate(n):
                    return None
    if in_order:
        sent, done = start + send, start + send + latency
        if (abs(start[pairs[:, 0]] - start[pairs[:, 1]]) > SLACK).any():  # a group is not in step
            return None
    return sent[alike], done[alike]


def _alike(
    phase: RingPhase, start: Ticks, last: Ticks, costs: Sequence[Ticks]
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Find the connections that go through the same: a row of a table for each kind, and the kind of each connection.

    Returns
    -------
    int64[5, length, n_cycles], int64[n]
        Start, last, and the three costs; which connection of the table each connection is like.
    """
    shape = phase.src.shape
    table = np.stack([a.reshape(shape) for a in (start, last, *costs)])
    which: NDArray[np.intp] = np.zeros(1, np.intp)
    if shape[1] > 1:
        rows = table.transpose(2, 0, 1).reshape(shape[1], -1)
        _, kept, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        table = table[:, :, kept]
    length, n_cycles = table.shape[1:]
    if phase.n_rounds > 1:  # the least number of connections after which all cycles repeat themselves
        divisors = (q for q in range(1, length) if length % q == 0)
        length = next((q for q in divisors if np.array_equal(table[:, q:], table[:, :-q])), length)
        table = table[:, :length]
    alike = (np.arange(shape[0]) % length)[:, np.newaxis] * n_cycles + which.ravel()
    return table.copy(), alike.ravel()


def _pairs_in_step(group: NDArray[np.int32], alike: NDArray[np.intp], send: Ticks) -> NDArray[np.intp] | None:
    """Pairs of classes of connections that must start together in every round; None if they take unequally long."""
    shares = np.flatnonzero(group >= 0)
    shares = shares[np.argsort(group[shares], kind="stable")]
    same = group[shares[1:]] == group[shares[:-1]]
    pairs = np.stack((alike[shares[:-1]], alike[shares[1:]]), axis=1)[same]
    if (abs(send[pairs[:, 0]] - send[pairs[:, 1]]) > SLACK).any():
        return None
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.unique(pairs, axis=0) if len(pairs) else pairs  # of none, to import numpy.ma would take longest


def _to_simulate(state: tuple[Ticks, ...], n_rounds: int, length: int = 1) -> Iterator[int]:
    """Yield how many rounds to simulate next, until all of the state advances by the same number of ticks.

    What comes after a round depends only on differences, so what advances all alike once, in one round or in several,
    does so for ever: the state after the rounds that are left is a product. Where the slowest connection sets the pace,
    one round is enough; where the way around a ring does, as many rounds as it has connections (the cyclicity of a
    max-plus matrix is the length of its critical circuit).

    Parameters
    ----------
    state : tuple of int64[n], ticks
        Times that the rounds modify in place.
    n_rounds : int
        Rounds in all.
    length : int
        Connections of a ring.

    References
    ----------
    Baccelli, Cohen, Olsder and Quadrat, "Synchronization and Linearity", 1992, section 3.7 (cyclicity).
    """
    look = FIRST_LOOK
    while n_rounds > 0:
        look = min(look, n_rounds)
        yield look
        n_rounds -= look
        look *= 2
        for several in (1, length) if 1 < length <= look else (1,):
            if n_rounds <= several:
                continue
            before = [a.copy() for a in state]
            yield several
            n_rounds -= several
            gain = np.concatenate([a - b for a, b in zip(state, before, strict=True)])
            if (gain == gain[0]).all():
                for a in state:
                    a += gain[0] * (n_rounds // several)
                n_rounds %= several
                look = max(1, n_rounds)
                break
