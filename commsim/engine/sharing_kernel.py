"""Max-min fair sharing, again only where something changes.

A slot's *level* is its rate per weight. Progressive filling raises all levels together until a resource is full and
freezes the slots that use it, and so on. An allocation is the max-min fair one if, and only if, every slot uses a full
resource on which no level is higher than its own. So rates are kept as they are until there is a reason. Only those who
have one are *opened* (:mod:`.opening_kernel`) and filled again (:mod:`.filling_kernel`), in rising order of level.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2 (progressive filling; the condition).

Progressive filling of the slots that are open: their levels rise together, and freeze where a resource is full.

Classes of priority are filled one after the other; then all that hangs together is filled again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from .flow_state import N_BEGINNING, N_CHANGED, N_DIRTY, N_OPEN, N_OPENED, N_TOUCHED
from .queue_kernel import heap_fix
from .users_kernel import (
    NEW,
    OPEN,
    TIE,
    WAITING,
    first_entry,
    free,
    last_entry,
    list_for_others,
    mark,
    note_full,
    open_above,
    open_held,
    open_slot,
    taken,
    unmark,
)


@njit_norefcount
def share_again(t: Any, now: float, several_priorities: bool) -> None:
    """Find the levels of the slots that have entered, and of all that change with them or because others have left.

    Parameters
    ----------
    t : Tables
        ``t.beginning`` has the slots that entered; ``t.changed`` gets those whose level has changed; their
        flags are for the caller to take back.
    now : float, s
        Time; the work of changed slots is brought up to it.
    several_priorities : bool
        Whether classes of priority must be filled one after the other.
    """
    c = t.counter
    c[N_CHANGED] = c[N_OPENED] = c[N_TOUCHED] = 0
    if several_priorities:
        share_by_class(t, now)
        return
    open_held(t)
    for k in range(c[N_BEGINNING]):
        s = t.beginning[k]
        if _is_alone(t, s):
            _settle_alone(t, s, now)
        else:
            open_slot(t, s)
    fill(t, now, True)


@njit_norefcount
def _is_alone(t: Any, s: int) -> bool:
    """Whether slot `s` shares none of its resources."""
    for e in range(first_entry(t, s), last_entry(t, s)):  # noqa: SIM110 - Numba compiles no generator expressions
        if t.resource[t.entry[e]["resource"]]["n_users"] > 1:
            return False
    return True


@njit_norefcount
def _settle_alone(t: Any, s: int, now: float) -> None:
    """Give slot `s` all of what it uses."""
    level = np.inf
    for e in range(first_entry(t, s), last_entry(t, s)):
        level = min(level, free(t, t.entry[e]["resource"]) / t.user[t.entry[e]["place"]]["used"])
    t.slot[s]["level"], t.slot[s]["since"] = level, now
    note_changed(t, s)
    list_for_others(t, s)
    for e in range(first_entry(t, s), last_entry(t, s)):
        r, at = t.entry[e]["resource"], t.entry[e]["place"]
        full = free(t, r) / t.user[at]["used"] <= level * TIE
        t.user[at]["level"] = level
        t.resource[r]["left"] -= taken(t, r, at)
        t.resource[r]["full"] = level if full else np.inf
        t.resource[r]["top"] = level


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


@njit_norefcount
def share_by_class(t: Any, now: float) -> None:
    """Find the levels of all slots that are joined to those that have entered or left."""
    for k in range(t.counter[N_BEGINNING]):
        s = t.beginning[k]
        for e in range(first_entry(t, s), last_entry(t, s)):
            mark(t, t.entry[e]["resource"])
    _reopen_joined(t)
    while _open_class(t) > 0:
        fill(t, now, False)
        unmark(t)


@njit_norefcount
def _reopen_joined(t: Any) -> None:
    """Take their rates from all slots that are joined to a marked resource, and list them in ``t.opened``."""
    c = t.counter
    k = 0
    while k < c[N_DIRTY]:
        r = t.dirty[k]
        k += 1
        t.resource[r]["full"] = np.inf
        for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
            s = t.user[at]["slot"]
            if t.slot[s]["open"]:
                continue
            t.slot[s]["open"] = True
            t.opened[c[N_OPENED]] = s
            c[N_OPENED] += 1
            for e in range(first_entry(t, s), last_entry(t, s)):
                q, place = t.entry[e]["resource"], t.entry[e]["place"]
                if t.user[place]["level"] >= 0.0:
                    t.resource[q]["left"] += taken(t, q, place)
                t.user[place]["level"] = WAITING
                mark(t, q)
    unmark(t)
    for k in range(c[N_OPENED]):
        t.slot[t.opened[k]]["open"] = False


@njit_norefcount
def _open_class(t: Any) -> int:
    """Open those of the listed slots that go first, take them from the list, and count them."""
    first = 2**31 - 1
    n = t.counter[N_OPENED]
    for k in range(n):
        first = min(first, t.slot[t.opened[k]]["priority"])
    n_opened, left = 0, 0
    for k in range(n):
        s = t.opened[k]
        if t.slot[s]["priority"] == first:
            open_slot(t, s)
            n_opened += 1
        else:
            t.opened[left] = s
            left += 1
    t.counter[N_OPENED] = left
    return n_opened
