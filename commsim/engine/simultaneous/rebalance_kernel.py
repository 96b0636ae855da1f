"""Flows that depart one after the other: fair rates rebalanced after each departure, on links with clocks.

Each flow has one full link as its bottleneck, which limits it. After a departure, links that give away less than they
could, or more than they have, are looked at in rising order of fair rate; flows are reassigned to other bottlenecks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.engine.flow_state import Floats, Numbers, Offsets, Rows
from commsim.engine.queue_kernel import heap_fix

TIE = 1.0 + 1e-12  # fair rates this close are one fair rate, as in the sharing kernels

LINK_ROW = np.dtype(
    [
        ("given", np.int64),  # what it gives to flows limited elsewhere, in units so small that sums are exact,
        ("whole", np.int64),  # and its capacity
        ("per_unit", np.float64),
        ("top", np.float64),  # no flow limited elsewhere has a higher fair rate
        ("fair_rate", np.float64),  # of the flows that it limits
        ("n_limited", np.int32),
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


class DepartureState(NamedTuple):
    """All state of flows that depart; changed in place."""

    link: Rows  # LINK_ROW[n_links]
    first: Offsets  # [n_flows + 1], rows of
    of_flow: Numbers  # [n_flow_links], links
    place: Numbers  # [n_flow_links], among the users of the link
    user: Numbers  # [n_flow_links], flows by link,
    user_link: Numbers  # [n_flow_links], their flow links,
    others: Numbers  # [n_flow_links, longest route], and their other links, ended by -1: read one after the other
    bottleneck: Numbers  # [n_flows]
    ends: Floats  # [n_flows], on the clock of the bottleneck
    key: Floats  # [n_links], heap of links to be looked at
    heap_place: Numbers  # [n_links]
    heap: Numbers  # [n_links]
    picked: Numbers  # [most users]
    next_end: Floats  # [n_links], s, when the first flow that each limits will end; -1 where that must be found
    clock: Floats  # [1], s
    n_heap: Offsets  # [1]


@njit_norefcount
def rebalance(t: DepartureState, n_links: int) -> bool:
    """Look at links, those with low fair rates first, until none is left; say whether it came to that."""
    steps = 0
    while t.n_heap[0] > 0:
        r = t.heap[0]
        t.n_heap[0] = heap_fix(t.heap, t.n_heap[0], t.key, t.heap_place, r, -1.0)
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
    link = t.link[r]
    if link["n_limited"] == 0 and link["given"] <= link["whole"]:
        return False
    fair_rate = 0.0
    if link["n_limited"] > 0:
        fair_rate = max(link["whole"] - link["given"], 0) * link["unit"] / link["n_limited"]
    if link["top"] > fair_rate * TIE:
        n, fair_rate = above(t, r, fair_rate)
        if n > 0:
            set_fair_rate(t, r, fair_rate)
            for k in range(n):
                reassign(t, t.picked[k], r)
            link["top"] = fair_rate
            return True
    if fair_rate > link["fair_rate"] * TIE:
        n = limited_elsewhere(t, r, fair_rate)
        for k in range(n):
            f = t.picked[k]
            for e in range(t.first[f], t.first[f + 1]):
                q = t.of_flow[e]
                if q != r and t.link[q]["n_limited"] > 0 and t.link[q]["fair_rate"] * TIE < fair_rate:
                    reassign(t, f, q)
                    break
        if n > 0:
            return True
    if fair_rate > link["fair_rate"] * TIE or fair_rate * TIE < link["fair_rate"]:
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
        its = t.link[t.bottleneck[t.user[k]]]["fair_rate"]
        if its > fair_rate * TIE:
            t.picked[n] = t.user[k]
            n += 1
        else:
            top = max(top, its)
    if n == 0:
        link["top"] = top
    while n > 0:
        whole = link["whole"] - link["given"]
        for k in range(n):
            whole += int(t.link[t.bottleneck[t.picked[k]]]["fair_rate"] * link["per_unit"])
        fair_rate = max(whole, 0) * link["unit"] / (link["n_limited"] + n)
        m = 0
        for k in range(n):
            if t.link[t.bottleneck[t.picked[k]]]["fair_rate"] > fair_rate * TIE:
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
    n = 0
    for k in range(link["first"], link["first"] + link["n_limited"]):
        for j in range(t.others.shape[1]):
            q = t.others[k, j]
            if q < 0:
                break
            if t.link[q]["n_limited"] > 0 and t.link[q]["fair_rate"] * TIE < fair_rate:
                t.picked[n] = t.user[k]
                n += 1
                break
    return n


@njit_norefcount
def swap(t: DepartureState, i: int, j: int) -> None:
    """Exchange two users of one link."""
    t.user[i], t.user[j] = t.user[j], t.user[i]
    t.user_link[i], t.user_link[j] = t.user_link[j], t.user_link[i]
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
    end: float = link["since"] + max(link["least"] - link["clock"], 0.0) / link["fair_rate"]
    return end


@njit_norefcount
def give(t: DepartureState, r: int, more: float, less: float) -> None:
    """Note that link `r` gives a flow limited elsewhere `more` in place of `less`."""
    link = t.link[r]
    link["given"] += int(more * link["per_unit"]) - int(less * link["per_unit"])
    link["top"] = max(link["top"], more)
    if link["n_limited"] > 0:
        ask(t, r, link["fair_rate"])
    elif link["given"] > link["whole"]:
        ask(t, r, more)


@njit_norefcount
def ask(t: DepartureState, r: int, key: float) -> None:
    """Have link `r` looked at, after those with smaller keys."""
    if t.heap_place[r] < 0:
        t.n_heap[0] = heap_fix(t.heap, t.n_heap[0], t.key, t.heap_place, r, key)


@njit_norefcount
def advance(t: DepartureState, r: int) -> None:
    """Bring the clock of link `r` up to now."""
    link = t.link[r]
    if link["n_limited"] > 0:
        link["clock"] += link["fair_rate"] * (t.clock[0] - link["since"])
    link["since"] = t.clock[0]
    t.next_end[r] = -1.0


@njit_norefcount
def set_fair_rate(t: DepartureState, r: int, fair_rate: float) -> None:
    """Give all flows that link `r` limits another fair rate, and tell their other links."""
    link = t.link[r]
    advance(t, r)
    old = link["fair_rate"]
    link["fair_rate"] = fair_rate
    for k in range(link["first"], link["first"] + link["n_limited"]):
        for j in range(t.others.shape[1]):
            q = t.others[k, j]
            if q < 0:
                break
            give(t, q, fair_rate, old)


@njit_norefcount
def reassign(t: DepartureState, f: int, to: int) -> None:
    """Make link `to` the bottleneck of flow `f`."""
    old, before = t.bottleneck[f], t.link[t.bottleneck[f]]["fair_rate"]
    advance(t, old)
    advance(t, to)
    fair_rate = t.link[to]["fair_rate"]
    t.ends[f] = t.ends[f] - t.link[old]["clock"] + t.link[to]["clock"]
    t.bottleneck[f] = to
    for e in range(t.first[f], t.first[f + 1]):
        q = t.of_flow[e]
        link = t.link[q]
        if q == to:
            link["given"] -= int(before * link["per_unit"])
            swap(t, t.place[e], link["first"] + link["n_limited"])
            link["n_limited"] += 1
            link["least"] = min(link["least"], t.ends[f]) if link["n_limited"] > 1 else t.ends[f]
            ask(t, q, fair_rate)
        elif q == old:
            link["n_limited"] -= 1
            link["stale"] = True
            swap(t, t.place[e], link["first"] + link["n_limited"])
            give(t, q, fair_rate, 0.0)
            ask(t, q, link["fair_rate"])
        else:
            give(t, q, fair_rate, before)
