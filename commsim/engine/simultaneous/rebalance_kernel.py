"""Flows that depart one after the other: fair rates rebalanced after each departure, on links with clocks.

Each flow has one full link as its bottleneck, which limits it. After a departure, links that give away less than they
could, or more than they have, are looked at in rising order of fair rate; flows are reassigned to other bottlenecks.

With 256 ranks a departure changes the fair rates of 200 links, and each of them those of 100 flow links: what that
touches is kept small, and is only what each link may still give until it has to be looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from commsim.engine.flow_state import Floats, Numbers, Offsets, Rows
from commsim.engine.queue_kernel import heap_fix

TIE = 1.0 + 1e-12  # fair rates this close are one fair rate, as in the sharing kernels

LINK_ROW = np.dtype(
    [
        ("whole", np.int64),  # capacity, in units so small that sums are exact
        ("n_limited", np.int32),  # flows that it limits
        ("n_users", np.int32),
        ("first", np.int32),  # row of its users: those that it limits, then the others
        ("unit", np.float64),
        ("clock", np.float64),  # bytes that each flow would have been sent if it had always been limited here,
        ("since", np.float64),  # up to this time
        ("least", np.float64),  # first end of a flow that it limits, on its clock
        ("stale", np.bool_),  # whether `least` is to be found again
    ],
    align=True,
)
# Links looked at for each link and departure, beyond which something goes round in circles.
MAX_STEPS = 1000
# What a link gives beyond which it is to be looked at, where it is to be looked at in any case, or already is.
ALWAYS, NEVER = -1, 2**62


class DepartureState(NamedTuple):
    """All state of flows that depart; changed in place."""

    link: Rows  # LINK_ROW[n_links + 1], one more that fills up
    per_unit: Floats  # [n_links + 1], one over the unit of its capacity
    slack: Offsets  # [n_links + 1], units that it may give more to flows limited elsewhere until it is looked at,
    ask_above: Offsets  # [n_links + 1], and those beyond which it is, of all that it gives
    top: Floats  # [n_links + 1], no flow limited elsewhere has a higher fair rate
    fair_rate: Floats  # [n_links], of the flows that it limits,
    level: Floats  # [n_links + 1], and no tie with it; infinite where it limits none
    first: Offsets  # [n_flows + 1], rows of
    of_flow: Numbers  # [n_flow_links], links
    place: Numbers  # [n_flow_links], among the users of the link
    user: Numbers  # [n_flow_links], flows by link,
    user_link: Numbers  # [n_flow_links], their flow links,
    others: NDArray[np.uint32]  # [n_flow_links, longest route - 1], their other links, filled up by link `n_links`,
    limiter: NDArray[np.uint32]  # [n_flow_links], and their bottlenecks: read one after the other
    bottleneck: Numbers  # [n_flows]
    ends: Floats  # [n_flows], on the clock of the bottleneck
    key: Floats  # [n_links], heap of links to be looked at
    heap_place: Numbers  # [n_links + 1]
    heap: Numbers  # [n_links]
    picked: Numbers  # [most users]
    next_end: Floats  # [n_links], s, when the first flow that each limits will end; -1 where that must be found:
    stale_end: Numbers  # [n_links], these links
    due: Numbers  # [n_links], whose first flows end now
    clock: Floats  # [1], s
    n_heap: Offsets  # [1]
    n_stale: Offsets  # [1]
    is_uniform: NDArray[np.bool_]  # [1], whether all links have one unit


@njit_norefcount
def rebalance(t: DepartureState, n_links: int) -> bool:
    """Look at links, those with low fair rates first, until none is left; say whether it came to that."""
    steps = 0
    while t.n_heap[0] > 0:
        r = t.heap[0]
        t.n_heap[0] = heap_fix(t.heap, t.n_heap[0], t.key, t.heap_place, r, -1.0)
        note_limited(t, r)
        again = True
        while again:
            again = look_at(t, r)
            steps += 1
            if steps > MAX_STEPS * n_links:
                return False
    return True


@njit_norefcount
def look_at(t: DepartureState, r: int) -> bool:
    """Make link `r` give away what it has, and no more; say whether it has to be looked at again."""
    link, given = t.link[r], given_by(t, r)
    if link["n_limited"] == 0 and given <= link["whole"]:
        return False
    fair_rate = 0.0
    if link["n_limited"] > 0:
        fair_rate = max(link["whole"] - given, 0) * link["unit"] / link["n_limited"]
    if t.top[r] > fair_rate * TIE:
        n, fair_rate = above(t, r, fair_rate)
        if n > 0:
            set_fair_rate(t, r, fair_rate)
            for k in range(n):
                reassign(t, t.picked[k], r)
            t.top[r] = fair_rate
            return True
    if fair_rate > t.fair_rate[r] * TIE:
        n = limited_elsewhere(t, r, fair_rate)
        for k in range(n):
            f = t.picked[k]
            for e in range(t.first[f], t.first[f + 1]):
                q = t.of_flow[e]
                if q != r and t.level[q] < fair_rate:
                    reassign(t, f, q)
                    break
        if n > 0:
            return True
    if fair_rate > t.fair_rate[r] * TIE or fair_rate * TIE < t.fair_rate[r]:
        set_fair_rate(t, r, fair_rate)
    return False


@njit_norefcount
def above(t: DepartureState, r: int, fair_rate: float) -> tuple[int, float]:
    """Pick the flows limited elsewhere and that have more than link `r` can give to each; find what it can give.

    That rises as they are picked; Newton's method finds it from below.
    """
    link = t.link[r]
    n, top, lowest = 0, 0.0, fair_rate
    for k in range(link["first"] + link["n_limited"], link["first"] + link["n_users"]):
        its = t.fair_rate[t.limiter[k]]
        if its > fair_rate * TIE:
            t.picked[n] = t.user[k]
            n += 1
        else:
            top = max(top, its)
    if n == 0:
        t.top[r] = top
    while n > 0:
        whole = link["whole"] - given_by(t, r)
        for k in range(n):
            whole += int(t.fair_rate[t.bottleneck[t.picked[k]]] * t.per_unit[r])
        fair_rate = max(whole, 0) * link["unit"] / (link["n_limited"] + n)
        m = 0
        for k in range(n):
            if t.fair_rate[t.bottleneck[t.picked[k]]] > fair_rate * TIE:
                t.picked[m] = t.picked[k]
                m += 1
        if m == n:
            break
        n = m
    return n, fair_rate if n > 0 else lowest


@njit_norefcount
def limited_elsewhere(t: DepartureState, r: int, fair_rate: float) -> int:
    """Pick the flows that link `r` limits and that another full link keeps below `fair_rate`."""
    link = t.link[r]
    n, width = 0, t.others.shape[1]
    for k in range(link["first"], link["first"] + link["n_limited"]):
        is_kept = False
        for j in range(width):
            is_kept |= t.level[t.others[k, j]] < fair_rate
        if is_kept:
            t.picked[n] = t.user[k]
            n += 1
    return n


@njit_norefcount
def swap(t: DepartureState, i: int, j: int) -> None:
    """Exchange two users of one link."""
    t.user[i], t.user[j] = t.user[j], t.user[i]
    t.user_link[i], t.user_link[j] = t.user_link[j], t.user_link[i]
    t.limiter[i], t.limiter[j] = t.limiter[j], t.limiter[i]
    t.place[t.user_link[i]], t.place[t.user_link[j]] = i, j
    for k in range(t.others.shape[1]):
        t.others[i, k], t.others[j, k] = t.others[j, k], t.others[i, k]


@njit_norefcount
def next_end(t: DepartureState, r: int) -> float:
    """Find when the first of the flows that link `r` limits will end."""
    link = t.link[r]
    if link["n_limited"] == 0:
        return np.inf
    if link["stale"]:
        least = np.inf
        for k in range(link["first"], link["first"] + link["n_limited"]):
            least = min(least, t.ends[t.user[k]])
        link["least"], link["stale"] = least, False
    end: float = link["since"] + max(link["least"] - link["clock"], 0.0) / t.fair_rate[r]
    return end


@njit_norefcount
def give(t: DepartureState, r: int, more: float, less: float) -> None:
    """Note that link `r` gives a flow limited elsewhere `more` in place of `less`."""
    per_unit = t.per_unit[r]
    t.slack[r] -= int(more * per_unit) - int(less * per_unit)
    t.top[r] = max(t.top[r], more)
    if t.slack[r] < 0:
        ask_for_given(t, r, more)


@njit_norefcount
def ask_for_given(t: DepartureState, r: int, fair_rate: float) -> None:
    """Have link `r` looked at, since one that it gives to now has `fair_rate`; the filler never is."""
    ask(t, r, t.fair_rate[r] if t.link[r]["n_limited"] > 0 else fair_rate)


@njit_norefcount
def ask(t: DepartureState, r: int, key: float) -> None:
    """Have link `r` looked at, after those with smaller keys."""
    if t.heap_place[r] < 0:
        t.n_heap[0] = heap_fix(t.heap, t.n_heap[0], t.key, t.heap_place, r, key)
        ask_beyond(t, r, NEVER)


@njit_norefcount
def given_by(t: DepartureState, r: int) -> int:
    """Return the units that link `r` gives to flows limited elsewhere."""
    given: int = t.ask_above[r] - t.slack[r]
    return given


@njit_norefcount
def ask_beyond(t: DepartureState, r: int, given: int) -> None:
    """Have link `r` looked at when it gives more than so much."""
    t.slack[r] += given - t.ask_above[r]
    t.ask_above[r] = given


@njit_norefcount
def note_limited(t: DepartureState, r: int) -> None:
    """Note that link `r` limits more or fewer flows than before, or has come out of the heap."""
    limits = t.link[r]["n_limited"] > 0
    t.level[r] = t.fair_rate[r] * TIE if limits else np.inf
    if t.heap_place[r] < 0:
        ask_beyond(t, r, ALWAYS if limits else t.link[r]["whole"])


@njit_norefcount
def advance(t: DepartureState, r: int) -> None:
    """Bring the clock of link `r` up to now."""
    link = t.link[r]
    if link["n_limited"] > 0:
        link["clock"] += t.fair_rate[r] * (t.clock[0] - link["since"])
    link["since"] = t.clock[0]
    if t.next_end[r] >= 0.0:
        t.next_end[r] = -1.0
        t.stale_end[t.n_stale[0]] = r
        t.n_stale[0] += 1


@njit_norefcount
def set_fair_rate(t: DepartureState, r: int, fair_rate: float) -> None:
    """Give all flows that link `r` limits another fair rate, and tell their other links."""
    link = t.link[r]
    advance(t, r)
    old = t.fair_rate[r]
    t.fair_rate[r] = fair_rate
    note_limited(t, r)
    per_unit, width, filler = t.per_unit[r], t.others.shape[1], len(t.slack) - 1
    more, rises, is_uniform = int(fair_rate * per_unit) - int(old * per_unit), fair_rate > old, t.is_uniform[0]
    for k in range(link["first"], link["first"] + link["n_limited"]):
        t.slack[filler] = NEVER >> 1
        for j in range(width):
            q = t.others[k, j]
            if not is_uniform and t.per_unit[q] != per_unit:
                per_unit = t.per_unit[q]
                more = int(fair_rate * per_unit) - int(old * per_unit)
            slack = t.slack[q] - more
            t.slack[q] = slack
            if rises:
                t.top[q] = max(t.top[q], fair_rate)
            if slack < 0:
                ask_for_given(t, q, fair_rate)


@njit_norefcount
def reassign(t: DepartureState, f: int, to: int) -> None:
    """Make link `to` the bottleneck of flow `f`."""
    old = t.bottleneck[f]
    before, fair_rate = t.fair_rate[old], t.fair_rate[to]
    advance(t, old)
    advance(t, to)
    t.ends[f] = t.ends[f] - t.link[old]["clock"] + t.link[to]["clock"]
    t.bottleneck[f] = to
    for e in range(t.first[f], t.first[f + 1]):
        q = t.of_flow[e]
        t.limiter[t.place[e]] = to
        link = t.link[q]
        if q == to:
            t.slack[q] += int(before * t.per_unit[q])
            swap(t, t.place[e], link["first"] + link["n_limited"])
            link["n_limited"] += 1
            link["least"] = min(link["least"], t.ends[f]) if link["n_limited"] > 1 else t.ends[f]
            ask(t, q, fair_rate)
            note_limited(t, q)
        elif q == old:
            link["n_limited"] -= 1
            link["stale"] = True
            swap(t, t.place[e], link["first"] + link["n_limited"])
            note_limited(t, q)
            give(t, q, fair_rate, 0.0)
            ask(t, q, t.fair_rate[q])
        else:
            give(t, q, fair_rate, before)
