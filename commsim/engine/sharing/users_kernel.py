"""Who uses what: slots enter and leave the users of their resources."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from ..flow_state import N_DIRTY, OVERHEAD, RECEIVING, REDUCING

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
