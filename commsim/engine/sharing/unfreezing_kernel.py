"""Who is to be looked at again: slots are opened that have a reason to change.

Those who are on a full resource that somebody leaves, or takes less of, may get more; those above the level at which a
resource becomes full must get less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from ..flow_state import N_DIRTY, N_OPEN, N_TOUCHED
from .representative_kernel import list_for_others
from .users_kernel import OPEN, TIE, first_entry, last_entry, taken

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
