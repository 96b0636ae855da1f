"""Kernels of rings against loops that say the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from commsim.engine.recurrence.connection_costs import SLACK
from commsim.engine.recurrence.ring_phase_kernel import cycles, pass_on, pass_on_and_reduce

NONE = np.empty((0, 2), np.int64)
Ticks = NDArray[np.int64]


def draw(seed: int, n: int) -> tuple[Ticks, Ticks, Ticks, Ticks, Ticks]:
    start, done, send, latency, reduction = np.random.default_rng(seed).integers(0, 50, (5, n)) << 20
    return start, done, send, latency, reduction


def slow(state: tuple[Ticks, Ticks], costs: tuple[Ticks, Ticks, Ticks], n_cycles: int, n_rounds: int) -> list[Ticks]:
    start, done = (a.tolist() for a in state)
    sent = start
    for _ in range(n_rounds):
        sent = [s + int(c) for s, c in zip(start, costs[0], strict=True)]
        done = [max(s + int(a), d) + int(r) for s, d, a, r in zip(sent, done, *costs[1:], strict=True)]
        start = [max(sent[i], done[i - n_cycles]) for i in range(len(start))]
    return [np.array(a) for a in (start, sent, done)]


@given(length=st.integers(1, 6), n_cycles=st.integers(1, 4), n_rounds=st.integers(1, 7), seed=st.integers(0, 999))
def test_rounds_with_reduction_are_what_a_loop_says(length: int, n_cycles: int, n_rounds: int, seed: int) -> None:
    start, done, *costs = draw(seed, length * n_cycles)
    sent = np.zeros_like(start)
    expected = slow((start, done), tuple(costs), n_cycles, n_rounds)  # type: ignore[arg-type]
    assert pass_on_and_reduce(start, done, sent, tuple(costs), NONE, n_cycles, n_rounds)
    for ours, theirs in zip((start, sent, done), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(length=st.integers(1, 6), n_cycles=st.integers(1, 4), n_rounds=st.integers(1, 7), seed=st.integers(0, 999))
def test_rounds_without_reduction_are_the_same(length: int, n_cycles: int, n_rounds: int, seed: int) -> None:
    start, _, send, latency, _ = draw(seed, length * n_cycles)
    nothing = np.zeros_like(start)
    expected = slow((start, nothing), (send, latency, nothing), n_cycles, n_rounds)[0]
    assert pass_on(start, send, send + latency, NONE, n_cycles, n_rounds)
    np.testing.assert_array_equal(start, expected)


@pytest.mark.parametrize("reduces", [False, True])
def test_connections_that_must_be_in_step_stop_the_play_when_they_are_not(reduces: bool) -> None:
    send, latency = np.array([5, 9, 5, 5]) << 20, np.full(4, 1 << 20)

    def simulates(pair: tuple[int, int], n_rounds: int, first: tuple[int, ...] = (0, 0, 0, 0)) -> bool:
        start, pairs = np.array(first), np.array([pair])
        if not reduces:
            return bool(pass_on(start, send, send + latency, pairs, 1, n_rounds))
        done, sent = np.zeros_like(start), np.zeros_like(start)
        return bool(pass_on_and_reduce(start, done, sent, (send, latency, 0 * send), pairs, 1, n_rounds))

    assert simulates((0, 3), 2)
    assert simulates((0, 2), 1)
    assert not simulates((0, 2), 2)  # in the second round connection 2 waits for the slow connection 1
    assert simulates((0, 3), 1, (0, 0, 0, SLACK))
    assert not simulates((0, 3), 1, (0, 0, 0, SLACK + 1))


@given(st.integers(1, 30).flatmap(lambda n: st.permutations(range(n))))
def test_cycles_cover_the_permutation(following: list[int]) -> None:
    order, length = cycles(np.array(following))
    assert sorted(order.tolist()) == list(range(len(following)))
    begin = 0
    for n in length.tolist():
        cycle = order[begin : begin + n].tolist()
        assert [following[i] for i in cycle] == [*cycle[1:], cycle[0]]
        begin += n
    assert begin == len(following)
