"""Other queues for the flow engine: each has the interface of its heap, so that it can be put in the heap's place.

``X_fix(heap, n, key, place, s, value)`` sets the key of thing `s`, or takes it out where `value` is negative, and
returns how many things there are; the first one is ``heap[0]``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount

Numbers = NDArray[np.int32]
Keys = NDArray[np.float64]
N_BUCKETS = 4096
FAR = 2.0**60


@njit_norefcount
def four_ary_fix(heap: Numbers, n: int, key: Keys, place: Numbers, s: int, value: float) -> int:
    """Heap with four children a node: half as many levels, more comparisons on each."""
    at = place[s]
    if value < 0.0:
        n -= 1
        place[s] = -1
        if at == n:
            return n
        s = heap[n]
        value = key[s]
    else:
        key[s] = value
        if at < 0:
            at = n
            n += 1
    while at > 0 and key[heap[(at - 1) // 4]] > value:
        heap[at] = heap[(at - 1) // 4]
        place[heap[at]] = at
        at = (at - 1) // 4
    while 4 * at + 1 < n:
        child = 4 * at + 1
        for other in range(child + 1, min(child + 4, n)):
            if key[heap[other]] < key[heap[child]]:
                child = other
        if key[heap[child]] >= value:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = s
    place[s] = at
    return n


@njit_norefcount
def tournament_fix(heap: Numbers, n: int, key: Keys, place: Numbers, s: int, value: float) -> int:
    """Tree of winners over all things, there or not: ``heap[node]`` is the first of the two below it."""
    size = place.shape[0]
    if value < 0.0:
        n -= 1
        place[s] = -1
        key[s] = np.inf
    else:
        n += place[s] < 0
        place[s] = 0
        key[s] = value
    node = (size + s) // 2
    while node > 0:
        a, b = 2 * node, 2 * node + 1
        left = a - size if a >= size else heap[a]
        right = b - size if b >= size else heap[b]
        winner = left if key[left] <= key[right] else right
        if heap[node] == winner and winner != s:
            break
        heap[node] = winner
        node //= 2
    heap[0] = heap[1]
    return n


def plant(heap: Numbers, key: Keys, size: int) -> None:
    """Begin a tournament in which nobody takes part."""
    key[:] = np.inf
    for node in range(size - 1, 0, -1):
        heap[node] = 2 * node - size if 2 * node >= size else heap[2 * node]


@njit_norefcount
def wheel_fix(heap: Numbers, n: int, key: Keys, place: Numbers, s: int, value: float) -> int:
    """Keep a timing wheel, or calendar: buckets of equal widths, used again when time has gone once around.

    Behind ``heap[0]`` stand the first thing of each bucket, then the next and the previous one of each thing; behind
    the keys stand the width of a bucket, and the bucket that time has come to.
    """
    size = place.shape[0]
    after, before = 1 + N_BUCKETS, 1 + N_BUCKETS + size
    was_first = n > 0 and heap[0] == s
    if place[s] >= 0:
        n -= 1
        if heap[after + s] >= 0:
            heap[before + heap[after + s]] = heap[before + s]
        if heap[before + s] >= 0:
            heap[after + heap[before + s]] = heap[after + s]
        else:
            heap[1 + place[s]] = heap[after + s]
        place[s] = -1
    if value >= 0.0:
        n += 1
        key[s] = value
        number = int(_least(float(value / key[size]), FAR))
        bucket = number % N_BUCKETS
        there = heap[1 + bucket]
        heap[after + s], heap[before + s] = there, -1
        if there >= 0:
            heap[before + there] = s
        heap[1 + bucket] = s
        place[s] = bucket
        if n == 1 or (not was_first and value < key[heap[0]]):
            heap[0] = s
            key[size + 1] = number
            return n
        key[size + 1] = _least(float(key[size + 1]), number) if was_first else key[size + 1]
    if was_first and n > 0:
        heap[0] = _first(heap, key, place, int(key[size + 1]))
        key[size + 1] = _least(float(key[heap[0]] / key[size]), FAR)
    return n


@njit_norefcount
def _least(a: float, b: float) -> float:
    return a if a < b else b


@njit_norefcount
def _first(heap: Numbers, key: Keys, place: Numbers, number: int) -> int:
    """Find the first thing, from a bucket on; where the whole wheel is empty, among all."""
    size = place.shape[0]
    after = 1 + N_BUCKETS
    for here in range(number, number + N_BUCKETS):
        first = -1
        s = heap[1 + here % N_BUCKETS]
        while s >= 0:
            if key[s] / key[size] < here + 1 and (first < 0 or key[s] < key[first]):
                first = s
            s = heap[after + s]
        if first >= 0:
            return first
    first = -1
    for s in range(size):
        if place[s] >= 0 and (first < 0 or key[s] < key[first]):
            first = s
    return first
