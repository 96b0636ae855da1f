"""Max-min fair sharing, again only where something changes: progressive filling of the flows that are unfrozen.

A flow's *fair rate* is its rate per weight. Progressive filling raises all fair rates together until a resource is full
and freezes the flows that use it, and so on. An allocation is the max-min fair one if, and only if, every flow uses a
full resource on which no fair rate is higher than its own. So rates are kept as they are until there is a reason. Only
flows that have one are *unfrozen* (:mod:`.users_kernel`) and filled again, in rising order of fair rate. Classes of
priority are filled one after the other, with all flows that are joined to one that entered or left.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2 (progressive filling; the condition).
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount

from .flow_state import FlowState
from .queue_kernel import heap_fix
from .users_kernel import (
    NEW,
    TIE,
    UNFROZEN,
    WAITING,
    end_link,
    first_link,
    free,
    list_for_others,
    mark,
    note_full,
    unfreeze,
    unfreeze_above,
    unfreeze_limited,
    unmark,
    use_of_flow,
    use_of_user,
)

# Resources up to which a list is searched for the first that will be full: most fillings have a dozen.
SHORT = 24


@njit_norefcount
def share_again(t: FlowState, now: float, several_priorities: bool) -> None:
    """Find the fair rates of the flows that have entered, and of all that change with them or because others have left.

    Parameters
    ----------
    t : FlowState
        ``t.beginning`` has the flows that entered; ``t.changed`` gets those whose fair rate has changed; their
        flags are for the caller to take back.
    now : float, s
        Time; the work of changed flows is brought up to it.
    several_priorities : bool
        Whether classes of priority must be filled one after the other.
    """
    c = t.counter
    c["n_changed"] = c["n_listed"] = c["n_touched"] = 0
    if several_priorities:
        share_by_class(t, now)
        return
    unfreeze_limited(t)
    for k in range(c["n_beginning"]):
        s = t.beginning[k]
        if _is_alone(t, s):
            _share_alone(t, s, now)
        else:
            unfreeze(t, s)
    fill(t, now, True)


@njit_norefcount
def _is_alone(t: FlowState, s: int) -> bool:
    """Whether flow `s` shares none of its resources."""
    for e in range(first_link(t, s), end_link(t, s)):  # noqa: SIM110 - Numba compiles no generator expressions
        if t.resource[t.resource_of[e]]["n_users"] > 1:
            return False
    return True


@njit_norefcount
def _share_alone(t: FlowState, s: int, now: float) -> None:
    """Give flow `s` all of what it uses."""
    fair_rate = np.inf
    for e in range(first_link(t, s), end_link(t, s)):
        fair_rate = min(fair_rate, free(t, t.resource_of[e]) / use_of_flow(t, s, e))
    t.flow[s]["fair_rate"], t.flow[s]["since"] = fair_rate, now
    note_changed(t, s)
    list_for_others(t, s)
    for e in range(first_link(t, s), end_link(t, s)):
        r, at, part = t.resource_of[e], t.place[e], use_of_flow(t, s, e)
        full = free(t, r) / part <= fair_rate * TIE
        t.user[at]["fair_rate"] = fair_rate
        t.resource[r]["left"] -= use_of_user(t, r, at, part)
        t.resource[r]["full"] = fair_rate if full else np.inf
        t.resource[r]["top"] = fair_rate


@njit_norefcount
def fill(t: FlowState, now: float, spreads: bool) -> None:
    """Raise the fair rates of all unfrozen flows together, freezing those that use a resource when it is full.

    Freezing a flow can only raise the fair rate at which its other resources are full, so a key of the queue is a lower
    bound, looked at again when it comes out. With `spreads`, flows are unfrozen that have a reason to change.
    """
    n_queue = _queue_touched(t, 0)
    fair_rate = 0.0
    while t.counter["n_unfrozen"] > 0 and n_queue > 0:
        r = _first_full(t, n_queue)
        bound = t.full_at[r]
        n_queue = _take_out(t, n_queue, r)
        if t.resource[r]["n_unfrozen"] == 0:
            note_full(t, r)
            continue
        full = free(t, r) / t.resource[r]["demand"]
        if full > bound * TIE and n_queue > 0 and full > t.full_at[_first_full(t, n_queue)]:
            n_queue = _put_in(t, n_queue, r, full)
            continue
        fair_rate = full if full > fair_rate * TIE else fair_rate
        if spreads and t.resource[r]["top"] > fair_rate * TIE and unfreeze_above(t, r, fair_rate):
            n_queue = _queue_touched(t, n_queue)
            continue
        t.resource[r]["full"] = t.resource[r]["top"] = fair_rate
        for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
            if t.user[at]["fair_rate"] == UNFROZEN:
                _freeze(t, t.user[at]["flow"], fair_rate, r, now)
        if spreads and t.counter["n_dirty"] > 0:
            unfreeze_limited(t)
            n_queue = _queue_touched(t, n_queue)
    for k in range(n_queue):
        t.full_place[t.full_queue[k]] = -1
        note_full(t, t.full_queue[k])


@njit_norefcount
def _queue_touched(t: FlowState, n_queue: int) -> int:
    """Queue the resources with new unfrozen users by the fair rate at which they will be full, or less."""
    for k in range(t.counter["n_touched"]):
        r = t.touched[k]
        t.resource[r]["touched"] = False
        bound = free(t, r) / t.resource[r]["demand"]
        if t.full_place[r] < 0 or bound < t.full_at[r]:
            n_queue = _put_in(t, n_queue, r, bound)
    t.counter["n_touched"] = 0
    return n_queue


@njit_norefcount
def _first_full(t: FlowState, n: int) -> int:
    """Return the resource with the least key of a queue of `n`: a list up to ``SHORT``, else a heap."""
    first: int = t.full_queue[0]
    if n <= SHORT:
        for k in range(1, n):
            if t.full_at[t.full_queue[k]] < t.full_at[first]:
                first = t.full_queue[k]
    return first


@njit_norefcount
def _put_in(t: FlowState, n: int, r: int, key: float) -> int:
    """Set the key of resource `r` in the queue of `n`, and insert it when it is not there; return how many it has."""
    if n > SHORT:
        return heap_fix(t.full_queue, n, t.full_at, t.full_place, r, key)
    t.full_at[r] = key
    if t.full_place[r] >= 0:
        return n
    t.full_queue[n], t.full_place[r] = r, n
    if n == SHORT:
        for k in range(1, SHORT + 1):
            above = t.full_queue[k]
            heap_fix(t.full_queue, k + 1, t.full_at, t.full_place, above, t.full_at[above])
    return n + 1


@njit_norefcount
def _take_out(t: FlowState, n: int, r: int) -> int:
    """Take resource `r` out of the queue of `n`; return how many are left."""
    if n > SHORT:
        return heap_fix(t.full_queue, n, t.full_at, t.full_place, r, -1.0)
    last, at = t.full_queue[n - 1], t.full_place[r]
    t.full_queue[at], t.full_place[last] = last, at
    t.full_place[r] = -1
    return n - 1


@njit_norefcount
def _freeze(t: FlowState, s: int, fair_rate: float, r: int, now: float) -> None:
    """Give flow `s` the fair rate at which resource `r` is full."""
    old = t.flow[s]["fair_rate"]
    t.flow[s]["unfrozen"] = False
    t.counter["n_unfrozen"] -= 1
    falls = False
    if old == NEW or fair_rate > old * TIE or fair_rate * TIE < old:
        if old != NEW:
            done = old * t.flow[s]["weight"] * (now - t.flow[s]["since"])
            t.flow[s]["work"] = max(t.flow[s]["work"] - done, 0.0)
            falls = fair_rate < old
        t.flow[s]["fair_rate"], t.flow[s]["since"] = fair_rate, now
        note_changed(t, s)
    else:
        fair_rate = old
    for e in range(first_link(t, s), end_link(t, s)):
        q, at, part = t.resource_of[e], t.place[e], use_of_flow(t, s, e)
        t.user[at]["fair_rate"] = fair_rate
        t.resource[q]["left"] -= use_of_user(t, q, at, part)
        t.resource[q]["n_unfrozen"] -= 1
        t.resource[q]["demand"] = t.resource[q]["demand"] - part if t.resource[q]["n_unfrozen"] > 0 else 0.0
        t.resource[q]["top"] = max(t.resource[q]["top"], fair_rate)
        if falls and q != r and t.resource[q]["full"] < np.inf:
            mark(t, q)


@njit_norefcount
def note_changed(t: FlowState, s: int) -> None:
    """List flow `s` among those whose fair rate has changed, once."""
    if not t.flow[s]["changed"]:
        t.flow[s]["changed"] = True
        t.changed[t.counter["n_changed"]] = s
        t.counter["n_changed"] += 1


@njit_norefcount
def share_by_class(t: FlowState, now: float) -> None:
    """Find the fair rates of all flows that are joined to those that have entered or left."""
    for k in range(t.counter["n_beginning"]):
        s = t.beginning[k]
        for e in range(first_link(t, s), end_link(t, s)):
            mark(t, t.resource_of[e])
    _collect_joined(t)
    while _unfreeze_class(t) > 0:
        fill(t, now, False)
        unmark(t)


@njit_norefcount
def _collect_joined(t: FlowState) -> None:
    """Take their rates from all flows that are joined to a marked resource, and list them in ``t.listed``."""
    c = t.counter
    k = 0
    while k < c["n_dirty"]:
        r = t.dirty[k]
        k += 1
        t.resource[r]["full"] = np.inf
        for at in range(t.resource[r]["first"], t.resource[r]["first"] + t.resource[r]["n_users"]):
            s = t.user[at]["flow"]
            if t.flow[s]["unfrozen"]:
                continue
            t.flow[s]["unfrozen"] = True
            t.listed[c["n_listed"]] = s
            c["n_listed"] += 1
            for e in range(first_link(t, s), end_link(t, s)):
                q, place = t.resource_of[e], t.place[e]
                if t.user[place]["fair_rate"] >= 0.0:
                    t.resource[q]["left"] += use_of_user(t, q, place, use_of_flow(t, s, e))
                t.user[place]["fair_rate"] = WAITING
                mark(t, q)
    unmark(t)
    for k in range(c["n_listed"]):
        t.flow[t.listed[k]]["unfrozen"] = False


@njit_norefcount
def _unfreeze_class(t: FlowState) -> int:
    """Open those of the listed flows that go first, take them from the list, and count them."""
    first = 2**31 - 1
    n = t.counter["n_listed"]
    for k in range(n):
        first = min(first, t.flow[t.listed[k]]["priority"])
    n_unfrozened, left = 0, 0
    for k in range(n):
        s = t.listed[k]
        if t.flow[s]["priority"] == first:
            unfreeze(t, s)
            n_unfrozened += 1
        else:
            t.listed[left] = s
            left += 1
    t.counter["n_listed"] = left
    return n_unfrozened
