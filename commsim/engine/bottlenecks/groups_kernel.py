"""Members and users of resources: a flow enters, leaves, or goes from one group to another.

What a flow has left is the difference of its end and its group's clock, so that another rate of a group changes nothing
of its members.
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount

from .group_state import FREE, Groups


@njit_norefcount
def tick(g: Groups, q: int, now: float) -> None:
    """Bring the clock of group `q` up to time `now`; that of one without members starts again with its first."""
    if g.since[q] < now:
        g.clock[q] += g.rate[q] * g.unit * (now - g.since[q])
    g.since[q] = now


@njit_norefcount
def note_changed(g: Groups, q: int) -> None:
    """List group `q`, once, as one whose next end must be found again."""
    if not g.changed[q]:
        g.changed[q] = True
        g.changing[g.counter["n_changed"]] = q
        g.counter["n_changed"] += 1


@njit_norefcount
def sink(g: Groups, q: int, at: int, n: int, s: int) -> None:
    """Put flow `s` at place `at`, or where it belongs from there, of the heap of `n` members of group `q`."""
    base, end = g.first[q], g.end[s]
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
def put_in(g: Groups, q: int, s: int, work: float) -> None:
    """Put flow `s`, which has `work` bytes left, into the heap of group `q`, whose clock is up to date."""
    g.end[s] = g.clock[q] + work
    n = g.n_in_heap[q]
    g.n_in_heap[q] = n + 1
    sink(g, q, n, n + 1, s)
    note_changed(g, q)


@njit_norefcount
def take_out(g: Groups, q: int, s: int) -> None:
    """Take flow `s` out of the heap of group `q`."""
    n = g.n_in_heap[q] - 1
    at = g.member_place[s]
    g.n_in_heap[q] = n
    g.member_place[s] = -1
    if at < n:
        sink(g, q, at, n, g.member[g.first[q] + n])
    note_changed(g, q)


@njit_norefcount
def put_in_order(g: Groups, q: int) -> None:
    """Move resource `q` to where it belongs by its rate."""
    rate, at = g.rate[q], g.position[q]
    while at > 0 and g.rate[g.order[at - 1]] > rate:
        g.order[at] = g.order[at - 1]
        g.position[g.order[at]] = at
        at -= 1
    while at + 1 < len(g.order) and g.rate[g.order[at + 1]] < rate:
        g.order[at] = g.order[at + 1]
        g.position[g.order[at]] = at
        at += 1
    g.order[at] = q
    g.position[q] = at


@njit_norefcount
def rate_without_members(g: Groups, q: int) -> int:
    """Rate of resource `q` without members: none that others could notice, but for the cap."""
    rate: int = g.capacity[q] if q == g.cap else FREE
    return rate


@njit_norefcount
def empty(g: Groups, q: int) -> None:
    """Note that resource `q` has no members any more."""
    g.rate[q] = rate_without_members(g, q)
    note_changed(g, q)
    put_in_order(g, q)


@njit_norefcount
def use(g: Groups, s: int, low: int, high: int) -> None:
    """Put flow `s` among the users of the resources of some flow links; it has no group yet."""
    g.low[s], g.high[s] = low, high
    g.counter["n_active"] += 1
    for e in range(low, high):
        p = g.link[e]
        at = g.first[p] + g.n_users[p]
        g.n_users[p] += 1
        g.user[at], g.user_link[at], g.place[e] = s, e, at


@njit_norefcount
def use_no_more(g: Groups, s: int) -> None:
    """Take flow `s` from the users of its resources."""
    g.counter["n_active"] -= 1
    for e in range(g.low[s], g.high[s]):
        p = g.link[e]
        g.n_users[p] -= 1
        at, last = g.place[e], g.first[p] + g.n_users[p]
        g.user[at], g.user_link[at] = g.user[last], g.user_link[last]
        g.place[g.user_link[at]] = at


@njit_norefcount
def what_is_left(g: Groups, q: int) -> int:
    """Rate that resource `q` has for a first member."""
    left: int = g.capacity[q] if q == g.cap else max(g.rest[q], 0)
    return left


@njit_norefcount
def join(g: Groups, s: int, now: float, work: float) -> None:
    """Put flow `s` into the group of the resource with the lowest rate; into one of its own where none has a rate."""
    b = g.link[g.low[s]]
    for e in range(g.low[s], g.high[s]):
        p = g.link[e]
        if g.rate[p] < g.rate[b] or (g.rate[p] == g.rate[b] and what_is_left(g, p) < what_is_left(g, b)):
            b = p
    if g.n_members[b] == 0:
        g.rate[b] = what_is_left(g, b)
        g.clock[b] = 0.0
        g.since[b] = now
        g.forced[b] = 1
        put_in_order(g, b)
    tick(g, b, now)
    g.group[s] = b
    g.n_members[b] += 1
    for e in range(g.low[s], g.high[s]):
        p = g.link[e]
        if p != b:
            g.crossing[b, p] += 1
            g.crossed[p, b] += 1
            g.rest[p] -= g.rate[b]
    put_in(g, b, s, work)


@njit_norefcount
def leave_group(g: Groups, s: int, now: float) -> None:
    """Take flow `s`, which is in no heap, from its group."""
    b = g.group[s]
    tick(g, b, now)
    g.group[s] = -1
    for e in range(g.low[s], g.high[s]):
        p = g.link[e]
        if p != b:
            g.crossing[b, p] -= 1
            g.crossed[p, b] -= 1
            g.rest[p] += g.rate[b]
    g.n_members[b] -= 1
    if g.n_members[b] == 0:
        empty(g, b)


@njit_norefcount
def move(g: Groups, s: int, q: int, now: float) -> None:
    """Move flow `s` to the group of resource `q`, which it uses."""
    h = g.group[s]
    tick(g, h, now)
    tick(g, q, now)
    work = g.end[s] - g.clock[h]
    more = g.rate[h] - g.rate[q]
    for e in range(g.low[s], g.high[s]):
        p = g.link[e]
        if p == q:
            g.crossing[h, q] -= 1
            g.crossed[q, h] -= 1
            g.rest[q] += g.rate[h]
        elif p == h:
            g.crossing[q, h] += 1
            g.crossed[h, q] += 1
            g.rest[h] -= g.rate[q]
        else:
            g.crossing[h, p] -= 1
            g.crossed[p, h] -= 1
            g.crossing[q, p] += 1
            g.crossed[p, q] += 1
            g.rest[p] += more
    take_out(g, h, s)
    g.group[s] = q
    g.n_members[h] -= 1
    g.n_members[q] += 1
    put_in(g, q, s, work)
    if g.n_members[h] == 0:
        empty(g, h)
