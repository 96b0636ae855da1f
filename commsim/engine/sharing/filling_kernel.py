"""Progressive filling of the slots that are open: their levels rise together, and freeze where a resource is full."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from ..flow_state import N_CHANGED, N_DIRTY, N_OPEN, N_TOUCHED
from ..queue_kernel import heap_fix
from .representative_kernel import note_full
from .unfreezing_kernel import open_above, open_held
from .users_kernel import NEW, OPEN, TIE, first_entry, free, last_entry, mark, taken


@njit_norefcount
def fill(t: Any, now: float, spreads: bool) -> None:
    """Raise the levels of all open slots together, freezing those that use a resource when it is full.

    Freezing a slot can only raise the level at which its other resources are full, so a key of the heap is a lower
    bound, looked at again when it comes out. With `spreads`, slots are opened that have a reason to change.
    """
    n_heap = _queue_touched(t, 0)
    level = 0.0
    while t.counter[N_OPEN] > 0 and n_heap > 0:
        r = t.full_heap[0]
        bound = t.full_at[r]
        n_heap = heap_fix(t.full_heap, n_heap, t.full_at, t.full_place, r, -1.0)
        if t.resource[r]["n_open"] == 0:
            note_full(t, r)
            continue
        full = free(t, r) / t.resource[r]["demand"]
        if full > bound * TIE and n_heap > 0 and full > t.full_at[t.full_heap[0]]:
            n_heap = heap_fix(t.full_heap, n_heap, t.full_at, t.full_place, r, full)
            continue
        level = full if full > level * TIE else level
        if spreads and t.resource[r]["top"] > level * TIE and open_above(t, r, level):
            n_heap = _queue_touched(t, n_heap)
            continue
        t.resource[r]["full"] = t.resource[r]["top"] = level
        for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
            if t.user[at]["level"] == OPEN:
                _freeze(t, t.user[at]["slot"], level, r, now)
        if spreads and t.counter[N_DIRTY] > 0:
            open_held(t)
            n_heap = _queue_touched(t, n_heap)
    for k in range(n_heap):
        t.full_place[t.full_heap[k]] = -1
        note_full(t, t.full_heap[k])


@njit_norefcount
def _queue_touched(t: Any, n_heap: int) -> int:
    """Queue the resources with new open users by the level at which they will be full, or less."""
    for k in range(t.counter[N_TOUCHED]):
        r = t.touched[k]
        t.resource[r]["touched"] = False
        bound = free(t, r) / t.resource[r]["demand"]
        if t.full_place[r] < 0 or bound < t.full_at[r]:
            n_heap = heap_fix(t.full_heap, n_heap, t.full_at, t.full_place, r, bound)
    t.counter[N_TOUCHED] = 0
    return n_heap


@njit_norefcount
def _freeze(t: Any, s: int, level: float, r: int, now: float) -> None:
    """Give slot `s` the level at which resource `r` is full."""
    old = t.slot[s]["level"]
    t.slot[s]["open"] = False
    t.counter[N_OPEN] -= 1
    falls = False
    if old == NEW or level > old * TIE or level * TIE < old:
        if old != NEW:
            done = old * t.slot[s]["weight"] * (now - t.slot[s]["since"])
            t.slot[s]["work"] = max(t.slot[s]["work"] - done, 0.0)
            falls = level < old
        t.slot[s]["level"], t.slot[s]["since"] = level, now
        note_changed(t, s)
    else:
        level = old
    for e in range(first_entry(t, s), last_entry(t, s)):
        q, at = t.entry[e]["resource"], t.entry[e]["place"]
        t.user[at]["level"] = level
        t.resource[q]["left"] -= taken(t, q, at)
        t.resource[q]["n_open"] -= 1
        t.resource[q]["demand"] = t.resource[q]["demand"] - t.user[at]["used"] if t.resource[q]["n_open"] > 0 else 0.0
        t.resource[q]["top"] = max(t.resource[q]["top"], level)
        if falls and q != r and t.resource[q]["full"] < np.inf:
            mark(t, q)


@njit_norefcount
def note_changed(t: Any, s: int) -> None:
    """List slot `s` among those whose level has changed, once."""
    if not t.slot[s]["changed"]:
        t.slot[s]["changed"] = True
        t.changed[t.counter[N_CHANGED]] = s
        t.counter[N_CHANGED] += 1
