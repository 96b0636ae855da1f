"""What transfers touch, cut into cells; and that the plan of any schedule keeps its order."""

from __future__ import annotations

import numpy as np
import pytest
from flow_cases import random_schedule
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives.halving_doubling import halving_doubling_all_reduce, recursive_doubling_all_gather
from commsim.core.placement import place
from commsim.core.schedule import Schedule
from commsim.engine.flow_plan import Job
from commsim.engine.rounds import moves
from commsim.engine.rounds.move_state import MOVE
from topologies.star import star


def assert_cells_overlap_where_chunks_do(schedule: Schedule) -> None:
    transfers = schedule.expand()
    move = np.zeros(len(transfers), MOVE)
    n_cells = moves._cut_cells(schedule, transfers, move)
    count = transfers["count"].astype(np.int64)
    first = np.concatenate((
        transfers["src"] * np.int64(schedule.n_addresses) + schedule.src_address(transfers),
        transfers["dst"] * np.int64(schedule.n_addresses) + schedule.dst_address(transfers),
    ))  # fmt: skip
    end = first + np.tile(count, 2)
    low, high = np.concatenate((move["read"], move["write"])), np.concatenate((move["read_end"], move["write_end"]))
    assert (low >= 0).all()
    assert (high <= n_cells).all()
    assert (low < high).all()
    chunks = (first[:, None] < end) & (first < end[:, None])
    cells = (low[:, None] < high) & (low < high[:, None])
    np.testing.assert_array_equal(cells, chunks)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), n_ranks=st.integers(2, 6), n_hops=st.integers(1, 6))
def test_chunks_are_their_own_cells_where_they_are_few(seed: int, n_ranks: int, n_hops: int) -> None:
    assert_cells_overlap_where_chunks_do(random_schedule(np.random.default_rng(seed), n_ranks, 1, n_hops))


@pytest.mark.nojit
@pytest.mark.parametrize("most", [1024, 0], ids=["by insertion", "by sorting"])
@pytest.mark.parametrize("schedule", [halving_doubling_all_reduce(32), recursive_doubling_all_gather(24)],
                         ids=lambda schedule: str(schedule.name))  # fmt: skip
def test_long_messages_are_cut_where_others_end(schedule: Schedule, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "MOST_TOUCHES", most)
    assert_cells_overlap_where_chunks_do(schedule)


def test_schedules_of_too_many_transfers_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    network = star(8, 1e9, 1e-6)
    job = Job(halving_doubling_all_reduce(8), place(network, 8))
    assert moves.plan_moves(network, job, routing=None, seed=0) is not None
    monkeypatch.setattr(moves, "MOST_TRANSFERS", 47)
    assert moves.plan_moves(network, job, routing=None, seed=0) is None
