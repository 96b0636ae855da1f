"""What phases of rings ask of each other: which connections wait for which, and resources that phases share.

It is not loaded for a schedule of one phase that is alone on its links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.engine.flow_job import FULL

from .connection_costs import SLACK, ConnectionCosts
from .ring_phases import RingPhase

Ticks = NDArray[np.int64]
Whole = NDArray[np.int64]
# Pairs of connections that are looked at: what sends from all to all twice has a pair for every three ranks.
MAX_MEETINGS = 2**24
LATEST = np.iinfo(np.int64).max


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


def first_starts(free: Ticks, waits: Sequence[ConnectionWaits], times: Sequence[tuple[Ticks, Ticks]]) -> Ticks | None:
    """Return when each connection of a phase may start; None if one may have to wait for what was not foreseen."""
    start = free.copy()
    ends = [np.where(p.sent, sent[p.theirs], done[p.theirs]) for p, (sent, done) in zip(waits, times, strict=True)]
    for p, end in zip(waits, ends, strict=True):
        np.maximum.at(start, p.mine[p.certain], end[p.certain])
    late = any((start[p.mine] + SLACK < end).any() for p, end in zip(waits, ends, strict=True))
    return None if late else start


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


def claims_of(
    costs: ConnectionCosts, connection: NDArray[np.int64], pace: NDArray[np.float64], shared: NDArray[np.bool_]
) -> Claims:
    """Collect the rows of a phase's connections that are of resources in question."""
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
