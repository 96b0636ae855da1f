"""Two binary heaps: numbered things by a key that changes, and events at fixed times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount


@njit_norefcount
def heap_fix(
    heap: NDArray[np.int32], n: int, key: NDArray[np.float64], place: NDArray[np.int32], s: int, value: float
) -> int:
    """Set the key of thing `s` and restore the heap; insert it when it is not there, remove it when negative.

    Parameters
    ----------
    heap : int32[capacity]
        Things; the first `n` form the heap, the one with the smallest key first.
    key : float64[n_things]
        Key of each thing that is in the heap.
    place : int32[n_things]
        Position of each thing in the heap, or -1.
    value : float
        New key; -1 takes the thing out.

    Returns
    -------
    int
        Things in the heap.
    """
    at = place[s]
    if value < 0.0:
        n -= 1
        place[s] = -1
        if at == n:
            return n
        s = heap[n]  # the last one fills the gap
        value = key[s]
    else:
        key[s] = value
        if at < 0:
            at = n
            n += 1
    while at > 0:
        parent = (at - 1) // 2
        above = heap[parent]
        if key[above] <= value:
            break
        heap[at] = above
        place[above] = at
        at = parent
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        below = heap[child]
        if key[below] >= value:
            break
        heap[at] = below
        place[below] = at
        at = child
    heap[at] = s
    place[s] = at
    return n


@njit_norefcount
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


@njit_norefcount
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
