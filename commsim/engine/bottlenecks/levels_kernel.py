"""Max-min fair rates of the groups, changed where they must be: in rising order of rate, until every link is content.

The allocation is the max-min fair one if, and only if, every flow uses a full resource on which none has a higher rate.
So each group's resource must be full, and no user of it may have a higher rate than its members; and a resource without
members must not be overloaded. What a rate depends on is lower rates only, so groups are looked at in rising order; one
whose rate falls takes the users that have more than it from their groups.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2 (the condition; progressive filling).
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.engine.queue_kernel import heap_fix

from .group_state import Groups
from .groups_kernel import move, note_changed, put_in, put_in_order, rate_without_members, tick

# Rates that differ by one part in 2^TIE_BITS, 10^-12, differ by rounding only.
TIE_BITS = 40
# Rates per resource that are found anew before all are found from the beginning.
PATIENCE = 8


@njit_norefcount
def settle(g: Groups, now: float) -> None:
    """Change rates and groups until the rates are max-min fair."""
    left = PATIENCE * len(g.order)
    at = 0
    while at < len(g.order):
        q = g.order[at]
        if is_content(g, q):
            at += 1
            continue
        left -= 1
        if left < 0:
            fill_all(g, now)
            return
        before = g.rate[q] - (g.rate[q] >> TIE_BITS) - 1
        find_rate(g, q, now)
        at = min(at, g.position[q])
        while at > 0 and g.rate[g.order[at - 1]] >= before:  # in its way from now on, as it is in theirs
            at -= 1


@njit_norefcount
def is_content(g: Groups, q: int) -> bool:
    """Whether resource `q` is full by its members' rate; without members, whether it is not overloaded."""
    n = g.n_members[q]
    content: bool = g.forced[q] == 0
    if n == 0 and q != g.cap:
        content = g.rest[q] >= -(g.capacity[q] >> TIE_BITS) - g.n_users[q]
    elif q != g.cap:
        excess = g.rest[q] - n * g.rate[q]
        most = n * (1 + (g.rate[q] >> TIE_BITS))
        content = content and -most < excess < most
    return content


@njit_norefcount
def find_rate(g: Groups, q: int, now: float) -> None:
    """Find the rate at which resource `q` is full, and let users with a higher rate be members."""
    g.counter["n_levels"] += 1
    if q == g.cap:
        _cap_rates(g, now)
        return
    if g.n_members[q] > 0 and g.forced[q] == 0:
        rate = g.rest[q] // g.n_members[q]
        if rate >= g.rate[q]:
            tick(g, q, now)
            change_rate(g, q, rate)
            return
    g.forced[q] = 0
    if g.n_members[q] == 0:
        g.rate[q], g.clock[q], g.since[q] = 0, 0.0, now
    tick(g, q, now)
    while True:
        top = 0
        for h in range(len(g.order)):
            top = max(top, g.rate[h] if g.crossed[q, h] > 0 else 0)
        rate = g.rest[q] // g.n_members[q] if g.n_members[q] > 0 else -1
        if top <= rate + (rate >> TIE_BITS) + 1:
            break
        take_members(g, q, top, now)
    change_rate(g, q, rate)


@njit_norefcount
def _cap_rates(g: Groups, now: float) -> None:
    """Make all users of the cap that have a higher rate its members."""
    q = g.cap
    g.forced[q] = 0
    if g.n_members[q] == 0:
        g.clock[q], g.since[q] = 0.0, now
    for h in range(len(g.order)):
        while g.crossing[h, q] > 0 and g.rate[h] > g.capacity[q] + (g.capacity[q] >> TIE_BITS) + 1:
            at = 0
            while at < g.n_in_heap[h]:
                s = g.member[g.first[h] + at]
                if g.link[g.high[s] - 1] == q:
                    move(g, s, q, now)
                else:
                    at += 1


@njit_norefcount
def take_members(g: Groups, q: int, rate: int, now: float) -> None:
    """Make the users of resource `q` in a group with this rate its members; there is one."""
    h = 0
    while g.crossed[q, h] == 0 or g.rate[h] != rate:
        h += 1
    at = g.first[q]
    while g.crossed[q, h] > 0:
        if g.group[g.user[at]] == h:
            move(g, g.user[at], q, now)
        at += 1


@njit_norefcount
def change_rate(g: Groups, q: int, rate: int) -> None:
    """Give the members of resource `q`, whose clock is up to date, another rate."""
    more = rate - g.rate[q]
    g.rate[q] = rate
    if more < 0:
        for p in range(len(g.order)):
            g.rest[p] -= g.crossing[q, p] * more
    else:
        for p in range(len(g.order)):
            g.rest[p] -= g.crossing[q, p] * more
            g.forced[p] |= (g.crossing[q, p] > 0) & (g.rate[p] < rate)  # even if what is left there is as before
    note_changed(g, q)
    put_in_order(g, q)


@njit_norefcount
def fill_all(g: Groups, now: float) -> None:
    """Find all rates from the beginning: raise all together, and freeze the users of each resource that is full.

    Flows without a group have what they have left in ``g.end``.
    """
    _open_all(g, now)
    n_heap = 0
    for q in range(len(g.order)):
        if g.n_open[q] > 0:
            n_heap = heap_fix(g.fill_heap, n_heap, g.fill_at, g.fill_place, q, float(_full_at(g, q)))
    rate, n_done = 0, 0
    while n_heap > 0:
        q = g.fill_heap[0]
        bound = g.fill_at[q]
        n_heap = heap_fix(g.fill_heap, n_heap, g.fill_at, g.fill_place, q, -1.0)
        if g.n_open[q] == 0:
            continue
        full = _full_at(g, q)
        if float(full) > bound and n_heap > 0 and float(full) > g.fill_at[g.fill_heap[0]]:
            n_heap = heap_fix(g.fill_heap, n_heap, g.fill_at, g.fill_place, q, float(full))
            continue
        rate = max(rate, full)
        _freeze_users(g, q, rate)
        g.order[n_done] = q
        n_done += 1
    _end_order(g, n_done)


@njit_norefcount
def _full_at(g: Groups, q: int) -> int:
    """Rate at which resource `q` is full, while all is filled."""
    full: int = g.capacity[q] if q == g.cap else max(g.rest[q], 0) // g.n_open[q]
    return full


@njit_norefcount
def _open_all(g: Groups, now: float) -> None:
    """Take all flows from their groups."""
    g.counter["n_fills"] += 1
    for q in range(len(g.order)):
        tick(g, q, now)
        for at in range(g.first[q], g.first[q] + g.n_in_heap[q]):
            s = g.member[at]
            g.end[s] -= g.clock[q]
            g.group[s] = -1
            for e in range(g.low[s], g.high[s]):
                g.crossing[q, g.link[e]] = g.crossed[g.link[e], q] = 0
    for q in range(len(g.order)):
        g.n_members[q] = g.n_in_heap[q] = 0
        g.clock[q], g.since[q], g.rate[q], g.rest[q] = 0.0, now, rate_without_members(g, q), g.capacity[q]
        g.n_open[q] = g.n_users[q]
        note_changed(g, q)


@njit_norefcount
def _freeze_users(g: Groups, q: int, rate: int) -> None:
    """Make the users of resource `q` without a group its members."""
    g.rate[q] = rate
    for at in range(g.first[q], g.first[q] + g.n_users[q]):
        s = g.user[at]
        if g.group[s] >= 0:
            continue
        g.group[s] = q
        g.n_members[q] += 1
        put_in(g, q, s, g.end[s])
        for e in range(g.low[s], g.high[s]):
            p = g.link[e]
            g.n_open[p] -= 1
            if p != q:
                g.rest[p] -= rate
                g.crossing[q, p] += 1
                g.crossed[p, q] += 1


@njit_norefcount
def _end_order(g: Groups, n: int) -> None:
    """Complete the order, which has `n` resources with members, by those without."""
    for q in range(len(g.order)):
        g.forced[q] = 0
        if g.n_members[q] == 0:
            g.order[n] = q
            n += 1
    for at in range(len(g.order)):
        g.position[g.order[at]] = at
    if g.cap >= 0:
        put_in_order(g, g.cap)
