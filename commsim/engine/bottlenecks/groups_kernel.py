"""Members and users of resources: a flow enters, leaves, or goes from one group to another.

What a flow has left is the difference of its end and its group's clock, so that another rate of a group changes nothing
of its members.
"""

from __future__ import annotations

from commsim.core.jit import njit_called, njit_norefcount

from .group_state import FREE, SEVERAL, Groups
from .rows_kernel import cross, cross_no_more, have_row, put_in_order, take_out_of_order


@njit_norefcount
def tick(g: Groups, i: int, now: float) -> None:
    """Bring the clock of group `i` up to time `now`; that of one without members starts again with its first."""
    if g.since[i] < now:
        g.clock[i] += g.rate[i] * g.unit * (now - g.since[i])
    g.since[i] = now


@njit_norefcount
def note_changed(g: Groups, i: int) -> None:
    """List group `i`, once, as one whose next end must be found again."""
    if not g.changed[i]:
        g.changed[i] = True
        g.changing[g.counter["n_changed"]] = i
        g.counter["n_changed"] += 1


@njit_called
def sink(g: Groups, i: int, at: int, n: int, s: int) -> None:
    """Put flow `s` at place `at`, or where it belongs from there, of the heap of `n` members of group `i`."""
    base, end = g.first[g.resource[i]], g.end[s]
    while at > 0:
        parent = (at - 1) // 2
        above = g.member[base + parent]
        if g.end[above] <= end:
            break
        g.member[base + at] = above
        g.member_place[above] = at
        at = parent
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and g.end[g.member[base + child + 1]] < g.end[g.member[base + child]]:
            child += 1
        below = g.member[base + child]
        if g.end[below] >= end:
            break
        g.member[base + at] = below
        g.member_place[below] = at
        at = child
    g.member[base + at] = s
    g.member_place[s] = at


@njit_norefcount
def put_in(g: Groups, i: int, s: int, work: float) -> None:
    """Put flow `s`, which has `work` bytes left, into the heap of group `i`, whose clock is up to date."""
    g.end[s] = g.clock[i] + work
    n = g.n_in_heap[i]
    g.n_in_heap[i] = n + 1
    sink(g, i, n, n + 1, s)
    note_changed(g, i)


@njit_norefcount
def take_out(g: Groups, i: int, s: int) -> None:
    """Take flow `s` out of the heap of group `i`."""
    n = g.n_in_heap[i] - 1
    at = g.member_place[s]
    g.n_in_heap[i] = n
    g.member_place[s] = -1
    if at < n:
        sink(g, i, at, n, g.member[g.first[g.resource[i]] + n])
    note_changed(g, i)


@njit_norefcount
def empty(g: Groups, i: int) -> None:
    """Note that group `i` has no members any more; others cannot notice its rate, but for the cap's."""
    note_changed(g, i)
    if g.resource[i] == g.cap:
        g.rate[i] = g.capacity[g.cap]
        put_in_order(g, i)
    else:
        g.rate[i] = FREE
        take_out_of_order(g, i)


@njit_norefcount
def use(g: Groups, s: int, low: int, high: int) -> None:
    """Put flow `s` among the users of the resources of some flow links; it has no group yet."""
    g.low[s], g.high[s] = low, high
    g.counter["n_active"] += 1
    for e in range(low, high):
        p = g.link[e]
        at = g.first[p] + g.n_users[p]
        g.n_users[p] += 1
        g.user[at], g.user_link[at], g.user_group[at], g.place[e] = s, e, -1, at


@njit_norefcount
def use_no_more(g: Groups, s: int) -> None:
    """Take flow `s` from the users of its resources."""
    g.counter["n_active"] -= 1
    for e in range(g.low[s], g.high[s]):
        p = g.link[e]
        g.n_users[p] -= 1
        at, last = g.place[e], g.first[p] + g.n_users[p]
        g.user[at], g.user_link[at], g.user_group[at] = g.user[last], g.user_link[last], g.user_group[last]
        g.place[g.user_link[at]] = at


@njit_called
def join(g: Groups, s: int, now: float, work: float) -> None:
    """Put flow `s` into the group of the resource with the lowest rate; into one of its own where none has a rate."""
    b = -1
    for e in range(g.low[s], g.high[s]):
        i = g.row[g.link[e]]
        if i >= 0 and g.rate[i] < FREE and (b < 0 or g.rate[i] < g.rate[b]):
            b = i
    if b < 0:
        b = own_group(g, s, now)
    elif g.n_members[b] == 0:  # the cap's
        g.clock[b], g.since[b] = 0.0, now
    tick(g, b, now)
    g.group[s] = b
    g.n_members[b] += 1
    for e in range(g.low[s], g.high[s]):
        p = g.link[e]
        g.user_group[g.place[e]] = b
        i = g.row[p]
        if i < 0:
            g.bound[p] += g.noted[b] / g.counter["growth"]
        elif i != b:
            cross(g, b, i)
            g.rest[i] -= g.rate[b]
    put_in(g, b, s, work)


@njit_norefcount
def own_group(g: Groups, s: int, now: float) -> int:
    """Begin a group for flow `s`, whose resources have none, at that with the least left; return its row."""
    b = -1
    for e in range(g.low[s], g.high[s]):
        i = have_row(g, g.link[e])
        if b < 0 or g.rest[i] < g.rest[b]:
            b = i
    g.rate[b], g.clock[b], g.since[b], g.forced[b] = max(g.rest[b], 0), 0.0, now, SEVERAL
    put_in_order(g, b)
    return b


@njit_called
def leave_group(g: Groups, s: int, now: float) -> None:
    """Take flow `s`, which is in no heap, from its group."""
    b = g.group[s]
    tick(g, b, now)
    g.group[s] = -1
    for e in range(g.low[s], g.high[s]):
        p = g.link[e]
        i = g.row[p]
        if i < 0:
            g.bound[p] -= g.noted[b] / g.counter["growth"]
        elif i != b:
            cross_no_more(g, b, i)
            g.rest[i] += g.rate[b]
    g.n_members[b] -= 1
    if g.n_members[b] == 0:
        empty(g, b)


@njit_called
def move(g: Groups, s: int, to: int, now: float) -> None:
    """Move flow `s` to the group in row `to`, whose resource it uses."""
    h = g.group[s]
    g.counter["n_moves"] += 1
    tick(g, h, now)
    tick(g, to, now)
    work = g.end[s] - g.clock[h]
    more, beside = g.rate[h] - g.rate[to], (g.noted[to] - g.noted[h]) / g.counter["growth"]
    for e in range(g.low[s], g.high[s]):
        p = g.link[e]
        g.user_group[g.place[e]] = to
        i = g.row[p]
        if i < 0:
            g.bound[p] += beside
        elif i == to:
            cross_no_more(g, h, i)
            g.rest[i] += g.rate[h]
        elif i == h:
            cross(g, to, i)
            g.rest[i] -= g.rate[to]
        else:
            cross_no_more(g, h, i)
            cross(g, to, i)
            g.rest[i] += more
    take_out(g, h, s)
    g.group[s] = to
    g.n_members[h] -= 1
    g.n_members[to] += 1
    put_in(g, to, s, work)
    if g.n_members[h] == 0:
        empty(g, h)
