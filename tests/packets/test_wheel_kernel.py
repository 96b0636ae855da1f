"""The wheel against a heap."""

import heapq
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from commsim.packets import event_rows as s
from commsim.packets.links.wheel_kernel import bucket_shift, next_event, schedule

N_EVENTS = 40
HOUR = 3600 * 10**12  # ps


def wheel(shift: int) -> s.EventQueue:
    return s.event_queue(N_EVENTS, shift)


def delay(random: Random, shift: int) -> int:
    """Picoseconds: equal times, one bucket, and both sides of the spans of the fine and of the coarse wheel."""
    bucket, half = 1 << shift, s.N_BUCKETS // 2 << shift
    edge = random.choice([0, bucket, half, 2 * half, 3 * half, s.N_HALVES * half, 3 * s.N_HALVES * half, HOUR])
    around = random.choice([0, 2 * bucket, half])
    return max(0, edge + random.randint(-around, around))


# Numbers come from one seed: to draw each of the hundreds by itself took a hundred times as long as the wheel.
@given(seed=st.integers(0, 2**32), shift=st.integers(0, 14))
def test_events_come_in_order_of_time_and_number_however_far_ahead_they_were(seed: int, shift: int) -> None:
    random = Random(seed)
    queue, heap, now = wheel(shift), list[tuple[int, int]](), 0
    idle = list(range(N_EVENTS))
    for _ in range(random.randint(1, 12)):
        for _ in range(random.randint(0, len(idle))):
            number = idle.pop(random.randrange(len(idle)))
            when = now + delay(random, shift)
            schedule(queue, number, when)
            heapq.heappush(heap, (when, number))
        for _ in range(random.randint(0, len(heap))):
            expected = heapq.heappop(heap)
            number = next_event(queue)
            now = int(queue.event["when"][number])
            assert (now, number) == expected
            idle.append(number)
    while heap:
        expected = heapq.heappop(heap)
        number = next_event(queue)
        assert (int(queue.event["when"][number]), number) == expected
    assert next_event(queue) == -1


@given(order=st.permutations(range(N_EVENTS)), early=st.integers(0, 2))
def test_equal_times_come_by_number_whatever_the_order_they_came_in(order: list[int], early: int) -> None:
    queue = wheel(8)
    for number in order:
        schedule(queue, number, 1000 + number % (early + 1))
    out = [next_event(queue) for _ in order]
    assert out == sorted(order, key=lambda number: (number % (early + 1), number))


def test_buckets_are_so_wide_that_the_fine_wheel_spans_two_waits_on_a_link() -> None:
    shift = bucket_shift(1e6)
    assert s.N_BUCKETS << shift >= 2 * 10**6 > s.N_BUCKETS << (shift - 1)
