"""Simulate the rounds of one phase, and say what phases ask for together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import expected_work
from commsim.engine.flow_job import FULL

from .connection_costs import SLACK, LockstepGroups
from .ring_phases import RingPhase

Ticks = NDArray[np.int64]
LATEST = np.iinfo(np.int64).max
# Rounds before the first test whether all connections advance alike; then after twice as many, and so on.
FIRST_LOOK = 16


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
    pairs = _pairs_in_step(groups.group, alike, send)
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
    if phase.n_rounds > 1:
        table = table[:, : _period(table)]
    length, n_cycles = table.shape[1:]
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


def _period(table: NDArray[np.int64]) -> int:
    """Find the least number of connections after which all cycles repeat themselves."""
    length = table.shape[1]
    divisors = (q for q in range(1, length) if length % q == 0)
    return next((q for q in divisors if np.array_equal(table[:, q:], table[:, :-q])), length)


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


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """What the connections of one phase ask for of resources that phases could overload together.

    Parameters
    ----------
    connection, resource, part : int64[m], int64[m], float64[m]
        Rows; the first `n_links` of them are of links, the others of reduction units.
    n_links : int
        How many.
    """

    connection: NDArray[np.int64]
    resource: NDArray[np.int64]
    part: NDArray[np.float64]
    n_links: int


class ResourceLoad:
    """Whether phases that overlap in time ask for more of a resource than it has.

    The intervals in which phases use a resource form clusters: what begins when everything before has ended opens a new
    one. The parts of a cluster are added up; what reaches back before it is refused, since that is forgotten.

    Parameters
    ----------
    n_resources : int
        Links and reduction units, or 0 when phases can overload none.
    """

    def __init__(self, n_resources: int) -> None:
        self._since = np.zeros(n_resources, np.int64)
        self._busy = np.zeros(n_resources, np.int64)
        self._part = np.zeros(n_resources)

    def add(self, claims: Claims, start: Ticks, sent: Ticks, done: Ticks) -> bool:
        """Add a phase: when each connection started, had sent all and was complete; False if that may be too much."""
        if not len(claims.connection):
            return True
        used, row = np.unique(claims.resource, return_inverse=True)
        begin, end = np.full(len(used), LATEST), np.zeros(len(used), np.int64)
        np.minimum.at(begin, row, start[claims.connection])
        ended = np.where(np.arange(len(row)) < claims.n_links, sent[claims.connection], done[claims.connection])
        np.maximum.at(end, row, ended)
        part = np.bincount(row, weights=claims.part)
        opens = begin + SLACK >= self._busy[used]
        if (~opens & (begin + SLACK < self._since[used])).any():
            return False
        self._since[used] = np.where(opens, self._busy[used], self._since[used])
        self._part[used] = np.where(opens, part, self._part[used] + part)
        self._busy[used] = np.maximum(self._busy[used], end)
        return bool((self._part[used] <= FULL).all())
