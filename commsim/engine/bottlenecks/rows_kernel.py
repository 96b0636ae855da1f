"""Rows of the resources that are full or nearly, the order of those with members, and bounds of all others."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_called, njit_norefcount

from .group_state import FREE, SEVERAL, UNFORCED, Groups

# A resource with less than one part in 2^NEARLY left gets a row; one with twice as much left loses it.
NEARLY = 4
# A rate that has risen by more than one part in 2^RISEN is added where it is taken; a lower rise, everywhere at once.
RISEN = 7
# Bounds are kept in floating point, and looked at a little too early, so that rounding cannot hide an overload.
EARLY = 1.0 - 1e-9
# Growth beyond which bounds are multiplied by it and it begins again.
MUCH = 1e6
# How often rates are changed until rows that are not needed are given up.
PERIOD = 64


@njit_norefcount
def force(g: Groups, j: int, i: int) -> None:
    """Have group `j` looked at, even if its rate fits what is left, where members of group `i` with more cross it."""
    if g.crossing[i, j] > 0:
        g.forced[j] = i if g.forced[j] in (UNFORCED, i) else SEVERAL


@njit_norefcount
def cross(g: Groups, i: int, j: int) -> None:
    """Count one more member of group `i` that uses the resource of row `j`."""
    if g.crossing[i, j] == 0:
        g.crossed[i, g.n_crossed[i]] = j
        g.n_crossed[i] += 1
    g.crossing[i, j] += 1


@njit_norefcount
def cross_no_more(g: Groups, i: int, j: int) -> None:
    """Count one member less."""
    g.crossing[i, j] -= 1
    if g.crossing[i, j] == 0:
        take_from_crossed(g, i, j)


@njit_norefcount
def take_from_crossed(g: Groups, i: int, j: int) -> None:
    """Take row `j` from the list of those that members of group `i` use."""
    last = g.n_crossed[i] - 1
    at = last
    while g.crossed[i, at] != j:
        at -= 1
    g.crossed[i, at] = g.crossed[i, last]
    g.n_crossed[i] = last


@njit_norefcount
def take_more(g: Groups, i: int, more: int) -> None:
    """Take what each member of group `i` gets more from what is left of all rows that they use."""
    for k in range(g.n_crossed[i]):
        j = g.crossed[i, k]
        g.rest[j] -= g.crossing[i, j] * more


@njit_norefcount
def put_in_order(g: Groups, i: int) -> None:
    """Move group `i` to where it belongs by its rate; note groups that it then has a higher rate than."""
    rate, at = g.rate[i], g.position[i]
    if at < 0:
        at = g.counter["n_order"]
        g.counter["n_order"] = at + 1
    last = g.counter["n_order"] - 1
    while at > 0 and g.rate[g.order[at - 1]] > rate:
        g.order[at] = g.order[at - 1]
        g.position[g.order[at]] = at
        at -= 1
    while at < last and g.rate[g.order[at + 1]] < rate:
        j = g.order[at + 1]
        g.order[at] = j
        g.position[j] = at
        force(g, j, i)
        at += 1
    g.order[at] = i
    g.position[i] = at


@njit_norefcount
def take_out_of_order(g: Groups, i: int) -> None:
    """Take group `i`, which has no members any more, from the order."""
    g.counter["n_order"] -= 1
    for at in range(g.position[i], g.counter["n_order"]):
        g.order[at] = g.order[at + 1]
        g.position[g.order[at]] = at
    g.position[i] = -1


@njit_norefcount
def taken(g: Groups, p: int) -> int:
    """Return what the users of resource `p` that have a group take of it."""
    total = 0
    for at in range(g.first[p], g.first[p] + g.n_users[p]):
        h = g.user_group[at]
        if h >= 0:
            total += g.rate[h]
    return total


@njit_called
def have_row(g: Groups, p: int) -> int:
    """Return the row of resource `p`; it gets one if it has none."""
    if g.row[p] >= 0:
        return int(g.row[p])
    i = begin_row(g, p)
    if i < 0:
        return -1
    for at in range(g.first[p], g.first[p] + g.n_users[p]):
        h = g.user_group[at]
        if h >= 0:
            cross(g, h, i)
    g.rest[i] = g.capacity[p] - taken(g, p)
    return i


@njit_norefcount
def begin_row(g: Groups, p: int) -> int:
    """Give resource `p` an empty row."""
    c = g.counter
    if c["n_free"] > 0:
        c["n_free"] -= 1
        i = int(g.free[c["n_free"]])
    elif c["n_rows"] < len(g.rate):
        i = int(c["n_rows"])
        c["n_rows"] += 1
    else:
        c["is_full"] = True
        return -1
    g.resource[i], g.row[p], g.bound[p] = p, i, 0.0
    g.rate[i], g.noted[i], g.n_members[i], g.n_in_heap[i] = FREE, 0, 0, 0
    g.position[i], g.forced[i], g.finish[i], g.rest[i] = -1, UNFORCED, np.inf, g.capacity[p]
    if p == g.cap:
        g.rate[i] = g.capacity[p]
        put_in_order(g, i)
    return i


@njit_norefcount
def end_row(g: Groups, i: int) -> None:
    """Take its row from a resource without members; a bound is enough from now on."""
    p = g.resource[i]
    for at in range(g.first[p], g.first[p] + g.n_users[p]):
        h = g.user_group[at]
        if h >= 0 and g.crossing[h, i] > 0:
            g.crossing[h, i] = 0
            take_from_crossed(g, h, i)
    g.bound[p] = (g.capacity[p] - g.rest[i]) / g.counter["growth"]
    g.resource[i], g.row[p], g.rest[i] = -1, -1, 0
    g.free[g.counter["n_free"]] = i
    g.counter["n_free"] += 1


@njit_called
def end_rows(g: Groups) -> None:
    """Take their rows from all resources without members that have enough left."""
    for i in range(g.counter["n_rows"]):
        p = g.resource[i]
        is_idle = p >= 0 and p != g.cap and g.n_members[i] == 0 and not g.changed[i]
        if is_idle and g.rest[i] > g.capacity[p] >> (NEARLY - 1):
            end_row(g, i)


@njit_norefcount
def note_rates(g: Groups) -> None:
    """Bring the bounds up to date with the rates of the groups that have changed."""
    c = g.counter
    growth = 0.0
    for k in range(c["n_changed"]):
        i = g.changing[k]
        before, rate = g.noted[i], g.rate[i]
        if g.n_members[i] == 0:
            rate = 0
        g.noted[i] = rate
        more = rate - before
        if more > before >> RISEN:
            add_to_bounds(g, i, more / c["growth"])
        elif more > 0:
            growth = max(growth, more / before)
    c["growth"] *= 1.0 + growth
    if c["growth"] > MUCH:
        for p in range(len(g.bound)):
            g.bound[p] *= c["growth"]
        c["growth"] = 1.0


@njit_norefcount
def add_to_bounds(g: Groups, i: int, more: float) -> None:
    """Add what each member of group `i` takes more to the bounds of all that it uses."""
    base = g.first[g.resource[i]]
    for at in range(base, base + g.n_in_heap[i]):
        s = g.member[at]
        for e in range(g.low[s], g.high[s]):
            g.bound[g.link[e]] += more


@njit_norefcount
def look_at_bounds(g: Groups) -> bool:
    """Make bounds exact that are too high; give those a row that are nearly full; say whether one is overloaded."""
    growth, overloaded = g.counter["growth"], False
    for p in range(len(g.row)):
        if g.bound[p] * growth > g.capacity[p] * EARLY and g.row[p] < 0:
            left = g.capacity[p] - taken(g, p)
            if left < g.capacity[p] >> NEARLY:
                overloaded |= have_row(g, p) < 0 or left < 0
            else:
                g.bound[p] = (g.capacity[p] - left) / growth
    return overloaded
