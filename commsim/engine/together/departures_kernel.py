"""Kernel for flows of different sizes that start together: from departure to departure, rates change where they must.

Each flow is *held* by one full link, and has that link's level, which is its rate; what a link gives to flows that
others hold is known. So when the level of a link changes, its flows are not touched: each link has a clock that has
run through as many bytes as each of its flows has been sent, and a flow ends when the clock says so. What changes is
what the other links of these flows give away, and then their levels, in rising order. A flow changes hands when a link
would give it less than its holder does, or its holder more than another link can.

When nothing is left to be done, each flow is held by a full link on which nobody has more: the max-min fair rates.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, uncounted

from ..queue_kernel import heap_fix

TIE = 1.0 + 1e-12
MOST_STEPS = 1000
"""Links looked at for each link and departure, beyond which something goes round in circles."""

LINK_ROW = np.dtype(
    [
        ("given", np.int64),  # what it gives to flows that others hold, in units so small that sums are exact,
        ("whole", np.int64),  # and its capacity
        ("per_unit", np.float64),
        ("top", np.float64),  # no flow that others hold has a higher level
        ("level", np.float64),  # of the flows that it holds
        ("n_held", np.int32),
        ("n_users", np.int32),
        ("first", np.int32),  # row of its users: those that it holds, then the others
        ("unit", np.float64),
        ("clock", np.float64),  # bytes that each flow would have been sent if it had always been held,
        ("since", np.float64),  # up to this time
        ("least", np.float64),  # first end of a flow that it holds, on its clock
        ("stale", np.bool_),  # whether `least` is to be found again
    ],
    align=True,
)


class State(NamedTuple):
    """All state; changed in place."""

    link: Any
    first: Any  # int64[n_flows + 1], rows of
    of_flow: Any  # int32[n_entries], links
    place: Any  # int32[n_entries], among the users of the link
    user: Any  # int32[n_entries], flows by link,
    user_entry: Any  # int32[n_entries], their entries,
    others: Any  # int32[n_entries, longest route], and their other links, ended by -1: read one after the other
    holder: Any  # int32[n_flows]
    ends: Any  # float64[n_flows], on the clock of the holder
    key: Any  # float64[n_links], heap of links to be looked at
    heap_place: Any  # int32[n_links]
    heap: Any  # int32[n_links]
    picked: Any  # int32[most users]
    next_end: Any  # float64[n_links], s, when the first flow that each holds will end; -1 where that must be found
    clock: Any  # float64[1], s
    n_heap: Any  # int64[1]


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
    t = _set_up(capacity, routes, rate)
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
                t.next_end[r] = _next_end(t, r)
            now = min(now, t.next_end[r])
        if now == np.inf:
            return ended, False
        t.clock[0] = now
        for r in range(n_links):
            while t.next_end[r] <= now:
                left -= 1
                _depart(t, r, ended)
                t.next_end[r] = _next_end(t, r)
        if not _settle(t, n_links):
            return ended, False
    return ended, True


@kernel
def _set_up(
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
                _swap(t, k, link[r]["first"] + link[r]["n_held"])
                link[r]["n_held"] += 1
                link[r]["stale"] = True
            else:
                k -= 1
    return t


@uncounted
def _swap(t: Any, i: int, j: int) -> None:
    """Exchange two users of one link."""
    t.user[i], t.user[j] = t.user[j], t.user[i]
    t.user_entry[i], t.user_entry[j] = t.user_entry[j], t.user_entry[i]
    t.place[t.user_entry[i]], t.place[t.user_entry[j]] = i, j
    for k in range(t.others.shape[1]):
        t.others[i, k], t.others[j, k] = t.others[j, k], t.others[i, k]


@uncounted
def _next_end(t: Any, r: int) -> float:
    """Find when the first of the flows that link `r` holds will end."""
    link = t.link[r]
    if link["n_held"] == 0:
        return np.inf
    if link["stale"]:
        least = np.inf
        for k in range(link["first"], link["first"] + link["n_held"]):
            least = min(least, t.ends[t.user[k]])
        link["least"], link["stale"] = least, False
    end: float = link["since"] + max(link["least"] - link["clock"], 0.0) / link["level"]
    return end


@uncounted
def _give(t: Any, r: int, more: float, less: float) -> None:
    """Note that link `r` gives a flow that another one holds `more` in place of `less`."""
    link = t.link[r]
    link["given"] += int(more * link["per_unit"]) - int(less * link["per_unit"])
    link["top"] = max(link["top"], more)
    if link["n_held"] > 0:
        _ask(t, r, link["level"])
    elif link["given"] > link["whole"]:
        _ask(t, r, more)


@uncounted
def _ask(t: Any, r: int, key: float) -> None:
    """Have link `r` looked at, after those with smaller keys."""
    if t.heap_place[r] < 0:
        t.n_heap[0] = heap_fix(t.heap, t.n_heap[0], t.key, t.heap_place, r, key)


@uncounted
def _depart(t: Any, r: int, ended: NDArray[np.float64]) -> None:
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
            _swap(t, t.place[e], link["first"] + link["n_held"])
            _ask(t, r, link["level"])
        else:
            _give(t, t.of_flow[e], 0.0, t.link[r]["level"])
        _swap(t, t.place[e], last)
        link["n_users"] -= 1


@uncounted
def _settle(t: Any, n_links: int) -> bool:
    """Look at links, those with low levels first, until none is left; say whether it came to that."""
    steps = 0
    while t.n_heap[0] > 0:
        r = t.heap[0]
        t.n_heap[0] = heap_fix(t.heap, t.n_heap[0], t.key, t.heap_place, r, -1.0)
        again = True
        while again:
            again = _look_at(t, r)
            steps += 1
            if steps > MOST_STEPS * n_links:
                return False
    return True


@uncounted
def _look_at(t: Any, r: int) -> bool:
    """Make link `r` give away what it has, and no more; say whether it has to be looked at again."""
    link = t.link[r]
    if link["n_held"] == 0 and link["given"] <= link["whole"]:
        return False
    level = 0.0
    if link["n_held"] > 0:
        level = max(link["whole"] - link["given"], 0) * link["unit"] / link["n_held"]
    if link["top"] > level * TIE:
        n, level = _above(t, r, level)
        if n > 0:
            _set_level(t, r, level)
            for k in range(n):
                _hand_over(t, t.picked[k], r)
            link["top"] = level
            return True
    if level > link["level"] * TIE:
        n = _held_elsewhere(t, r, level)
        for k in range(n):
            f = t.picked[k]
            for e in range(t.first[f], t.first[f + 1]):
                q = t.of_flow[e]
                if q != r and t.link[q]["n_held"] > 0 and t.link[q]["level"] * TIE < level:
                    _hand_over(t, f, q)
                    break
        if n > 0:
            return True
    if level > link["level"] * TIE or level * TIE < link["level"]:
        _set_level(t, r, level)
    return False


@uncounted
def _above(t: Any, r: int, level: float) -> tuple[int, float]:
    """Pick the flows that others hold and that have more than link `r` can give to each; find what it can give.

    That rises as they are picked; Newton's method finds it from below.
    """
    link = t.link[r]
    n, top, lowest = 0, 0.0, level
    for k in range(link["first"] + link["n_held"], link["first"] + link["n_users"]):
        its = t.link[t.holder[t.user[k]]]["level"]
        if its > level * TIE:
            t.picked[n] = t.user[k]
            n += 1
        else:
            top = max(top, its)
    if n == 0:
        link["top"] = top
    while n > 0:
        whole = link["whole"] - link["given"]
        for k in range(n):
            whole += int(t.link[t.holder[t.picked[k]]]["level"] * link["per_unit"])
        level = max(whole, 0) * link["unit"] / (link["n_held"] + n)
        m = 0
        for k in range(n):
            if t.link[t.holder[t.picked[k]]]["level"] > level * TIE:
                t.picked[m] = t.picked[k]
                m += 1
        if m == n:
            break
        n = m
    return n, level if n > 0 else lowest


@uncounted
def _held_elsewhere(t: Any, r: int, level: float) -> int:
    """Pick the flows that link `r` holds and that another full link keeps below `level`."""
    link = t.link[r]
    n = 0
    for k in range(link["first"], link["first"] + link["n_held"]):
        for j in range(t.others.shape[1]):
            q = t.others[k, j]
            if q < 0:
                break
            if t.link[q]["n_held"] > 0 and t.link[q]["level"] * TIE < level:
                t.picked[n] = t.user[k]
                n += 1
                break
    return n


@uncounted
def _advance(t: Any, r: int) -> None:
    """Bring the clock of link `r` up to now."""
    link = t.link[r]
    if link["n_held"] > 0:
        link["clock"] += link["level"] * (t.clock[0] - link["since"])
    link["since"] = t.clock[0]
    t.next_end[r] = -1.0


@uncounted
def _set_level(t: Any, r: int, level: float) -> None:
    """Give all flows that link `r` holds another level, and tell their other links."""
    link = t.link[r]
    _advance(t, r)
    old = link["level"]
    link["level"] = level
    for k in range(link["first"], link["first"] + link["n_held"]):
        for j in range(t.others.shape[1]):
            q = t.others[k, j]
            if q < 0:
                break
            _give(t, q, level, old)


@uncounted
def _hand_over(t: Any, f: int, to: int) -> None:
    """Let link `to` hold flow `f`."""
    old, before = t.holder[f], t.link[t.holder[f]]["level"]
    _advance(t, old)
    _advance(t, to)
    level = t.link[to]["level"]
    t.ends[f] = t.ends[f] - t.link[old]["clock"] + t.link[to]["clock"]
    t.holder[f] = to
    for e in range(t.first[f], t.first[f + 1]):
        q = t.of_flow[e]
        link = t.link[q]
        if q == to:
            link["given"] -= int(before * link["per_unit"])
            _swap(t, t.place[e], link["first"] + link["n_held"])
            link["n_held"] += 1
            link["least"] = min(link["least"], t.ends[f]) if link["n_held"] > 1 else t.ends[f]
            _ask(t, q, level)
        elif q == old:
            link["n_held"] -= 1
            link["stale"] = True
            _swap(t, t.place[e], link["first"] + link["n_held"])
            _give(t, q, level, 0.0)
            _ask(t, q, link["level"])
        else:
            _give(t, q, level, before)
