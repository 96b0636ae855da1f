"""Two binary heaps: slots by the time at which they finish, which changes, and events at fixed times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel


@kernel
def heap_fix(heap: NDArray[np.int32], n: int, slot: NDArray[Any], s: int, finish: float) -> int:
    """Set the finish time of slot `s` and restore the heap; insert it when it is not there, remove it when negative.

    Parameters
    ----------
    heap : int32[capacity]
        Slots, of which the first `n` form the heap; ``slot["heap_place"]`` says where a slot stands, or -1.
    finish : float, s
        New time; -1 takes the slot out.

    Returns
    -------
    int
        Slots in the heap.
    """
    place = slot[s]["heap_place"]
    if finish < 0.0:
        n -= 1
        slot[s]["heap_place"] = -1
        if place == n:
            return n
        s = heap[n]  # the last one fills the gap
        finish = slot[s]["finish"]
    else:
        slot[s]["finish"] = finish
        if place < 0:
            place = n
            n += 1
    while place > 0:
        parent = (place - 1) // 2
        above = heap[parent]
        if slot[above]["finish"] <= finish:
            break
        heap[place] = above
        slot[above]["heap_place"] = place
        place = parent
    while True:
        child = 2 * place + 1
        if child >= n:
            break
        if child + 1 < n and slot[heap[child + 1]]["finish"] < slot[heap[child]]["finish"]:
            child += 1
        below = heap[child]
        if slot[below]["finish"] >= finish:
            break
        heap[place] = below
        slot[below]["heap_place"] = place
        place = child
    heap[place] = s
    slot[s]["heap_place"] = place
    return n


@kernel
def push_event(time: NDArray[np.float64], code: NDArray[np.int64], n: int, at: float, what: int) -> int:
    """Insert an event into the heap of `n`; return how many there are. Equal times come out by code."""
    place = n
    while place > 0:
        parent = (place - 1) // 2
        if time[parent] < at or (time[parent] == at and code[parent] <= what):
            break
        time[place], code[place] = time[parent], code[parent]
        place = parent
    time[place], code[place] = at, what
    return n + 1


@kernel
def pop_event(time: NDArray[np.float64], code: NDArray[np.int64], n: int) -> int:
    """Remove the first event of the heap of `n`; return how many are left."""
    n -= 1
    at, what = time[n], code[n]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= n:
            break
        other = child + 1
        if other < n and (time[other] < time[child] or (time[other] == time[child] and code[other] < code[child])):
            child = other
        if time[child] > at or (time[child] == at and code[child] >= what):
            break
        time[place], code[place] = time[child], code[child]
        place = child
    time[place], code[place] = at, what
    return n
