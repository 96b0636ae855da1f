"""Who uses what: slots enter and leave the users of their resources.

Who is to be looked at again: slots are opened that have a reason to change.

Those who are on a full resource that somebody leaves, or takes less of, may get more; those above the level at which a
resource becomes full must get less.

Slots that stand for others, who use what they use, or part of it, and who might have more than they.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from .flow_state import N_DIRTY, N_EVENTS, N_OPEN, N_OPENED, N_TOUCHED, OVERHEAD, RECEIVING, REDUCING

TIE = 1.0 + 1e-12  # levels this close are one level: they differ by rounding only
NEW = -1.0  # level of a slot that has just entered
OPEN, WAITING = -1.0, -2.0  # levels of users that are being looked for, now or after others


@njit_norefcount
def first_entry(t: Any, s: int) -> int:
    """First of the entries that the slot uses in its phase."""
    first: int = t.slot[s]["port"] if t.slot[s]["phase"] == REDUCING else t.slot[s]["begin"]
    return first


@njit_norefcount
def last_entry(t: Any, s: int) -> int:
    """End of the entries that the slot uses in its phase."""
    uses_port = t.slot[s]["phase"] in (OVERHEAD, RECEIVING)
    last: int = t.slot[s]["port"] if uses_port else t.slot[s]["end"]
    return last


@njit_norefcount
def enter(t: Any, s: int) -> None:
    """Put slot `s` among the users of its resources."""
    t.slot[s]["level"] = NEW
    for e in range(first_entry(t, s), last_entry(t, s)):
        r = t.entry[e]["resource"]
        at = t.resource[r]["first"] + t.resource[r]["n_users"]
        t.resource[r]["n_users"] += 1
        t.user[at]["level"] = WAITING
        t.user[at]["used"] = t.slot[s]["weight"] * t.entry[e]["share"]
        t.user[at]["entry"], t.user[at]["slot"] = e, s
        t.entry[e]["place"] = at


@njit_norefcount
def leave(t: Any, s: int) -> None:
    """Take slot `s` from the users of its resources."""
    for e in range(first_entry(t, s), last_entry(t, s)):
        r = t.entry[e]["resource"]
        at = t.entry[e]["place"]
        t.resource[r]["left"] += taken(t, r, at)
        t.resource[r]["n_users"] -= 1
        last = t.resource[r]["first"] + t.resource[r]["n_users"]
        if at != last:
            t.user[at]["level"], t.user[at]["used"] = t.user[last]["level"], t.user[last]["used"]
            t.user[at]["entry"], t.user[at]["slot"] = t.user[last]["entry"], t.user[last]["slot"]
            t.entry[t.user[at]["entry"]]["place"] = at
        if t.resource[r]["n_users"] == 0:
            t.resource[r]["full"] = np.inf
        mark(t, r)


@njit_norefcount
def taken(t: Any, r: int, at: int) -> int:
    """Return what a user takes of resource `r`, in its units."""
    return int(t.user[at]["level"] * t.user[at]["used"] * t.resource[r]["per_unit"])


@njit_norefcount
def free(t: Any, r: int) -> float:
    """Return what of resource `r` is not given away."""
    rest: float = max(t.resource[r]["left"], 0) * t.resource[r]["unit"]
    return rest


@njit_norefcount
def mark(t: Any, r: int) -> None:
    """List resource `r`, once, as one that somebody has left or takes less of."""
    if not t.resource[r]["dirty"]:
        t.resource[r]["dirty"] = True
        t.dirty[t.counter[N_DIRTY]] = r
        t.counter[N_DIRTY] += 1


@njit_norefcount
def unmark(t: Any) -> None:
    """Forget the marked resources."""
    for k in range(t.counter[N_DIRTY]):
        t.resource[t.dirty[k]]["dirty"] = False
    t.counter[N_DIRTY] = 0


SLACK = 1.0 - 1e-9  # a little more is looked at than need be, so that rounding cannot hide a slot


@njit_norefcount
def open_slot(t: Any, s: int) -> None:
    """Let the level of slot `s` be looked for; what it had is free again."""
    if t.slot[s]["open"]:
        return
    t.slot[s]["open"] = True
    t.counter[N_OPEN] += 1
    list_for_others(t, s)
    for e in range(first_entry(t, s), last_entry(t, s)):
        r, at = t.entry[e]["resource"], t.entry[e]["place"]
        if t.user[at]["level"] >= 0.0:
            t.resource[r]["left"] += taken(t, r, at)
        t.user[at]["level"] = OPEN
        t.resource[r]["demand"] += t.user[at]["used"]
        t.resource[r]["n_open"] += 1
        if not t.resource[r]["touched"]:
            t.resource[r]["touched"] = True
            t.touched[t.counter[N_TOUCHED]] = r
            t.counter[N_TOUCHED] += 1


@njit_norefcount
def open_held(t: Any) -> None:
    """Open those whom the marked resources hold down: somebody has left, or takes less."""
    for k in range(t.counter[N_DIRTY]):
        r = t.dirty[k]
        if t.resource[r]["dirty"] and t.resource[r]["full"] < np.inf:
            low = t.resource[r]["full"] * SLACK
            t.resource[r]["full"] = np.inf
            for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
                if t.user[at]["level"] >= low:
                    open_slot(t, t.user[at]["slot"])
        t.resource[r]["dirty"] = False
    t.counter[N_DIRTY] = 0


@njit_norefcount
def open_above(t: Any, r: int, level: float) -> bool:
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
        whole = max(t.resource[r]["left"], 0)
        demand = t.resource[r]["demand"]
        for k in range(n):
            whole += taken(t, r, t.raised[k])
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
        open_slot(t, t.user[t.raised[k]]["slot"])
    if n == 0:
        t.resource[r]["top"] = top
    return n > 0


ROUNDING = 2**20  # units of a resource, of which 2^60 or more are all of it, that are as good as none
MASK, ODD = 2**31 - 1, 0x2C1B3C6D


@njit_norefcount
def list_for_others(t: Any, s: int) -> None:
    """Remember to look at those for whom slot `s` stands."""
    if t.stands[0] and not t.slot[s]["listed"]:
        t.slot[s]["listed"] = True
        t.opened[t.counter[N_OPENED]] = s
        t.counter[N_OPENED] += 1


@njit_norefcount
def note_full(t: Any, r: int) -> None:
    """Note whether resource `r` is full as well, though others have frozen all that use it: ties matter to variants."""
    if t.stands[0] and t.resource[r]["left"] <= ROUNDING:
        top = 0.0
        for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
            top = max(top, t.user[at]["level"])
        t.resource[r]["full"] = top


@njit_norefcount
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
