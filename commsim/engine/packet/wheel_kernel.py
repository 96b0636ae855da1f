"""The queue of events: a timing wheel for what is near, a binary heap for what is far.

Each event is pending at most once. A bucket of the wheel keeps its events in the order of (time, number), so the wheel
is exact whatever the width of a bucket. Inserting looks from the bucket's end, where an event nearly always belongs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import uncounted

from .packet_state import CURSOR, N_BUCKETS, N_FAR, N_NEAR, NOW, SHIFT

LAST = N_BUCKETS - 1
N_WORDS = N_BUCKETS // 64
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
PLACE = np.zeros(64, np.int64)
for _i in range(64):
    PLACE[((1 << _i) * int(DE_BRUIJN) & (2**64 - 1)) >> 58] = _i


@uncounted
def schedule(t: Any, number: int, when: int) -> None:
    """Let event `number` happen at time `when`, not before now; it must not be pending."""
    t.event[number]["when"] = when
    place = when >> t.clock[SHIFT]
    if place - t.clock[CURSOR] < N_BUCKETS:
        _insert(t, number, when, place & LAST)
    else:
        _push(t, number)


@uncounted
def next_event(t: Any) -> int:
    """Take the earliest event, move the clock to it and return its number; -1 when nothing is pending."""
    clock = t.clock
    if clock[N_NEAR] == 0:
        if clock[N_FAR] == 0:
            return -1
        clock[CURSOR] = t.event[t.heap[0]]["when"] >> clock[SHIFT]
    while clock[N_FAR] and (t.event[t.heap[0]]["when"] >> clock[SHIFT]) - clock[CURSOR] < N_BUCKETS:
        number = _pop(t)
        when = t.event[number]["when"]
        _insert(t, number, when, (when >> clock[SHIFT]) & LAST)
    place = _first_bucket(t.bits, clock[CURSOR] & LAST)
    number = t.bucket[place]["head"]
    after = t.event[number]["after"]
    t.bucket[place]["head"] = after
    if after < 0:
        t.bucket[place]["tail"] = -1
        t.bits[place >> 6] ^= np.uint64(1) << np.uint64(place & 63)
    else:
        t.event[after]["before"] = -1
    clock[N_NEAR] -= 1
    clock[NOW] = t.event[number]["when"]
    clock[CURSOR] = clock[NOW] >> clock[SHIFT]
    return int(number)


@uncounted
def _insert(t: Any, number: int, when: int, place: int) -> None:
    event = t.event
    before = t.bucket[place]["tail"]
    after = -1
    while before >= 0 and (event[before]["when"] > when or (event[before]["when"] == when and before > number)):
        after = before
        before = event[before]["before"]
    event[number]["before"] = before
    event[number]["after"] = after
    if before < 0:
        t.bucket[place]["head"] = number
    else:
        event[before]["after"] = number
    if after < 0:
        t.bucket[place]["tail"] = number
    else:
        event[after]["before"] = number
    t.bits[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    t.clock[N_NEAR] += 1


@uncounted
def _first_bucket(bits: Any, start: int) -> int:
    """Return the first bucket, from `start` and around, that is not empty."""
    word = start >> 6
    found = bits[word] >> np.uint64(start & 63) << np.uint64(start & 63)
    while found == 0:
        word = (word + 1) & (N_WORDS - 1)
        found = bits[word]
    lowest = found & (~found + np.uint64(1))
    return int((word << 6) + PLACE[(lowest * DE_BRUIJN) >> np.uint64(58)])


@uncounted
def _earlier(event: Any, a: int, b: int) -> bool:
    return bool(event[a]["when"] < event[b]["when"] or (event[a]["when"] == event[b]["when"] and a < b))


@uncounted
def _push(t: Any, number: int) -> None:
    place = t.clock[N_FAR]
    t.clock[N_FAR] += 1
    while place > 0:
        parent = (place - 1) >> 1
        if not _earlier(t.event, number, t.heap[parent]):
            break
        t.heap[place] = t.heap[parent]
        place = parent
    t.heap[place] = number


@uncounted
def _pop(t: Any) -> int:
    top = t.heap[0]
    t.clock[N_FAR] -= 1
    size = t.clock[N_FAR]
    number = t.heap[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _earlier(t.event, t.heap[child + 1], t.heap[child]):
            child += 1
        if not _earlier(t.event, t.heap[child], number):
            break
        t.heap[place] = t.heap[child]
        place = child
    t.heap[place] = number
    return int(top)
