"""The wheel against a heap."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.engine.packet import packet_state as s
from commsim.engine.packet.packet_run import bucket_shift, lay_out
from commsim.engine.packet.wheel_kernel import next_event, schedule

N_EVENTS = 40
HOUR = 3600 * 10**12  # ps


def wheel(shift: int) -> s.EventQueue:
    link = np.zeros(1, s.LINK_ROW)
    tables = lay_out(N_EVENTS - 3, 0, 0, link=link, buffer=np.zeros(1, s.BUFFER_ROW))
    tables.links.queue.wheel["shift"] = shift
    return tables.links.queue


@st.composite
def delays(draw: st.DrawFn, shift: int) -> int:
    """Picoseconds: equal times, one bucket, and both sides of the spans of the fine and of the coarse wheel."""
    bucket, half = 1 << shift, s.N_BUCKETS // 2 << shift
    edge = draw(st.sampled_from([0, bucket, half, 2 * half, 3 * half, s.N_HALVES * half, 3 * s.N_HALVES * half, HOUR]))
    return max(0, edge + draw(st.one_of(st.just(0), st.integers(-2 * bucket, 2 * bucket), st.integers(-half, half))))


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data(), shift=st.integers(0, 14))
def test_events_come_in_order_of_time_and_number_however_far_ahead_they_were(data: st.DataObject, shift: int) -> None:
    queue, heap, now = wheel(shift), list[tuple[int, int]](), 0
    idle = list(range(N_EVENTS))
    for _ in range(data.draw(st.integers(1, 12), "rounds")):
        for _ in range(data.draw(st.integers(0, len(idle)), "scheduled")):
            number = idle.pop(data.draw(st.integers(0, len(idle) - 1), "number"))
            when = now + data.draw(delays(shift), "delay")
            schedule(queue, number, when)
            heapq.heappush(heap, (when, number))
        for _ in range(data.draw(st.integers(0, len(heap)), "taken")):
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


@settings(max_examples=50)
@given(order=st.permutations(range(N_EVENTS)), early=st.integers(0, 2))
def test_equal_times_come_by_number_whatever_the_order_they_came_in(order: list[int], early: int) -> None:
    queue = wheel(8)
    for number in order:
        schedule(queue, number, 1000 + number % (early + 1))
    out = [next_event(queue) for _ in order]
    assert out == sorted(order, key=lambda number: (number % (early + 1), number))


def test_buckets_are_so_wide_that_the_fine_wheel_spans_two_waits_on_a_link() -> None:
    link = np.zeros(2, s.LINK_ROW)
    link["latency"], link["ps_per_byte"] = [10**6, 10**5], [0.0, 80.0]
    shift = bucket_shift(link)
    assert s.N_BUCKETS << shift >= 2 * 10**6 > s.N_BUCKETS << (shift - 1)
