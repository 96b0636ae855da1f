"""State of flows that depart one after the other: links with clocks, and who holds whom.

Kernels that settle levels after a departure: who gives less than he could, and who has more than he can.

Kernels about links that hold flows: their clocks, their levels, and how a flow changes hands.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from commsim.core.jit import njit_norefcount

from ..queue_kernel import heap_fix

TIE = 1.0 + 1e-12  # levels this close are one level, as in the sharing kernels

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


MAX_STEPS = 1000
"""Links looked at for each link and departure, beyond which something goes round in circles."""


@njit_norefcount
def settle(t: Any, n_links: int) -> bool:
    """Look at links, those with low levels first, until none is left; say whether it came to that."""
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
def look_at(t: Any, r: int) -> bool:
    """Make link `r` give away what it has, and no more; say whether it has to be looked at again."""
    link = t.link[r]
    if link["n_held"] == 0 and link["given"] <= link["whole"]:
        return False
    level = 0.0
    if link["n_held"] > 0:
        level = max(link["whole"] - link["given"], 0) * link["unit"] / link["n_held"]
    if link["top"] > level * TIE:
        n, level = above(t, r, level)
        if n > 0:
            set_level(t, r, level)
            for k in range(n):
                hand_over(t, t.picked[k], r)
            link["top"] = level
            return True
    if level > link["level"] * TIE:
        n = held_elsewhere(t, r, level)
        for k in range(n):
            f = t.picked[k]
            for e in range(t.first[f], t.first[f + 1]):
                q = t.of_flow[e]
                if q != r and t.link[q]["n_held"] > 0 and t.link[q]["level"] * TIE < level:
                    hand_over(t, f, q)
                    break
        if n > 0:
            return True
    if level > link["level"] * TIE or level * TIE < link["level"]:
        set_level(t, r, level)
    return False


@njit_norefcount
def above(t: Any, r: int, level: float) -> tuple[int, float]:
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


@njit_norefcount
def held_elsewhere(t: Any, r: int, level: float) -> int:
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


@njit_norefcount
def swap(t: Any, i: int, j: int) -> None:
    """Exchange two users of one link."""
    t.user[i], t.user[j] = t.user[j], t.user[i]
    t.user_entry[i], t.user_entry[j] = t.user_entry[j], t.user_entry[i]
    t.place[t.user_entry[i]], t.place[t.user_entry[j]] = i, j
    for k in range(t.others.shape[1]):
        t.others[i, k], t.others[j, k] = t.others[j, k], t.others[i, k]


@njit_norefcount
def next_end(t: Any, r: int) -> float:
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


@njit_norefcount
def give(t: Any, r: int, more: float, less: float) -> None:
    """Note that link `r` gives a flow that another one holds `more` in place of `less`."""
    link = t.link[r]
    link["given"] += int(more * link["per_unit"]) - int(less * link["per_unit"])
    link["top"] = max(link["top"], more)
    if link["n_held"] > 0:
        ask(t, r, link["level"])
    elif link["given"] > link["whole"]:
        ask(t, r, more)


@njit_norefcount
def ask(t: Any, r: int, key: float) -> None:
    """Have link `r` looked at, after those with smaller keys."""
    if t.heap_place[r] < 0:
        t.n_heap[0] = heap_fix(t.heap, t.n_heap[0], t.key, t.heap_place, r, key)


@njit_norefcount
def advance(t: Any, r: int) -> None:
    """Bring the clock of link `r` up to now."""
    link = t.link[r]
    if link["n_held"] > 0:
        link["clock"] += link["level"] * (t.clock[0] - link["since"])
    link["since"] = t.clock[0]
    t.next_end[r] = -1.0


@njit_norefcount
def set_level(t: Any, r: int, level: float) -> None:
    """Give all flows that link `r` holds another level, and tell their other links."""
    link = t.link[r]
    advance(t, r)
    old = link["level"]
    link["level"] = level
    for k in range(link["first"], link["first"] + link["n_held"]):
        for j in range(t.others.shape[1]):
            q = t.others[k, j]
            if q < 0:
                break
            give(t, q, level, old)


@njit_norefcount
def hand_over(t: Any, f: int, to: int) -> None:
    """Let link `to` hold flow `f`."""
    old, before = t.holder[f], t.link[t.holder[f]]["level"]
    advance(t, old)
    advance(t, to)
    level = t.link[to]["level"]
    t.ends[f] = t.ends[f] - t.link[old]["clock"] + t.link[to]["clock"]
    t.holder[f] = to
    for e in range(t.first[f], t.first[f + 1]):
        q = t.of_flow[e]
        link = t.link[q]
        if q == to:
            link["given"] -= int(before * link["per_unit"])
            swap(t, t.place[e], link["first"] + link["n_held"])
            link["n_held"] += 1
            link["least"] = min(link["least"], t.ends[f]) if link["n_held"] > 1 else t.ends[f]
            ask(t, q, level)
        elif q == old:
            link["n_held"] -= 1
            link["stale"] = True
            swap(t, t.place[e], link["first"] + link["n_held"])
            give(t, q, level, 0.0)
            ask(t, q, link["level"])
        else:
            give(t, q, level, before)
