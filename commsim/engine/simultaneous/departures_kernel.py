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

from .rebalance_kernel import LINK_ROW, TIE, DepartureState, ask, give, next_end, rebalance, swap


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
        now = np.inf
        for r in range(n_links):
            if t.next_end[r] < 0.0:
                t.next_end[r] = next_end(t, r)
            now = min(now, t.next_end[r])
        if now == np.inf:
            return ended, False
        t.clock[0] = now
        for r in range(n_links):
            while t.next_end[r] <= now:
                left -= 1
                depart(t, r, ended)
                t.next_end[r] = next_end(t, r)
        if not rebalance(t, n_links):
            return ended, False
    return ended, True


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
            ask(t, r, link["fair_rate"])
        else:
            give(t, t.of_flow[e], 0.0, t.link[r]["fair_rate"])
        swap(t, t.place[e], last)
        link["n_users"] -= 1


@kernel
def set_up(
    capacity: NDArray[np.float64], routes: tuple[NDArray[np.int64], NDArray[np.int32]], rate: NDArray[np.float64]
) -> DepartureState:
    """Lay out the tables, and give each flow to a full link on which none has more."""
    first, of_flow = routes
    n, n_links, n_flow_links = rate.shape[0], capacity.shape[0], of_flow.shape[0]
    link = np.zeros(n_links, LINK_ROW)
    user, user_link, place = (
        np.empty(n_flow_links, np.int32),
        np.empty(n_flow_links, np.int32),
        np.empty(n_flow_links, np.int32),
    )
    bottleneck = np.full(n, -1, np.int32)
    count = np.zeros(n_links + 1, np.int64)
    for q in of_flow:
        count[q + 1] += 1
    most = 0
    for r in range(n_links):
        most = max(most, count[r + 1])
        count[r + 1] += count[r]
        link[r]["first"] = count[r]
        link[r]["unit"] = math.ldexp(1.0, math.frexp(capacity[r])[1] - 61)
        link[r]["per_unit"] = 1.0 / link[r]["unit"]
        link[r]["whole"] = np.int64(capacity[r] * link[r]["per_unit"])
        link[r]["least"] = np.inf
    for f in range(n):
        for e in range(first[f], first[f + 1]):
            q = of_flow[e]
            place[e] = link[q]["first"] + link[q]["n_users"]
            user[place[e]], user_link[place[e]] = f, e
            link[q]["n_users"] += 1
            link[q]["given"] += np.int64(rate[f] * link[q]["per_unit"])
            link[q]["top"] = max(link[q]["top"], rate[f])
    longest = 0
    for f in range(n):
        longest = max(longest, first[f + 1] - first[f])
    others = np.full((n_flow_links, longest), -1, np.int32)
    for k in range(n_flow_links):
        j = 0
        for e in range(first[user[k]], first[user[k] + 1]):
            if e != user_link[k]:
                others[k, j] = of_flow[e]
                j += 1
    t = DepartureState(
        link, first, of_flow, place, user, user_link, others, bottleneck, np.zeros(n), np.empty(n_links),
        np.full(n_links, -1, np.int32), np.empty(n_links, np.int32), np.empty(most, np.int32),
        np.full(n_links, -1.0), np.zeros(1), np.zeros(1, np.int64),
    )  # fmt: skip
    full = np.empty(n_links, np.bool_)
    for r in range(n_links):
        full[r] = link[r]["whole"] - link[r]["given"] <= 1e-11 * link[r]["whole"]
    for r in range(n_links):
        link[r]["fair_rate"] = link[r]["top"]
        k = link[r]["first"] + link[r]["n_users"] - 1
        while full[r] and k >= link[r]["first"] + link[r]["n_limited"]:
            f = user[k]
            if bottleneck[f] < 0 and rate[f] * TIE >= link[r]["fair_rate"]:
                bottleneck[f] = r
                link[r]["given"] -= np.int64(rate[f] * link[r]["per_unit"])
                swap(t, k, link[r]["first"] + link[r]["n_limited"])
                link[r]["n_limited"] += 1
                link[r]["stale"] = True
            else:
                k -= 1
    return t
