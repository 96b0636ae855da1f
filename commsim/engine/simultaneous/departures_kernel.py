"""Kernel for flows of different sizes that start together: from departure to departure, rates change where they must.

Each flow is *held* by one full link, and has that link's level, which is its rate; what a link gives to flows that
others hold is known. So when the level of a link changes, its flows are not touched: each link has a clock that has
run through as many bytes as each of its flows has been sent, and a flow ends when the clock says so. What changes is
what the other links of these flows give away, and then their levels, in rising order. A flow changes hands when a link
would give it less than its holder does, or its holder more than another link can.

When nothing is left to be done, each flow is held by a full link on which nobody has more: the max-min fair rates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, njit_norefcount

from .bottleneck_kernel import ask, give, next_end, swap
from .departure_tables_kernel import set_up
from .rebalance_kernel import settle


@kernel
def play_departures(
    capacity: NDArray[np.float64],
    routes: tuple[NDArray[np.int64], NDArray[np.int32]],
    n_bytes: NDArray[np.float64],
    rate: NDArray[np.float64],
) -> tuple[NDArray[np.float64], bool]:
    """Play flows that all start at time 0.

    Parameters
    ----------
    capacity : float64[n_links], bytes/s
        Of each link.
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
        if t.holder[f] < 0:
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
        if not settle(t, n_links):
            return ended, False
    return ended, True


@njit_norefcount
def depart(t: Any, r: int, ended: NDArray[np.float64]) -> None:
    """Take out the flow that ends first of those that link `r` holds."""
    k = t.link[r]["first"]
    while t.ends[t.user[k]] != t.link[r]["least"]:
        k += 1
    f = t.user[k]
    ended[f] = t.clock[0]
    for e in range(t.first[f], t.first[f + 1]):
        link = t.link[t.of_flow[e]]
        last = link["first"] + link["n_users"] - 1
        if t.of_flow[e] == r:
            link["n_held"] -= 1
            link["stale"] = True
            swap(t, t.place[e], link["first"] + link["n_held"])
            ask(t, r, link["level"])
        else:
            give(t, t.of_flow[e], 0.0, t.link[r]["level"])
        swap(t, t.place[e], last)
        link["n_users"] -= 1
