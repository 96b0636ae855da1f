"""Users of resources: flows enter and leave them, and are unfrozen when they have a reason to change.

A flow on a full resource that another leaves, or takes less of, may get more; one above the fair rate at which a
resource becomes full must get less.

A flow may be a representative of others, which use what it uses or part of it; these are its *variants*. Those that
could have more than it has are marked.
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount

from .flow_state import OVERHEAD, RECEIVING, FlowState

TIE = 1.0 + 1e-12  # fair rates this close are one fair rate: they differ by rounding only
NEW = -1.0  # fair rate of a flow that has just entered
UNFROZEN, WAITING = -1.0, -2.0  # fair rates of users that are being looked for, now or after others
SLACK = 1.0 - 1e-9  # a little more is looked at than need be, so that rounding cannot hide a flow
ROUNDING = 2**20  # units of a resource(2^60 or more are all of it) that are as good as none
MASK, ODD = 2**31 - 1, 0x2C1B3C6D


@njit_norefcount
def first_link(t: FlowState, s: int) -> int:
    """First of the flow links that the flow uses in its phase."""
    pays = t.flow[s]["phase"] in (OVERHEAD, RECEIVING)
    first: int = t.flow[s]["begin"] if pays else t.flow[s]["data"]
    return first


@njit_norefcount
def end_link(t: FlowState, s: int) -> int:
    """End of the flow links that the flow uses in its phase."""
    pays = t.flow[s]["phase"] in (OVERHEAD, RECEIVING)
    last: int = t.flow[s]["port"] if pays else t.flow[s]["end"]
    return last


@njit_norefcount
def enter(t: FlowState, s: int) -> None:
    """Put flow `s` among the users of its resources."""
    t.flow[s]["fair_rate"] = NEW
    for e in range(first_link(t, s), end_link(t, s)):
        r = t.resource_of[e]
        at = t.resource[r]["first"] + t.resource[r]["n_users"]
        t.resource[r]["n_users"] += 1
        t.user[at]["fair_rate"] = WAITING
        t.user[at]["flow_link"], t.user[at]["flow"] = e, s
        t.place[e] = at


@njit_norefcount
def leave(t: FlowState, s: int, several_priorities: bool) -> None:
    """Take flow `s` from the users of its resources, and mark those that limited others.

    With several priorities all are marked: flows that are joined by any resource are filled together.
    """
    for e in range(first_link(t, s), end_link(t, s)):
        r = t.resource_of[e]
        at = t.place[e]
        t.resource[r]["left"] += use_of_user(t, r, at, use_of_flow(t, s, e))
        t.resource[r]["n_users"] -= 1
        last = t.resource[r]["first"] + t.resource[r]["n_users"]
        if at != last:
            t.user[at]["fair_rate"] = t.user[last]["fair_rate"]
            t.user[at]["flow_link"], t.user[at]["flow"] = t.user[last]["flow_link"], t.user[last]["flow"]
            t.place[t.user[at]["flow_link"]] = at
        if t.resource[r]["n_users"] == 0:
            t.resource[r]["full"] = np.inf
        if several_priorities or t.resource[r]["full"] < np.inf:
            mark(t, r)


@njit_norefcount
def use_of_flow(t: FlowState, s: int, e: int) -> float:
    """Return what flow `s` takes, per fair rate, of the resource of its flow link `e`."""
    weight: float = t.flow[s]["weight"]
    return weight * t.share[e] if len(t.share) > 0 else weight


@njit_norefcount
def use_of_user(t: FlowState, r: int, at: int, part: float) -> int:
    """Return what a user takes of resource `r`, in its units; `part` per fair rate."""
    return int(t.user[at]["fair_rate"] * part * t.resource[r]["per_unit"])


@njit_norefcount
def free(t: FlowState, r: int) -> float:
    """Return what of resource `r` is not given away."""
    rest: float = max(t.resource[r]["left"], 0) * t.resource[r]["unit"]
    return rest


@njit_norefcount
def mark(t: FlowState, r: int) -> None:
    """List resource `r`, once, as one that a flow has left or takes less of."""
    if not t.resource[r]["dirty"]:
        t.resource[r]["dirty"] = True
        t.dirty[t.counter["n_dirty"]] = r
        t.counter["n_dirty"] += 1


@njit_norefcount
def unmark(t: FlowState) -> None:
    """Forget the marked resources."""
    for k in range(t.counter["n_dirty"]):
        t.resource[t.dirty[k]]["dirty"] = False
    t.counter["n_dirty"] = 0


@njit_norefcount
def unfreeze(t: FlowState, s: int) -> None:
    """Let the fair rate of flow `s` be looked for; what it had is free again."""
    if t.flow[s]["unfrozen"]:
        return
    t.flow[s]["unfrozen"] = True
    t.counter["n_unfrozen"] += 1
    list_for_others(t, s)
    for e in range(first_link(t, s), end_link(t, s)):
        r, at, part = t.resource_of[e], t.place[e], use_of_flow(t, s, e)
        if t.user[at]["fair_rate"] >= 0.0:
            t.resource[r]["left"] += use_of_user(t, r, at, part)
        t.user[at]["fair_rate"] = UNFROZEN
        t.resource[r]["demand"] += part
        t.resource[r]["n_unfrozen"] += 1
        if not t.resource[r]["touched"]:
            t.resource[r]["touched"] = True
            t.touched[t.counter["n_touched"]] = r
            t.counter["n_touched"] += 1


@njit_norefcount
def unfreeze_limited(t: FlowState) -> None:
    """Unfreeze the flows that the marked resources limit: another has left, or takes less."""
    for k in range(t.counter["n_dirty"]):
        r = t.dirty[k]
        if t.resource[r]["dirty"] and t.resource[r]["full"] < np.inf:
            low = t.resource[r]["full"] * SLACK
            t.resource[r]["full"] = np.inf
            for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
                if t.user[at]["fair_rate"] >= low:
                    unfreeze(t, t.user[at]["flow"])
        t.resource[r]["dirty"] = False
    t.counter["n_dirty"] = 0


@njit_norefcount
def unfreeze_above(t: FlowState, r: int, fair_rate: float) -> bool:
    """Unfreeze the users of resource `r` above the fair rate at which it will be full; return whether there are any.

    That fair rate rises as they are unfrozen. Newton's method finds it: from below, since what the users take together
    is a concave function of the fair rate.
    """
    n = 0
    top = fair_rate
    for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
        if t.user[at]["fair_rate"] > fair_rate * TIE:
            t.raised[n] = at
            n += 1
    while n > 0:
        whole = max(t.resource[r]["left"], 0)
        demand = t.resource[r]["demand"]
        for k in range(n):
            at = t.raised[k]
            part = use_of_flow(t, t.user[at]["flow"], t.user[at]["flow_link"])
            whole += use_of_user(t, r, at, part)
            demand += part
        fair_rate = whole * t.resource[r]["unit"] / demand
        m = 0
        for k in range(n):
            if t.user[t.raised[k]]["fair_rate"] > fair_rate * TIE:
                t.raised[m] = t.raised[k]
                m += 1
        if m == n:
            break
        n = m
    for k in range(n):
        unfreeze(t, t.user[t.raised[k]]["flow"])
    if n == 0:
        t.resource[r]["top"] = top
    return n > 0


@njit_norefcount
def list_for_others(t: FlowState, s: int) -> None:
    """List flow `s`, once, whose variants are to be looked at."""
    if t.has_representatives[0] and not t.flow[s]["listed"]:
        t.flow[s]["listed"] = True
        t.listed[t.counter["n_listed"]] = s
        t.counter["n_listed"] += 1


@njit_norefcount
def note_full(t: FlowState, r: int) -> None:
    """Note whether resource `r` is full as well, though others have frozen all that use it: ties matter to variants."""
    if t.has_representatives[0] and t.resource[r]["left"] <= ROUNDING:
        top = 0.0
        for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
            top = max(top, t.user[at]["fair_rate"])
        t.resource[r]["full"] = top


@njit_norefcount
def mark_broken(t: FlowState) -> None:
    """Mark the variants of flows that could have more: none of what they use in this phase holds them down.

    The others use, at one time, the same kinds of resources as the flow, or fewer; so theirs are not overloaded. With
    a full resource on which none has more, each has its max-min fair rate.
    """
    for k in range(t.counter["n_listed"]):
        s = t.listed[k]
        t.flow[s]["listed"] = False
        begin, end, fair_rate = first_link(t, s), end_link(t, s), t.flow[s]["fair_rate"] * TIE * TIE
        for v in range(t.variants[s], t.variants[s + 1]):
            held = False
            for j in range(t.variant[v], t.variant[v + 1]):
                e = t.variant_link[j]
                held = held or (begin <= e < end and t.resource[t.resource_of[e]]["full"] <= fair_rate)
            if not held:
                t.broken[v] = ((t.broken[v] ^ t.counter["n_events"]) & MASK) * ODD & MASK | 1
    t.counter["n_listed"] = 0
