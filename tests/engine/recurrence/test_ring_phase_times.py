"""What is left out when a phase is simulated: connections that are alike, and rounds in which all advance alike."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from commsim.engine.recurrence import rings
from commsim.engine.recurrence.between_phases import Claims, ResourceLoad
from commsim.engine.recurrence.connection_costs import SLACK, LockstepGroups
from commsim.engine.recurrence.ring_phases import RingPhase
from commsim.engine.recurrence.rings import _alike, _to_simulate, simulate_ring_phase

Ticks = NDArray[np.int64]


def phase_of(length: int, n_cycles: int, rounds: tuple[tuple[int, bool], ...]) -> RingPhase:
    """Only the shape and the rounds matter here."""
    connections = np.zeros((length, n_cycles), np.int64)
    return RingPhase(connections, connections, connections, connections, connections, connections, rounds)


def alone(n: int) -> LockstepGroups:
    return LockstepGroups(np.ones(n), np.full(n, -1, np.int32), 0)


def slow(phase: RingPhase, start: Ticks, last: Ticks, costs: tuple[Ticks, ...]) -> tuple[list[int], list[int]]:
    """Round by round, connection by connection."""
    n = phase.src.shape[1]
    begin, done, sent = start.tolist(), last.tolist(), start.tolist()
    for n_rounds, reduces in phase.rounds:
        for _ in range(n_rounds):
            sent = [b + int(c) for b, c in zip(begin, costs[0], strict=True)]
            done = [max(s + int(a), d) + int(r) * reduces for s, d, a, r in zip(sent, done, *costs[1:], strict=True)]
            begin = [max(sent[i], done[i - n]) for i in range(len(sent))]
    return sent, done


@pytest.mark.jit
@given(
    period=st.integers(1, 4),
    repeats=st.integers(1, 3),
    n_cycles=st.integers(1, 3),
    rounds=st.lists(st.tuples(st.integers(1, 90), st.booleans()), min_size=1, max_size=3),
    seed=st.integers(0, 999),
    costly=st.booleans(),
)
def test_a_phase_is_played_as_a_loop_would(
    period: int, repeats: int, n_cycles: int, rounds: list[tuple[int, bool]], seed: int, costly: bool
) -> None:
    rng = np.random.default_rng(seed)
    phase = phase_of(period * repeats, n_cycles, tuple(rounds))
    columns = rng.integers(0, 40, (5, period, n_cycles))[:, :, rng.integers(0, n_cycles, n_cycles)]  # some are alike
    start, last, *costs = np.tile(columns, (1, repeats, 1)).reshape(5, -1) << 20
    costs[2] *= costly
    simulated = simulate_ring_phase(phase, alone(len(start)), start, last, costs)
    assert simulated is not None
    assert (simulated[0].tolist(), simulated[1].tolist()) == slow(phase, start, last, tuple(costs))


def test_the_least_period_is_found() -> None:
    for send, period in (([1, 2, 1, 2, 1, 2], 2), ([1] * 6, 1), ([1, 2, 3, 4, 5, 6], 6)):
        zeros = np.zeros(6, np.int64)
        table, alike = _alike(phase_of(6, 1, ((3, False),)), zeros, zeros, (np.array(send), zeros, zeros))
        assert table.shape == (5, period, 1)
        assert alike.tolist() == [k % period for k in range(6)]


@given(st.integers(1, 500), st.integers(0, 60))
def test_rounds_that_advance_alike_are_multiplied(n_rounds: int, uneven: int) -> None:
    state, simulated = np.array([0, 100]), 0
    for n in _to_simulate((state,), n_rounds):
        for _ in range(n):
            state[:] += (7, 8 if simulated < uneven else 7)
            simulated += 1
    assert state.tolist() == [7 * n_rounds, 100 + 7 * n_rounds + min(uneven, n_rounds)]
    event("jumps" if simulated < n_rounds else "simulates all")
    if uneven == 0:
        assert simulated <= 17


@pytest.mark.jit
@given(
    latency=st.lists(st.integers(0, 60), min_size=2, max_size=12),
    send=st.integers(0, 60),
    n_rounds=st.integers(2, 3000),
)
def test_rounds_around_a_ring_whose_way_sets_the_pace_are_multiplied(
    latency: list[int], send: int, n_rounds: int
) -> None:
    phase = phase_of(len(latency), 1, ((n_rounds, False),))
    zeros = np.zeros(len(latency), np.int64)
    costs = zeros + send << 20, np.array(latency) << 20, zeros
    simulated = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rings, "_to_simulate", counted(_to_simulate, simulated))
        times = simulate_ring_phase(phase, alone(len(latency)), zeros, zeros, costs)
    assert times is not None
    assert (times[0].tolist(), times[1].tolist()) == slow(phase, zeros, zeros, costs)
    assert sum(simulated) <= 16 * 60 + 13  # a ring of up to 12 is in its regime by then


def counted(function: Callable[..., Iterator[int]], numbers: list[int]) -> Callable[..., Iterator[int]]:
    """Keep the numbers that it yields."""

    def yields(*args: Any) -> Iterator[int]:
        for n in function(*args):
            numbers.append(n)
            yield n

    return yields


@pytest.mark.jit
def test_connections_of_a_group_must_be_in_step() -> None:
    phase = phase_of(4, 1, ((9, False),))
    start, nothing = np.zeros(4, np.int64), np.zeros(4, np.int64)
    send, latency = np.full(4, 1 << 20), np.full(4, 1 << 18)
    group = LockstepGroups(np.ones(4), np.array([0, -1, 0, -1], np.int32), 1)
    assert simulate_ring_phase(phase, group, start, nothing, (send, latency, nothing)) is not None
    uneven = latency + np.array([0, 0, 0, 1 << 22])  # what connection 3 sends comes late to connection 0
    assert simulate_ring_phase(phase, group, start, nothing, (send, uneven, nothing)) is None
    longer = send + np.array([0, 0, 2 * SLACK, 0])
    assert simulate_ring_phase(phase, group, start, nothing, (longer, latency, nothing)) is None


def use(part: float, n_links: int = 1) -> Claims:
    """One connection that asks for a part of resource 0."""
    return Claims(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([part]), n_links)


def at(begin: int, end: int, done: int = 0) -> tuple[Ticks, Ticks, Ticks]:
    return np.array([begin << 20]), np.array([end << 20]), np.array([done << 20])


def test_phases_may_use_a_resource_one_after_the_other_or_together_if_it_is_enough() -> None:
    load = ResourceLoad(1)
    assert load.add(use(1.0), *at(0, 5))
    assert load.add(use(0.5), *at(5, 9))
    assert load.add(use(0.5), *at(6, 8))
    assert not load.add(use(0.1), *at(7, 9))


def test_what_reaches_back_before_a_cluster_is_refused() -> None:
    load = ResourceLoad(1)
    assert load.add(use(0.1), *at(0, 5))
    assert load.add(use(0.1), *at(5, 9))
    assert not load.add(use(0.1), *at(4, 6))


def test_a_reduction_unit_is_used_until_all_is_complete() -> None:
    load = ResourceLoad(1)
    assert load.add(use(1.0, n_links=0), *at(0, 5, 7))
    assert not load.add(use(1.0, n_links=0), *at(6, 8, 9))
