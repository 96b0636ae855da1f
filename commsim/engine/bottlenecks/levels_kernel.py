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

from commsim.core.jit import njit_called, njit_norefcount

from .fill_kernel import fill_all
from .group_state import SEVERAL, UNFORCED, Groups
from .groups_kernel import move, note_changed, tick
from .rows_kernel import PERIOD, end_rows, force, look_at_bounds, note_rates, put_in_order, take_more

# Rates that differ by one part in 2^TIE_BITS, 10^-12, differ by rounding only.
TIE_BITS = 40
# Rates per resource that are found anew before all are found from the beginning.
PATIENCE = 8


@njit_norefcount
def settle(g: Groups, now: float) -> None:
    """Change rates and groups until the rates are max-min fair."""
    c = g.counter
    c["n_settled"] += 1
    left, at = PATIENCE * len(g.row), 0
    while left > 0:
        i = int(g.order[at]) if at < c["n_order"] else find_overloaded(g)
        if i < 0:
            note_rates(g)
            if not look_at_bounds(g) or c["is_full"]:
                break
        elif at < c["n_order"] and is_content(g, i):
            at += 1
        else:
            left -= 1
            before = g.rate[i] - tie(g.rate[i])
            find_rate(g, i, now)
            at = min(at, g.position[i])
            while at > 0 and g.rate[g.order[at - 1]] >= before:  # in its way from now on, as it is in theirs
                at -= 1
    if left == 0:
        fill_all(g, now)
    elif c["n_settled"] % PERIOD == 0:
        end_rows(g)


@njit_norefcount
def tie(rate: int) -> int:
    """Return by how much two rates may differ by rounding."""
    return (rate >> TIE_BITS) + 1


@njit_norefcount
def is_content(g: Groups, i: int) -> bool:
    """Whether the resource of group `i` is full by its members' rate."""
    content: bool = g.forced[i] == UNFORCED
    if g.resource[i] != g.cap:
        n = g.n_members[i]
        excess, most = g.rest[i] - n * g.rate[i], n * tie(g.rate[i])
        content = content and -most < excess < most
    return content


@njit_norefcount
def find_overloaded(g: Groups) -> int:
    """Find a row without members whose resource is overloaded, or -1."""
    for i in range(g.counter["n_rows"]):
        if g.rest[i] < 0 and g.n_members[i] == 0:
            p = g.resource[i]
            if p != g.cap and g.rest[i] < -tie(g.capacity[p]) - g.n_users[p]:
                return i
    return -1


@njit_called
def find_rate(g: Groups, i: int, now: float) -> None:
    """Find the rate at which the resource of group `i` is full, and let users with a higher rate be members."""
    g.counter["n_levels"] += 1
    if g.resource[i] == g.cap:
        _cap_rates(g, i, now)
        return
    n, before, by = g.n_members[i], g.rate[i], g.forced[i]
    tick(g, i, now)
    g.forced[i] = UNFORCED
    at = g.counter["n_order"] - 1
    if n == 0:
        g.rate[i], g.clock[i] = 0, 0.0
    elif by != SEVERAL:  # no other user has more than it has so far
        rate = what_each_gets(g, i)
        if by == UNFORCED and rate >= before:
            change_rate(g, i, rate)
            return
        if by >= 0 and g.crossing[by, i] > 0 and g.rate[by] > rate + tie(rate):
            take_members(g, i, by, now)
        last, at = g.counter["n_order"] - 1, int(g.position[i])
        while at < last and g.rate[g.order[at + 1]] <= before + 2 * tie(before):
            at += 1
    change_rate(g, i, take_above(g, i, at, now))


@njit_norefcount
def take_above(g: Groups, i: int, at: int, now: float) -> int:
    """Make users of the resource of group `i` with more than is left for each its members; return what that is.

    From place `at` of the order on, groups have no members that use it.
    """
    rate = what_each_gets(g, i)
    while at >= 0 and g.rate[g.order[at]] > rate + tie(rate):
        if g.crossing[g.order[at], i] > 0:
            take_members(g, i, int(g.order[at]), now)
            rate = what_each_gets(g, i)
        at -= 1
    return rate


@njit_norefcount
def what_each_gets(g: Groups, i: int) -> int:
    """Return what is left of the resource of group `i` for each member; -1 without any."""
    n = g.n_members[i]
    each: int = g.rest[i] // n if n > 0 else -1
    return each


@njit_norefcount
def take_members(g: Groups, i: int, h: int, now: float) -> None:
    """Make the members of group `h` that use the resource of group `i` members of that; there is one."""
    at = g.first[g.resource[i]]
    while g.crossing[h, i] > 0:
        if g.user_group[at] == h:
            move(g, g.user[at], i, now)
        at += 1


@njit_norefcount
def _cap_rates(g: Groups, i: int, now: float) -> None:
    """Make all users of the cap that have a higher rate its members."""
    g.forced[i] = UNFORCED
    if g.n_members[i] == 0:
        g.clock[i], g.since[i] = 0.0, now
    for h in range(g.counter["n_rows"]):
        while g.crossing[h, i] > 0 and g.rate[h] > g.rate[i] + tie(g.rate[i]):
            base, at = g.first[g.resource[h]], 0
            while at < g.n_in_heap[h]:
                s = g.member[base + at]
                if g.link[g.high[s] - 1] == g.cap:
                    move(g, s, i, now)
                else:
                    at += 1


@njit_norefcount
def change_rate(g: Groups, i: int, rate: int) -> None:
    """Give the members of group `i`, whose clock is up to date, another rate."""
    before = g.rate[i]
    more = rate - before
    g.rate[i] = rate
    take_more(g, i, more)
    note_changed(g, i)
    at = g.position[i] - 1
    while more > 0 and at >= 0 and g.rate[g.order[at]] >= before - 2 * tie(before):  # one that it had a tie with
        force(g, g.order[at], i)
        at -= 1
    put_in_order(g, i)
