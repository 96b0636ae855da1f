"""Kernels about links that hold flows: their clocks, their levels, and how a flow changes hands."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from ..queue_kernel import heap_fix


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
