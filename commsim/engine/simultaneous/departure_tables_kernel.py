"""Kernel that lays out the state of departures: who uses which links, and which of these holds each flow at first."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

from .bottleneck_kernel import swap
from .departure_state import LINK_ROW, TIE, State


@kernel
def set_up(
    capacity: NDArray[np.float64], routes: tuple[NDArray[np.int64], NDArray[np.int32]], rate: NDArray[np.float64]
) -> State:
    """Lay out the tables, and give each flow to a full link on which nobody has more."""
    first, of_flow = routes
    n, n_links, n_entries = rate.shape[0], capacity.shape[0], of_flow.shape[0]
    link = np.zeros(n_links, LINK_ROW)
    user, user_entry, place = (
        np.empty(n_entries, np.int32),
        np.empty(n_entries, np.int32),
        np.empty(n_entries, np.int32),
    )
    holder = np.full(n, -1, np.int32)
    count = np.zeros(n_links + 1, np.int64)
    for q in of_flow:
        count[q + 1] += 1
    most = count.max() if n_links > 0 else 0
    for r in range(n_links):
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
            user[place[e]], user_entry[place[e]] = f, e
            link[q]["n_users"] += 1
            link[q]["given"] += np.int64(rate[f] * link[q]["per_unit"])
            link[q]["top"] = max(link[q]["top"], rate[f])
    longest = 0
    for f in range(n):
        longest = max(longest, first[f + 1] - first[f])
    others = np.full((n_entries, longest), -1, np.int32)
    for k in range(n_entries):
        j = 0
        for e in range(first[user[k]], first[user[k] + 1]):
            if e != user_entry[k]:
                others[k, j] = of_flow[e]
                j += 1
    t = State(
        link, first, of_flow, place, user, user_entry, others, holder, np.zeros(n), np.empty(n_links),
        np.full(n_links, -1, np.int32), np.empty(n_links, np.int32), np.empty(most, np.int32),
        np.full(n_links, -1.0), np.zeros(1), np.zeros(1, np.int64),
    )  # fmt: skip
    full = np.empty(n_links, np.bool_)
    for r in range(n_links):
        full[r] = link[r]["whole"] - link[r]["given"] <= 1e-11 * link[r]["whole"]
    for r in range(n_links):
        link[r]["level"] = link[r]["top"]
        k = link[r]["first"] + link[r]["n_users"] - 1
        while full[r] and k >= link[r]["first"] + link[r]["n_held"]:
            f = user[k]
            if holder[f] < 0 and rate[f] * TIE >= link[r]["level"]:
                holder[f] = r
                link[r]["given"] -= np.int64(rate[f] * link[r]["per_unit"])
                swap(t, k, link[r]["first"] + link[r]["n_held"])
                link[r]["n_held"] += 1
                link[r]["stale"] = True
            else:
                k -= 1
    return t
