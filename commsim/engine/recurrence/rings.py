"""Rounds of rings: a recurrence over a vector of wires, in memory that does not grow with the number of rounds.

Within a turn (:mod:`commsim.engine.recurrence.ring_phases`) a round starts at the later of having sent and having
received.
Between turns, the first message of a wire waits for those last messages of earlier turns that touch the same chunks.
That all other waits between turns are kept is not proved but looked at in the times that come out: they then satisfy
every condition, and no earlier times can. Wires whose costs and neighbours are alike all round the cycle have equal
times, so only one of them is played; and once all wires advance by the same number of ticks per round, they will for
ever.

What the turns of a schedule wait for in earlier turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

from ..flow_plan import Job
from .connection_costs import SLACK, Companies, Lanes, companies, lanes_of, scale_for, shared_resources
from .ring_phase_times import Claims, Load, play_turn
from .ring_phases import Turn, wires_of

Ticks = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Rings:
    """A schedule of turns, and its wires.

    Parameters
    ----------
    job : Job
        What runs.
    lanes : Lanes
        All wires.
    turns : tuple of Turn
        In program order.
    wire : tuple of int64[n]
        Number among all wires of each wire of each turn.
    waits : tuple of tuple of Waits
        Of each turn, for each earlier one.
    claims : tuple of Claims
        Of each turn.
    companies : tuple of Companies
        Wires of each turn that share links.
    """

    job: Job
    lanes: Lanes
    turns: tuple[Turn, ...]
    wire: tuple[NDArray[np.int64], ...]
    waits: tuple[tuple[Waits, ...], ...]
    claims: tuple[Claims, ...]
    companies: tuple[Companies, ...]


def plan_rings(network: Network, job: Job, turns: tuple[Turn, ...], *, routing: str | None, seed: int) -> Rings | None:
    """Lay out the wires of the turns of a schedule.

    Returns
    -------
    Rings or None
        None if receiving costs something, wires of one turn share links at different rates, or reduction units at
        all, or too many wires meet.
    """
    schedule = job.schedule
    ends, channel, wire = wires_of(turns, schedule.n_participants)
    reduces = np.zeros(len(ends), bool)
    for turn, w in zip(turns, wire, strict=True):
        reduces[w] |= any(adds for _, adds in turn.rounds)
    lanes = lanes_of(network, job, ends, channel, reduces, routing=routing, seed=seed)
    if lanes is None:
        return None
    shared = shared_resources(lanes)
    found = [companies(lanes, w.astype(np.int32), np.array([0, len(w)])) for w in wire]
    sharing = tuple(c for c in found if c is not None)
    if len(sharing) < len(found) or any(_units_shared(lanes, w) for w in wire):
        return None
    waits = find_all_waits(turns, schedule.n_addresses)
    if waits is None:
        return None
    claims = tuple(_claims(lanes, w, c.pace, shared) for w, c in zip(wire, sharing, strict=True))
    return Rings(job, lanes, turns, wire, waits, claims, sharing)


def _units_shared(lanes: Lanes, wire: NDArray[np.int64]) -> bool:
    used = lanes.unit[wire]
    return bool((np.bincount(used[used >= 0], minlength=1) > 1).any())


def _claims(lanes: Lanes, wire: NDArray[np.int64], pace: NDArray[np.float64], shared: NDArray[np.bool_]) -> Claims:
    """Collect the rows of a turn's wires that are of resources in question."""
    if not shared.any():
        return Claims(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), 0)
    place = np.full(len(lanes.ends), -1)
    place[wire] = np.arange(len(wire))
    first, link, part = lanes.rows
    of_row = place[np.repeat(np.arange(len(lanes.ends)), np.diff(first))]
    links = np.flatnonzero((of_row >= 0) & shared[link])
    units = np.flatnonzero((lanes.unit[wire] >= 0) & shared[lanes.unit[wire]])
    slower = np.ones(len(wire))
    np.divide(lanes.per_byte[wire], pace, out=slower, where=pace > 0)
    return Claims(
        np.concatenate((of_row[links], units)),
        np.concatenate((link[links], lanes.unit[wire][units])).astype(np.int64),
        np.concatenate((part[links] * slower[of_row[links]], np.ones(len(units)))),
        len(links),
    )


def play_rings(rings: Rings, n_bytes: tuple[NDArray[np.float64], ...], starts: NDArray[np.float64]) -> float | None:
    """Find when everything is complete.

    Parameters
    ----------
    rings : Rings
        From :func:`plan_rings`.
    n_bytes : tuple of float64[n], bytes
        Of a message of each wire of each turn, headers included.
    starts : float64[n_participants], s
        When each participant enters.

    Returns
    -------
    float or None, s
        None if a link might have been shared, or something other than what was assumed might have had to be waited for.
    """
    lanes = rings.lanes
    costs = [
        (lanes.overhead[w] + b * c.pace, lanes.latency[w], b * lanes.gamma[w] * any(adds for _, adds in turn.rounds))
        for turn, w, b, c in zip(rings.turns, rings.wire, n_bytes, rings.companies, strict=True)
    ]
    chain = sum(t.n_rounds * float((a + b + c).max()) for t, (a, b, c) in zip(rings.turns, costs, strict=True))
    scale = scale_for(float(starts.max()) + chain)
    free = np.floor(starts[lanes.ends].max(axis=1, initial=0.0) * scale).astype(np.int64)
    last = np.zeros(len(free), np.int64)
    sent: list[Ticks] = []
    done: list[Ticks] = []
    load = Load(lanes.n_resources if any(len(c.wire) for c in rings.claims) else 0)
    for i, turn in enumerate(rings.turns):
        w, waits = rings.wire[i], rings.waits[i]
        start = free[w]
        ends = [np.where(p.sent, sent[i][p.theirs], done[i][p.theirs]) for i, p in enumerate(waits)]
        for p, end in zip(waits, ends, strict=True):
            np.maximum.at(start, p.mine[p.certain], end[p.certain])
        if any((start[p.mine] + SLACK < end).any() for p, end in zip(waits, ends, strict=True)):
            return None
        played = play_turn(turn, rings.companies[i], start, last[w], [_ticks(c, scale) for c in costs[i]])
        if played is None or not load.add(rings.claims[i], start, *played):
            return None
        free[w], last[w] = played
        sent.append(played[0])
        done.append(played[1])
    return float(max((d.max(initial=0) for d in done), default=0) / scale)


def _ticks(seconds: NDArray[np.float64], scale: float) -> Ticks:
    return np.rint(seconds * scale).astype(np.int64)


Whole = NDArray[np.int64]

MAX_MEETINGS = 2**24
"""Pairs of wires that are looked at: what sends from all to all twice has a pair for every three ranks."""


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """Pairs of wires of two turns, of which the later one may wait for the earlier one.

    Parameters
    ----------
    mine, theirs : int64[n]
        Wires of the later and of the earlier turn, in rows.
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


def find_all_waits(turns: Sequence[Turn], n_addresses: int) -> tuple[tuple[Waits, ...], ...] | None:
    """Find what each turn waits for in each earlier one; None where too many wires meet to look at."""
    pairs = [(later, earlier) for i, later in enumerate(turns) for earlier in turns[:i]]
    if sum(_n_meetings(later, earlier) for later, earlier in pairs) > MAX_MEETINGS:
        return None
    return tuple(
        tuple(find_waits(later, earlier, n_addresses) for earlier in turns[:i]) for i, later in enumerate(turns)
    )


def find_waits(later: Turn, earlier: Turn, n_addresses: int) -> Waits:
    """Find the wires that meet at a participant and may touch the same chunks there."""
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
    return Waits(mine[kept], theirs[kept], sent[kept], certain[kept])


def _n_meetings(later: Turn, earlier: Turn) -> int:
    """How many pairs :func:`_meetings` would find."""
    n = 1 + max(int(ends.max(initial=0)) for ends in (later.src, later.dst, earlier.src, earlier.dst))
    reads, writes, sends, receives = (
        np.bincount(ends.ravel(), minlength=n) for ends in (later.src, later.dst, earlier.src, earlier.dst)
    )
    return int((reads + writes) @ receives + writes @ sends)


def _meetings(later: Turn, earlier: Turn) -> tuple[Whole, Whole, NDArray[np.bool_]]:
    """Pairs of wires that meet: what arrived where one reads, and what arrived and left where it writes."""
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


def _hull(turn: Turn) -> tuple[Whole, Whole]:
    """First address that any message of each cycle touches, and the end."""
    return turn.address.min(axis=0), (turn.address + turn.count).max(axis=0)


def _carries(turn: Turn, wire: tuple[Whole, Whole], hull: tuple[Whole, Whole], n_addresses: int) -> NDArray[np.bool_]:
    """Whether each wire may carry something of an address range: False where that is in a message it never carries."""
    length, n_cycles = turn.src.shape
    place = np.argsort(turn.address, axis=0)
    starts = np.take_along_axis(turn.address, place, axis=0) + np.arange(n_cycles) * n_addresses
    found = np.searchsorted(starts.T.ravel(), hull[0] + wire[1] * n_addresses, side="right") - 1
    inside = found >= wire[1] * length
    message = place[found % length, wire[1]]
    inside &= hull[1] <= turn.address[message, wire[1]] + turn.count[message, wire[1]]
    return np.asarray(~inside | ((wire[0] - message) % length < turn.n_rounds))
