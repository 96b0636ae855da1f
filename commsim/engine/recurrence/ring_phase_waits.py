"""What the turns of a schedule wait for in earlier turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .ring_phases import Turn

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
