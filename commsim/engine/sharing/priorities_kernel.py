"""Classes of priority are filled one after the other; then all that hangs together is filled again."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from ..flow_state import N_BEGINNING, N_DIRTY, N_OPENED
from .filling_kernel import fill
from .unfreezing_kernel import open_slot
from .users_kernel import WAITING, first_entry, last_entry, mark, taken, unmark


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
