"""Kernel for flows of different sizes that start together: from departure to departure, rates change where they must.

Each flow has one full link as its *bottleneck*, and has that link's fair rate; what a link gives to flows limited
elsewhere is known. So when the fair rate of a link changes, its flows are not touched: each link has a clock that has
run through as many bytes as each of its flows has been sent, and a flow ends when the clock says so. What changes is
what the other links of these flows give away, and then their fair rates, in rising order. A flow is reassigned when
another link would give it less than its bottleneck does.

When nothing is left to be done, each flow has a full link on which no flow has more: the max-min fair rates. One
allocation per departure by the event engine gives the same and takes 6 times as long (128 ranks, docs/data/scale.md).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, njit_norefcount

from .rebalance_kernel import (
    LINK_ROW,
    NEVER,
    TIE,
    DepartureState,
    ask,
    give,
    given_by,
    next_end,
    note_limited,
    rebalance,
    swap,
)


@kernel
def simulate_departures(
    capacity: NDArray[np.float64],
    routes: tuple[NDArray[np.int64], NDArray[np.int32]],
    n_bytes: NDArray[np.float64],
    rate: NDArray[np.float64],
) -> tuple[NDArray[np.float64], bool]:
    """Simulate flows that all start at time 0.

    Parameters
    ----------
    capacity : float64[n_links], bytes/s
        Capacity of each link.
    routes : (int64[n_flows + 1], int32[m])
        Links of each flow.
    n_bytes : float64[n_flows], bytes
        More than 0.
    rate : float64[n_flows], bytes/s
        Max-min fair at first.

    Returns
    -------
    float64[n_flows], bool
        When each flow has left, s; and whether that could be found.
    """
    n, n_links = n_bytes.shape[0], capacity.shape[0]
    t = set_up(capacity, routes, rate)
    ended = np.zeros(n)
    for f in range(n):
        if t.bottleneck[f] < 0:
            return ended, False
        t.ends[f] = n_bytes[f]
    left = n
    while left > 0:
        now, n_due = first_end(t, n_links)
        if now == np.inf:
            return ended, False
        t.clock[0] = now
        for k in range(n_due):
            r = t.due[k]
            while t.next_end[r] <= now:
                left -= 1
                depart(t, r, ended)
                t.next_end[r] = next_end(t, r)
        if not rebalance(t, n_links):
            return ended, False
    return ended, True


@njit_norefcount
def first_end(t: DepartureState, n_links: int) -> tuple[float, int]:
    """Find when the next flow ends, and list the links that limit one which ends then, in ``t.due``."""
    for k in range(t.n_stale[0]):
        t.next_end[t.stale_end[k]] = next_end(t, t.stale_end[k])
    t.n_stale[0] = 0
    now, n_due = np.inf, 0
    for r in range(n_links):
        if t.next_end[r] <= now:
            n_due = n_due if t.next_end[r] == now else 0
            now = t.next_end[r]
            t.due[n_due] = r
            n_due += 1
    return now, n_due


@njit_norefcount
def depart(t: DepartureState, r: int, ended: NDArray[np.float64]) -> None:
    """Take out the flow that ends first of those that link `r` limits."""
    k = t.link[r]["first"]
    while t.ends[t.user[k]] != t.link[r]["least"]:
        k += 1
    f = t.user[k]
    ended[f] = t.clock[0]
    for e in range(t.first[f], t.first[f + 1]):
        link = t.link[t.of_flow[e]]
        last = link["first"] + link["n_users"] - 1
        if t.of_flow[e] == r:
            link["n_limited"] -= 1
            link["stale"] = True
            swap(t, t.place[e], link["first"] + link["n_limited"])
            note_limited(t, r)
            ask(t, r, t.fair_rate[r])
        else:
            give(t, t.of_flow[e], 0.0, t.fair_rate[r])
        swap(t, t.place[e], last)
        link["n_users"] -= 1


@kernel
def set_up(
    capacity: NDArray[np.float64], routes: tuple[NDArray[np.int64], NDArray[np.int32]], rate: NDArray[np.float64]
) -> DepartureState:
    """Lay out the tables, and give each flow to a full link on which none has more."""
    t = lay_out(capacity, routes, rate)
    n_links = capacity.shape[0]
    full = np.empty(n_links, np.bool_)
    for r in range(n_links):
        full[r] = t.link[r]["whole"] - given_by(t, r) <= 1e-11 * t.link[r]["whole"]
    for r in range(n_links):
        link = t.link[r]
        k = link["first"] + link["n_users"] - 1
        while full[r] and k >= link["first"] + link["n_limited"]:
            f = t.user[k]
            if t.bottleneck[f] < 0 and rate[f] * TIE >= t.fair_rate[r]:
                t.bottleneck[f] = r
                for e in range(t.first[f], t.first[f + 1]):
                    t.limiter[t.place[e]] = r
                t.slack[r] += np.int64(rate[f] * t.per_unit[r])
                swap(t, k, link["first"] + link["n_limited"])
                link["n_limited"] += 1
                link["stale"] = True
            else:
                k -= 1
        note_limited(t, r)
    return t


@kernel
def lay_out(
    capacity: NDArray[np.float64], routes: tuple[NDArray[np.int64], NDArray[np.int32]], rate: NDArray[np.float64]
) -> DepartureState:
    """Lay out the tables; no flow has a bottleneck yet."""
    first, of_flow = routes
    n, n_links, n_flow_links = rate.shape[0], capacity.shape[0], of_flow.shape[0]
    link, per_unit = np.zeros(n_links + 1, LINK_ROW), np.ones(n_links + 1)
    slack, top = np.full(n_links + 1, NEVER), np.zeros(n_links + 1)
    user, user_link, place = (
        np.empty(n_flow_links, np.int32),
        np.empty(n_flow_links, np.int32),
        np.empty(n_flow_links, np.int32),
    )
    count = np.zeros(n_links + 1, np.int64)
    for q in of_flow:
        count[q + 1] += 1
    most = 0
    for r in range(n_links):
        most = max(most, count[r + 1])
        count[r + 1] += count[r]
        link[r]["first"] = count[r]
        link[r]["unit"] = math.ldexp(1.0, math.frexp(capacity[r])[1] - 61)
        per_unit[r] = 1.0 / link[r]["unit"]
        per_unit[n_links] = per_unit[r]  # no other than its neighbours, most often
        link[r]["whole"] = np.int64(capacity[r] * per_unit[r])
        link[r]["least"] = np.inf
    longest = 1
    for f in range(n):
        longest = max(longest, first[f + 1] - first[f])
        for e in range(first[f], first[f + 1]):
            q = of_flow[e]
            place[e] = link[q]["first"] + link[q]["n_users"]
            user[place[e]], user_link[place[e]] = f, e
            link[q]["n_users"] += 1
            slack[q] -= np.int64(rate[f] * per_unit[q])
            top[q] = max(top[q], rate[f])
    others = np.full((n_flow_links, longest - 1), n_links, np.uint32)
    for k in range(n_flow_links):
        j = 0
        for e in range(first[user[k]], first[user[k] + 1]):
            if e != user_link[k]:
                others[k, j] = of_flow[e]
                j += 1
    heap_place = np.full(n_links + 1, -1, np.int32)
    heap_place[n_links] = 0  # nobody has the filler looked at
    return DepartureState(
        link, per_unit, slack, np.full(n_links + 1, NEVER), top, top[:n_links].copy(), np.full(n_links + 1, np.inf),
        first, of_flow, place, user, user_link, others, np.zeros(n_flow_links, np.uint32), np.full(n, -1, np.int32),
        np.zeros(n), np.empty(n_links), heap_place, np.empty(n_links, np.int32), np.empty(most, np.int32),
        np.full(n_links, -1.0), np.arange(n_links).astype(np.int32), np.empty(n_links, np.int32), np.zeros(1),
        np.zeros(1, np.int64), np.full(1, n_links), np.full(1, per_unit.min() == per_unit.max()),
    )  # fmt: skip
