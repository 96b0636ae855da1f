"""The queue of events: a timing wheel for what is near, a coarse one for what comes later, a binary heap for the rest.

Each event is pending at most once. A bucket of the fine wheel is sorted by (time, number) when it is opened, so the
wheel is exact whatever the width of a bucket, and what enters a bucket before costs the same in any order. The coarse
wheel's buckets are halves of the fine one's span: the fine wheel always holds all of the present half and of the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

from .packet_state import (
    ASKED,
    HALF,
    LAST_ASKED,
    N_BUCKETS,
    N_FAR,
    N_HALVES,
    N_MIDDLE,
    N_NEAR,
    NOW,
    OPEN,
    OPEN_HEAD,
    OPEN_TAIL,
    SHIFT,
)

LAST = N_BUCKETS - 1
LAST_HALF = N_HALVES - 1
HALF_BITS = N_BUCKETS.bit_length() - 2
N_WORDS = N_BUCKETS // 64
# of the numbers 0..63, those with bit i set
WITH_BIT = tuple(np.uint64(sum(1 << n for n in range(64) if n >> i & 1)) for i in range(6))


@njit_norefcount
def schedule(t: Any, number: int, when: int) -> None:
    """Let event `number` happen at time `when`, not before now; it must not be pending.

    It only joins a list, which `next_event` sees to: a short function is inlined wherever something is scheduled, and
    the long one once.
    """
    clock = t.clock
    t.event[number]["when"], t.event[number]["after"] = when, -1
    if clock[ASKED] < 0:
        clock[ASKED] = number
    else:
        t.event[clock[LAST_ASKED]]["after"] = number
    clock[LAST_ASKED] = number


@njit_norefcount
def next_event(t: Any) -> int:
    """Take the earliest event, move the clock to it and return its number; -1 when nothing is pending."""
    clock = t.clock
    number = clock[ASKED]
    while number >= 0:
        after = t.event[number]["after"]
        _place(t, number)
        number = after
    clock[ASKED] = -1
    if clock[OPEN_HEAD] < 0 and not _open_next(t):
        return -1
    number = clock[OPEN_HEAD]
    after = t.event[number]["after"]
    clock[OPEN_HEAD] = after
    if after >= 0:
        t.event[after]["before"] = -1
    clock[NOW] = t.event[number]["when"]
    return int(number)


@njit_norefcount
def _place(t: Any, number: int) -> None:
    """Put an event where its time says."""
    clock = t.clock
    place = t.event[number]["when"] >> clock[SHIFT]
    half = place >> HALF_BITS
    if place == clock[OPEN]:
        _insert(t, number)
    elif half - clock[HALF] < 2:
        _put(t, number, place & LAST)
    elif half - clock[HALF] < N_HALVES:
        _put_by(t, number, half)
    else:
        _push(t, number)


@njit_norefcount
def _open_next(t: Any) -> bool:
    """Sort the next bucket that is not empty; return whether there is one."""
    clock = t.clock
    if clock[N_NEAR] == 0:
        half = clock[HALF] + 2
        if clock[N_MIDDLE] > 0:
            while t.middle[half & LAST_HALF] < 0:
                half += 1
        elif clock[N_FAR] > 0:
            half = t.event[t.heap[0]]["when"] >> clock[SHIFT] >> HALF_BITS
        else:
            return False
        clock[OPEN] = (half << HALF_BITS) - 1
        _enter(t, half)
    start = (clock[OPEN] + 1) & LAST
    found = _first_bucket(t.bits, start)
    clock[OPEN] += 1 + ((found - start) & LAST)
    number = t.bucket[found]
    t.bucket[found] = -1
    t.bits[found >> 6] ^= np.uint64(1) << np.uint64(found & 63)
    clock[N_NEAR] -= _sort(t, number)
    if clock[OPEN] >> HALF_BITS > clock[HALF]:
        _enter(t, clock[OPEN] >> HALF_BITS)
    return True


@njit_norefcount
def _enter(t: Any, half: int) -> None:
    """Move on to a half of the wheel's span: bring in what happens in it and in the next one."""
    clock = t.clock
    begin = max(clock[HALF] + 2, half)
    clock[HALF] = half
    while clock[N_FAR] > 0:
        place = t.event[t.heap[0]]["when"] >> clock[SHIFT]
        if (place >> HALF_BITS) - half >= N_HALVES:
            break
        number = _pop(t)
        if (place >> HALF_BITS) - half < 2:
            _put(t, number, place & LAST)
        else:
            _put_by(t, number, place >> HALF_BITS)
    for entered in range(begin, half + 2):
        number = t.middle[entered & LAST_HALF]
        t.middle[entered & LAST_HALF] = -1
        while number >= 0:
            after = t.event[number]["after"]
            clock[N_MIDDLE] -= 1
            _put(t, number, (t.event[number]["when"] >> clock[SHIFT]) & LAST)
            number = after


@njit_norefcount
def _put(t: Any, number: int, place: int) -> None:
    """Put an event into a bucket, in no order."""
    t.event[number]["after"] = t.bucket[place]
    t.bucket[place] = number
    t.bits[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    t.clock[N_NEAR] += 1


@njit_norefcount
def _put_by(t: Any, number: int, half: int) -> None:
    """Keep an event, in no order, with those of its half of the wheel's span."""
    t.event[number]["after"] = t.middle[half & LAST_HALF]
    t.middle[half & LAST_HALF] = number
    t.clock[N_MIDDLE] += 1


@njit_norefcount
def _insert(t: Any, number: int) -> None:
    """Put an event into the bucket that is open, where it belongs; mostly that is one of its ends."""
    event, clock = t.event, t.clock
    before, after = clock[OPEN_TAIL] if clock[OPEN_HEAD] >= 0 else -1, -1
    if before >= 0 and _earlier(event, number, clock[OPEN_HEAD]):
        before, after = -1, clock[OPEN_HEAD]
    while before >= 0 and _earlier(event, number, before):
        after = before
        before = event[before]["before"]
    event[number]["before"] = before
    event[number]["after"] = after
    if before < 0:
        clock[OPEN_HEAD] = number
    else:
        event[before]["after"] = number
    if after < 0:
        clock[OPEN_TAIL] = number
    else:
        event[after]["before"] = number


@njit_norefcount
def _sort(t: Any, number: int) -> int:
    """Open a bucket's list, which is the wrong way round, as events came; return how many they are."""
    event = t.event
    head, count, ascends = -1, 0, True
    while number >= 0:
        after = event[number]["after"]
        event[number]["after"] = head
        ascends &= head < 0 or _earlier(event, number, head)
        head, number = number, after
        count += 1
    if not ascends:
        head = _merge_runs(event, head)
    t.clock[OPEN_HEAD] = head
    before = -1
    while head >= 0:
        event[head]["before"] = before
        before, head = head, event[head]["after"]
    t.clock[OPEN_TAIL] = before
    return count


@njit_norefcount
def _merge_runs(event: Any, head: int) -> int:
    """Sort a list: merge its runs of 1, of 2, of 4 and so on; return its new head."""
    size, n_merges = 1, 2
    while n_merges > 1:
        left, head, tail, n_merges = head, -1, -1, 0
        while left >= 0:
            n_merges += 1
            right, n_left, n_right = left, 0, size
            while n_left < size and right >= 0:
                n_left += 1
                right = event[right]["after"]
            while n_left > 0 or (n_right > 0 and right >= 0):
                if n_left > 0 and (n_right == 0 or right < 0 or _earlier(event, left, right)):
                    chosen, left = left, event[left]["after"]
                    n_left -= 1
                else:
                    chosen, right = right, event[right]["after"]
                    n_right -= 1
                if tail < 0:
                    head = chosen
                else:
                    event[tail]["after"] = chosen
                tail = chosen
            left = right
        event[tail]["after"] = -1
        size *= 2
    return int(head)


@njit_norefcount
def _first_bucket(bits: Any, start: int) -> int:
    """Return the first bucket, from `start` and around, that is not empty."""
    word = start >> 6
    found = bits[word] >> np.uint64(start & 63) << np.uint64(start & 63)
    while found == 0:
        word = (word + 1) & (N_WORDS - 1)
        found = bits[word]
    lowest = found & (~found + np.uint64(1))
    place = word << 6
    for i in range(6):
        place += (lowest & WITH_BIT[i] != 0) << i
    return int(place)


@njit_norefcount
def _earlier(event: Any, a: int, b: int) -> bool:
    return bool(event[a]["when"] < event[b]["when"] or (event[a]["when"] == event[b]["when"] and a < b))


@njit_norefcount
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


@njit_norefcount
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
