"""Max-min fair sharing, again only where something changes.

A slot's *level* is its rate per weight. Progressive filling raises all levels together until a resource is full and
freezes the slots that use it, and so on. An allocation is the max-min fair one if, and only if, every slot uses a full
resource on which no level is higher than its own. So rates are kept as they are until there is a reason. Only those who
have one are *opened* (:mod:`.opening_kernel`) and filled again (:mod:`.filling_kernel`), in rising order of level.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2 (progressive filling; the condition).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from ..flow_state import N_BEGINNING, N_CHANGED, N_OPENED, N_TOUCHED
from .filling_kernel import fill, note_changed
from .priorities_kernel import share_by_class
from .representative_kernel import list_for_others
from .unfreezing_kernel import open_held, open_slot
from .users_kernel import TIE, first_entry, free, last_entry, taken


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
