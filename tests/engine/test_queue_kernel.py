"""The two heaps against sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.engine.queue_kernel import heap_fix, pop_event, push_event

times = st.one_of(st.sampled_from([0.0, 1.0, 2.0, np.inf]), st.floats(0, 100))


@given(events=st.lists(times, max_size=60), n_early=st.integers(0, 60))
def test_events_come_out_in_order_of_time_and_none_is_lost(events: list[float], n_early: int) -> None:
    time, code = np.empty(len(events)), np.empty(len(events), np.int64)
    n, out = 0, []
    for what, at in enumerate(events):
        n = push_event(time, code, n, at, what)
    for _ in range(min(n_early, len(events) // 2)):  # take some out and put them back
        at, what = time[0], code[0]
        n = pop_event(time, code, n)
        n = push_event(time, code, n, at, what)
    while n:
        out.append((time[0], int(code[0])))
        n = pop_event(time, code, n)
    assert [at for at, _ in out] == sorted(events)
    assert sorted(what for _, what in out) == list(range(len(events)))
    assert all(events[what] == at for at, what in out)


@given(events=st.lists(st.sampled_from([0.0, 1.0]), max_size=30), data=st.data())
def test_equal_times_come_out_by_code_whatever_the_order_they_came_in(events: list[float], data: st.DataObject) -> None:
    time, code = np.empty(len(events)), np.empty(len(events), np.int64)
    n, out = 0, []
    for what in data.draw(st.permutations(range(len(events)))):
        n = push_event(time, code, n, events[what], what)
    while n:
        out.append((time[0], int(code[0])))
        n = pop_event(time, code, n)
    assert out == sorted(zip(events, range(len(events)), strict=True))


@given(data=st.data(), n_slots=st.integers(1, 20))
def test_the_slot_heap_follows_every_insertion_change_and_removal(data: st.DataObject, n_slots: int) -> None:
    heap, key, place = np.empty(n_slots, np.int32), np.empty(n_slots), np.full(n_slots, -1, np.int32)
    expected: dict[int, float] = {}
    n = 0
    for s, finish in data.draw(st.lists(st.tuples(st.integers(0, n_slots - 1), times), max_size=60)):
        if s in expected and data.draw(st.booleans()):
            del expected[s]
            n = heap_fix(heap, n, key, place, s, -1.0)
        else:
            expected[s] = finish
            n = heap_fix(heap, n, key, place, s, finish)
        assert n == len(expected)
        assert set(heap[:n].tolist()) == set(expected)
        assert all(place[heap[k]] == k for k in range(n))
        assert all(place[k] == -1 for k in range(n_slots) if k not in expected)
        if expected:
            assert key[heap[0]] == min(expected.values()) == expected[int(heap[0])]
