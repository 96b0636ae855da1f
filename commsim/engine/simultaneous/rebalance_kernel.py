"""Kernels that settle levels after a departure: who gives less than he could, and who has more than he can."""

from __future__ import annotations

from typing import Any

from commsim.core.jit import njit_norefcount

from ..queue_kernel import heap_fix
from .bottleneck_kernel import hand_over, set_level
from .departure_state import TIE

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
