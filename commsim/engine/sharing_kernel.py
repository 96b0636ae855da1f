"""Max-min fair sharing, again only where something changes.

A slot's *level* is its rate per weight. Progressive filling raises all levels together until a resource is full and
freezes the slots that use it, and so on. An allocation is the max-min fair one if, and only if, every slot uses a full
resource on which no level is higher than its own. So rates are kept as they are until there is a reason: those who are
on a full resource that somebody leaves, or takes less of, may get more; those above the level at which a resource
becomes full must get less. Only these are *opened* and filled again, in rising order of level.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2 (progressive filling; the condition).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import uncounted

from .flow_state import (
    N_BEGINNING,
    N_CHANGED,
    N_DIRTY,
    N_EVENTS,
    N_OPEN,
    N_OPENED,
    N_TOUCHED,
    OVERHEAD,
    RECEIVING,
    REDUCING,
)
from .queue_kernel import heap_fix

TIE = 1.0 + 1e-12  # levels this close are one level: they differ by rounding only
SLACK = 1.0 - 1e-9  # a little more is looked at than need be, so that rounding cannot hide a slot
NEW = -1.0  # level of a slot that has just entered
MASK, ODD = 2**31 - 1, 0x2C1B3C6D
OPEN, WAITING = -1.0, -2.0  # levels of users that are being looked for, now or after others


@uncounted
def first_entry(t: Any, s: int) -> int:
    """First of the entries that the slot uses in its phase."""
    first: int = t.slot[s]["port"] if t.slot[s]["phase"] == REDUCING else t.slot[s]["begin"]
    return first


@uncounted
def last_entry(t: Any, s: int) -> int:
    """End of the entries that the slot uses in its phase."""
    uses_port = t.slot[s]["phase"] in (OVERHEAD, RECEIVING)
    last: int = t.slot[s]["port"] if uses_port else t.slot[s]["end"]
    return last


@uncounted
def enter(t: Any, s: int) -> None:
    """Put slot `s` among the users of its resources."""
    t.slot[s]["level"] = NEW
    for e in range(first_entry(t, s), last_entry(t, s)):
        r = t.entry[e]["resource"]
        at = t.resource[r]["first"] + t.resource[r]["n_users"]
        t.resource[r]["n_users"] += 1
        t.user[at]["level"] = WAITING
        t.user[at]["used"] = t.slot[s]["weight"] * t.entry[e]["share"]
        t.user[at]["entry"] = e
        t.entry[e]["place"] = at


@uncounted
def leave(t: Any, s: int) -> None:
    """Take slot `s` from the users of its resources."""
    for e in range(first_entry(t, s), last_entry(t, s)):
        r = t.entry[e]["resource"]
        at = t.entry[e]["place"]
        t.resource[r]["taken"] -= _taken(t, r, at)
        t.resource[r]["n_users"] -= 1
        last = t.resource[r]["first"] + t.resource[r]["n_users"]
        if at != last:
            t.user[at]["level"], t.user[at]["used"] = t.user[last]["level"], t.user[last]["used"]
            t.user[at]["entry"] = t.user[last]["entry"]
            t.entry[t.user[at]["entry"]]["place"] = at
        if t.resource[r]["n_users"] == 0:
            t.resource[r]["full"] = np.inf
        _mark(t, r)


@uncounted
def _taken(t: Any, r: int, at: int) -> int:
    """Return what a user takes of resource `r`, in its units."""
    return int(t.user[at]["level"] * t.user[at]["used"] * t.resource[r]["per_unit"])


@uncounted
def _mark(t: Any, r: int) -> None:
    if not t.resource[r]["dirty"]:
        t.resource[r]["dirty"] = True
        t.dirty[t.counter[N_DIRTY]] = r
        t.counter[N_DIRTY] += 1


@uncounted
def _unmark(t: Any) -> None:
    for k in range(t.counter[N_DIRTY]):
        t.resource[t.dirty[k]]["dirty"] = False
    t.counter[N_DIRTY] = 0


@uncounted
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
        Whether classes of priority must be filled one after the other; then all that hangs together is filled again.
    """
    c = t.counter
    c[N_CHANGED] = c[N_OPENED] = c[N_TOUCHED] = 0
    if several_priorities:
        for k in range(c[N_BEGINNING]):
            s = t.beginning[k]
            for e in range(first_entry(t, s), last_entry(t, s)):
                _mark(t, t.entry[e]["resource"])
        _reopen_joined(t)
        while _open_class(t) > 0:
            _fill(t, now, False)
            _unmark(t)
        return
    _loosen(t)
    for k in range(c[N_BEGINNING]):
        s = t.beginning[k]
        if _is_alone(t, s):
            _settle_alone(t, s, now)
        else:
            _open(t, s)
    _fill(t, now, True)


@uncounted
def _is_alone(t: Any, s: int) -> bool:
    """Whether slot `s` shares none of its resources."""
    for e in range(first_entry(t, s), last_entry(t, s)):  # noqa: SIM110 - Numba compiles no generator expressions
        if t.resource[t.entry[e]["resource"]]["n_users"] > 1:
            return False
    return True


@uncounted
def _settle_alone(t: Any, s: int, now: float) -> None:
    """Give slot `s` all of what it uses."""
    level = np.inf
    for e in range(first_entry(t, s), last_entry(t, s)):
        level = min(level, t.resource[t.entry[e]["resource"]]["capacity"] / t.user[t.entry[e]["place"]]["used"])
    t.slot[s]["level"], t.slot[s]["since"] = level, now
    _note(t, s)
    _list_for_others(t, s)
    for e in range(first_entry(t, s), last_entry(t, s)):
        r, at = t.entry[e]["resource"], t.entry[e]["place"]
        full = t.resource[r]["capacity"] / t.user[at]["used"] <= level * TIE
        t.user[at]["level"] = level
        t.resource[r]["taken"] += _taken(t, r, at)
        t.resource[r]["full"] = level if full else np.inf
        t.resource[r]["top"] = level


@uncounted
def _note(t: Any, s: int) -> None:
    """List slot `s` among those whose level has changed, once."""
    if not t.slot[s]["changed"]:
        t.slot[s]["changed"] = True
        t.changed[t.counter[N_CHANGED]] = s
        t.counter[N_CHANGED] += 1


@uncounted
def _list_for_others(t: Any, s: int) -> None:
    """Remember to look at those for whom slot `s` stands."""
    if t.stands[0] and not t.slot[s]["listed"]:
        t.slot[s]["listed"] = True
        t.opened[t.counter[N_OPENED]] = s
        t.counter[N_OPENED] += 1


@uncounted
def mark_broken(t: Any) -> None:
    """Mark the variants of slots that could have more: none of what they use in this phase holds them down.

    The others use, at one time, the same kinds of resources as the slot, or fewer; so theirs are not overloaded. With
    a full resource on which nobody has more, each has its max-min fair rate.
    """
    for k in range(t.counter[N_OPENED]):
        s = t.opened[k]
        t.slot[s]["listed"] = False
        begin, end, level = first_entry(t, s), last_entry(t, s), t.slot[s]["level"] * TIE * TIE
        for v in range(t.variants[s], t.variants[s + 1]):
            held = False
            for j in range(t.variant[v], t.variant[v + 1]):
                e = t.variant_entry[j]
                held = held or (begin <= e < end and t.resource[t.entry[e]["resource"]]["full"] <= level)
            if not held:
                t.broken[v] = ((t.broken[v] ^ t.counter[N_EVENTS]) & MASK) * ODD & MASK | 1
    t.counter[N_OPENED] = 0


@uncounted
def _open(t: Any, s: int) -> None:
    """Let the level of slot `s` be looked for; what it had is free again."""
    if t.slot[s]["open"]:
        return
    t.slot[s]["open"] = True
    t.counter[N_OPEN] += 1
    _list_for_others(t, s)
    for e in range(first_entry(t, s), last_entry(t, s)):
        r, at = t.entry[e]["resource"], t.entry[e]["place"]
        if t.user[at]["level"] >= 0.0:
            t.resource[r]["taken"] -= _taken(t, r, at)
        t.user[at]["level"] = OPEN
        t.resource[r]["demand"] += t.user[at]["used"]
        t.resource[r]["n_open"] += 1
        if not t.resource[r]["touched"]:
            t.resource[r]["touched"] = True
            t.touched[t.counter[N_TOUCHED]] = r
            t.counter[N_TOUCHED] += 1


@uncounted
def _loosen(t: Any) -> None:
    """Open those whom the marked resources hold down: somebody has left, or takes less."""
    for k in range(t.counter[N_DIRTY]):
        r = t.dirty[k]
        if t.resource[r]["dirty"] and t.resource[r]["full"] < np.inf:
            low = t.resource[r]["full"] * SLACK
            t.resource[r]["full"] = np.inf
            for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
                if t.user[at]["level"] >= low:
                    _open(t, t.entry[t.user[at]["entry"]]["slot"])
        t.resource[r]["dirty"] = False
    t.counter[N_DIRTY] = 0


@uncounted
def _free(t: Any, r: int) -> float:
    """Return what of resource `r` is not given away."""
    free: float = max(t.resource[r]["whole"] - t.resource[r]["taken"], 0) * t.resource[r]["unit"]
    return free


@uncounted
def _queue_touched(t: Any, n_heap: int) -> int:
    """Queue the resources with new open users by the level at which they will be full, or less."""
    for k in range(t.counter[N_TOUCHED]):
        r = t.touched[k]
        t.resource[r]["touched"] = False
        bound = _free(t, r) / t.resource[r]["demand"]
        if t.full_place[r] < 0 or bound < t.full_at[r]:
            n_heap = heap_fix(t.full_heap, n_heap, t.full_at, t.full_place, r, bound)
    t.counter[N_TOUCHED] = 0
    return n_heap


@uncounted
def _fill(t: Any, now: float, spreads: bool) -> None:
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
            _note_full(t, r)
            continue
        full = _free(t, r) / t.resource[r]["demand"]
        if full > bound * TIE and n_heap > 0 and full > t.full_at[t.full_heap[0]]:
            n_heap = heap_fix(t.full_heap, n_heap, t.full_at, t.full_place, r, full)
            continue
        level = full if full > level * TIE else level
        if spreads and t.resource[r]["top"] > level * TIE and _open_above(t, r, level):
            n_heap = _queue_touched(t, n_heap)
            continue
        t.resource[r]["full"] = t.resource[r]["top"] = level
        for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
            if t.user[at]["level"] == OPEN:
                _freeze(t, t.entry[t.user[at]["entry"]]["slot"], level, r, now)
        if spreads and t.counter[N_DIRTY] > 0:
            _loosen(t)
            n_heap = _queue_touched(t, n_heap)
    for k in range(n_heap):
        t.full_place[t.full_heap[k]] = -1
        _note_full(t, t.full_heap[k])


@uncounted
def _note_full(t: Any, r: int) -> None:
    """Note whether resource `r` is full as well, though others have frozen all that use it: ties matter to variants."""
    if t.stands[0] and _free(t, r) <= t.resource[r]["capacity"] * (TIE - 1.0):
        top = 0.0
        for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
            top = max(top, t.user[at]["level"])
        t.resource[r]["full"] = top


@uncounted
def _open_above(t: Any, r: int, level: float) -> bool:
    """Open the users of resource `r` whose levels are above the one at which it will be full; say whether any are.

    That level rises as they are opened. Newton's method finds it: from below, since what the users take together is a
    concave function of the level.
    """
    n = 0
    top = level
    for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
        if t.user[at]["level"] > level * TIE:
            t.raised[n] = at
            n += 1
    while n > 0:
        whole = max(t.resource[r]["whole"] - t.resource[r]["taken"], 0)
        demand = t.resource[r]["demand"]
        for k in range(n):
            whole += _taken(t, r, t.raised[k])
            demand += t.user[t.raised[k]]["used"]
        level = whole * t.resource[r]["unit"] / demand
        m = 0
        for k in range(n):
            if t.user[t.raised[k]]["level"] > level * TIE:
                t.raised[m] = t.raised[k]
                m += 1
        if m == n:
            break
        n = m
    for k in range(n):
        _open(t, t.entry[t.user[t.raised[k]]["entry"]]["slot"])
    if n == 0:
        t.resource[r]["top"] = top
    return n > 0


@uncounted
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
        _note(t, s)
    else:
        level = old
    for e in range(first_entry(t, s), last_entry(t, s)):
        q, at = t.entry[e]["resource"], t.entry[e]["place"]
        t.user[at]["level"] = level
        t.resource[q]["taken"] += _taken(t, q, at)
        t.resource[q]["n_open"] -= 1
        t.resource[q]["demand"] = t.resource[q]["demand"] - t.user[at]["used"] if t.resource[q]["n_open"] > 0 else 0.0
        t.resource[q]["top"] = max(t.resource[q]["top"], level)
        if falls and q != r and t.resource[q]["full"] < np.inf:
            _mark(t, q)


@uncounted
def _reopen_joined(t: Any) -> None:
    """Take their rates from all slots that are joined to a marked resource, and list them in ``t.opened``."""
    c = t.counter
    k = 0
    while k < c[N_DIRTY]:
        r = t.dirty[k]
        k += 1
        t.resource[r]["full"] = np.inf
        for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
            s = t.entry[t.user[at]["entry"]]["slot"]
            if t.slot[s]["open"]:
                continue
            t.slot[s]["open"] = True
            t.opened[c[N_OPENED]] = s
            c[N_OPENED] += 1
            for e in range(first_entry(t, s), last_entry(t, s)):
                q, place = t.entry[e]["resource"], t.entry[e]["place"]
                if t.user[place]["level"] >= 0.0:
                    t.resource[q]["taken"] -= _taken(t, q, place)
                t.user[place]["level"] = WAITING
                _mark(t, q)
    _unmark(t)
    for k in range(c[N_OPENED]):
        t.slot[t.opened[k]]["open"] = False


@uncounted
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
            _open(t, s)
            n_opened += 1
        else:
            t.opened[left] = s
            left += 1
    t.counter[N_OPENED] = left
    return n_opened
