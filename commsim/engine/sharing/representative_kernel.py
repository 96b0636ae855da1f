"""Slots that stand for others, who use what they use, or part of it, and who might have more than they."""

from __future__ import annotations

from typing import Any

from commsim.core.jit import njit_norefcount

from ..flow_state import N_EVENTS, N_OPENED
from .users_kernel import TIE, first_entry, last_entry

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
