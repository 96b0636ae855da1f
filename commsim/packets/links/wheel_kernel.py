"""The queue of events: a timing wheel for what is near, a coarse one for what comes later, a list of the rest.

Each event is pending at most once. A bucket of the fine wheel is sorted by (time, number) when it is opened, so the
wheel is exact whatever the width of a bucket, and what enters a bucket before costs the same in any order. The coarse
wheel's buckets are halves of the fine one's span: the fine wheel always holds all of the present half and of the next.
The list is looked through when its first event comes within the coarse wheel's span, so at most once per span.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from commsim.packets.event_rows import LONGEST, N_BUCKETS, N_HALVES, NEVER, PS, EventQueue, Rows

LAST = N_BUCKETS - 1
LAST_HALF = N_HALVES - 1
HALF_BITS = N_BUCKETS.bit_length() - 2
N_WORDS = N_BUCKETS // 64
# of the numbers 0..63, those with bit i set
WITH_BIT = tuple(np.uint64(sum(1 << n for n in range(64) if n >> i & 1)) for i in range(6))


def bucket_shift(longest: float) -> int:
    """Width of the wheel's buckets, a power of two picoseconds: the wheel spans two of the longest waits on links."""
    span = min(max(2.0 * longest, 1.0), LONGEST * PS)
    return max(0, int(np.ceil(np.log2(span / N_BUCKETS))))


@njit_norefcount
def schedule(queue: EventQueue, number: int, when: int) -> None:
    """Let event `number` happen at time `when`, not before now; it must not be pending.

    It only joins a list, which `next_event` sees to: a short function is inlined wherever something is scheduled, and
    the long one once.

    Parameters
    ----------
    queue : EventQueue
        Pending events; changed in place.
    number : int
        Number of the event.
    when : int, ps
        Time at which it fires.
    """
    wheel = queue.wheel
    queue.event[number]["when"], queue.event[number]["after"] = when, -1
    if wheel["scheduled_head"] < 0:
        wheel["scheduled_head"] = number
    else:
        queue.event[wheel["scheduled_tail"]]["after"] = number
    wheel["scheduled_tail"] = number


@njit_norefcount
def next_event(queue: EventQueue) -> int:
    """Take the earliest event, move the clock to it and return its number; -1 when nothing is pending."""
    wheel = queue.wheel
    number = wheel["scheduled_head"]
    while number >= 0:
        after = queue.event[number]["after"]
        _place(queue, number)
        number = after
    wheel["scheduled_head"] = -1
    if wheel["open_head"] < 0 and not _open_next(queue):
        return -1
    number = wheel["open_head"]
    wheel["open_head"] = queue.event[number]["after"]
    return int(number)


@njit_norefcount
def _place(queue: EventQueue, number: int) -> None:
    """Put an event where its time says."""
    place = queue.event[number]["when"] >> queue.wheel["shift"]
    if place == queue.wheel["open"]:
        _insert(queue, number)
    else:
        _put(queue, number, place)


@njit_norefcount
def _open_next(queue: EventQueue) -> bool:
    """Sort the next bucket that is not empty; return whether there is one."""
    wheel = queue.wheel
    if wheel["n_near"] == 0:
        half = wheel["half"] + 2
        if wheel["n_middle"] > 0:
            while queue.middle[half & LAST_HALF] < 0:
                half += 1
        elif wheel["far"] >= 0:
            half = wheel["far_half"]
        else:
            return False
        wheel["open"] = (half << HALF_BITS) - 1
        _enter(queue, half)
    start = (wheel["open"] + 1) & LAST
    place = _first_bucket(queue.bits, start)
    wheel["open"] += 1 + ((place - start) & LAST)
    number = queue.bucket[place]
    queue.bucket[place] = -1
    queue.bits[place >> 6] ^= np.uint64(1) << np.uint64(place & 63)
    wheel["n_near"] -= _sort(queue, number)
    if wheel["open"] >> HALF_BITS > wheel["half"]:
        _enter(queue, wheel["open"] >> HALF_BITS)
    return True


@njit_norefcount
def _enter(queue: EventQueue, half: int) -> None:
    """Move on to a half of the wheel's span: bring in what happens in it and in the next one."""
    wheel = queue.wheel
    begin = max(wheel["half"] + 2, half)
    wheel["half"] = half
    if wheel["far_half"] - half < N_HALVES:
        number = wheel["far"]
        wheel["far"], wheel["far_half"] = -1, NEVER
        _put_all(queue, number)
    for entered in range(begin, half + 2):
        number = queue.middle[entered & LAST_HALF]
        queue.middle[entered & LAST_HALF] = -1
        wheel["n_middle"] -= _put_all(queue, number)


@njit_norefcount
def _put_all(queue: EventQueue, number: int) -> int:
    """Put a list of events where they belong now; return how many they are."""
    count = 0
    while number >= 0:
        after = queue.event[number]["after"]
        _put(queue, number, queue.event[number]["when"] >> queue.wheel["shift"])
        number = after
        count += 1
    return count


@njit_norefcount
def _put(queue: EventQueue, number: int, place: int) -> None:
    """Keep an event, in no order, with those of its bucket, of its half of the span, or with what is farther ahead."""
    event, wheel = queue.event[number], queue.wheel
    half = place >> HALF_BITS
    if half - wheel["half"] < 2:
        place &= LAST
        event["after"] = queue.bucket[place]
        queue.bucket[place] = number
        queue.bits[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
        wheel["n_near"] += 1
    elif half - wheel["half"] < N_HALVES:
        event["after"] = queue.middle[half & LAST_HALF]
        queue.middle[half & LAST_HALF] = number
        wheel["n_middle"] += 1
    else:
        event["after"] = wheel["far"]
        wheel["far"], wheel["far_half"] = number, min(wheel["far_half"], half)


@njit_norefcount
def _insert(queue: EventQueue, number: int) -> None:
    """Put an event into the bucket that is open, where it belongs; mostly that is one of its ends."""
    event, wheel = queue.event, queue.wheel
    before, after = wheel["open_tail"] if wheel["open_head"] >= 0 else -1, -1
    if before >= 0 and _earlier(event, number, wheel["open_head"]):
        before, after = -1, wheel["open_head"]
    elif before >= 0 and not wheel["both_ways"] and _earlier(event, number, before):
        _link_back(queue)
    while before >= 0 and _earlier(event, number, before):
        after = before
        before = event[before]["before"]
    event[number]["before"] = before
    event[number]["after"] = after
    if before < 0:
        wheel["open_head"] = number
    else:
        event[before]["after"] = number
    if after < 0:
        wheel["open_tail"] = number
    else:
        event[after]["before"] = number


@njit_norefcount
def _sort(queue: EventQueue, number: int) -> int:
    """Open a bucket's list, which is in reverse order of their scheduling; return how many they are."""
    event, wheel = queue.event, queue.wheel
    head, count, ascends = -1, 0, True
    wheel["open_tail"], wheel["both_ways"] = number, False
    while number >= 0:
        after = event[number]["after"]
        event[number]["after"] = head
        ascends &= head < 0 or _earlier(event, number, head)
        head, number = number, after
        count += 1
    if not ascends:
        head = _merge_runs(queue, head)
    wheel["open_head"] = head
    return count


@njit_norefcount
def _link_back(queue: EventQueue) -> None:
    """Link the open list backwards, too: few lists get an event that belongs in their middle."""
    event, number = queue.event, queue.wheel["open_head"]
    while event[number]["after"] >= 0:
        event[event[number]["after"]]["before"] = number
        number = event[number]["after"]
    queue.wheel["both_ways"] = True


@njit_norefcount
def _merge_runs(queue: EventQueue, head: int) -> int:
    """Sort a list: merge its ascending runs two by two until one is left; return its new head, and note its tail.

    What happens at one time is mostly scheduled in order, so a list of thousands has few runs.
    """
    event, n_runs, tail = queue.event, 2, -1
    while n_runs > 1:
        left, head, tail, n_runs = head, -1, -1, 0
        while left >= 0:
            n_runs += 1
            right = _cut_run(event, left)
            rest = _cut_run(event, right) if right >= 0 else -1
            while left >= 0 or right >= 0:
                if right < 0 or (left >= 0 and _earlier(event, left, right)):
                    chosen, left = left, event[left]["after"]
                else:
                    chosen, right = right, event[right]["after"]
                if tail < 0:
                    head = chosen
                else:
                    event[tail]["after"] = chosen
                tail = chosen
            left = rest
    queue.wheel["open_tail"] = tail
    return int(head)


@njit_norefcount
def _cut_run(event: Rows, number: int) -> int:
    """End a list where it stops ascending; return the first event after that, or -1."""
    after = event[number]["after"]
    while after >= 0 and _earlier(event, number, after):
        number, after = after, event[after]["after"]
    event[number]["after"] = -1
    return int(after)


@njit_norefcount
def _first_bucket(bits: NDArray[np.uint64], start: int) -> int:
    """Return the first bucket, from `start` and around, that is not empty."""
    word = start >> 6
    present = bits[word] >> np.uint64(start & 63) << np.uint64(start & 63)
    while present == 0:
        word = (word + 1) & (N_WORDS - 1)
        present = bits[word]
    lowest = present & (~present + np.uint64(1))
    place = word << 6
    for i in range(6):
        place += (lowest & WITH_BIT[i] != 0) << i
    return int(place)


@njit_norefcount
def _earlier(event: Rows, a: int, b: int) -> bool:
    return bool(event[a]["when"] < event[b]["when"] or (event[a]["when"] == event[b]["when"] and a < b))
