"""What transfers touch, cut into cells."""

import numpy as np
import pytest
from flow_cases import random_schedule
from hypothesis import given, settings
from hypothesis import strategies as st

from collectives.dense.halving_doubling import halving_doubling_all_reduce, recursive_doubling_all_gather
from commsim.core import dependencies as chunk_intervals
from commsim.core.schedule import Schedule


def assert_cells_overlap_where_chunks_do(schedule: Schedule) -> None:
    transfers = schedule.expand()
    of = np.zeros(len(transfers), chunk_intervals.CELLS)
    n_cells = chunk_intervals.cut_cells(schedule, transfers, of)
    count = transfers["count"].astype(np.int64)
    first = np.concatenate((
        transfers["src"] * np.int64(schedule.n_addresses) + schedule.src_address(transfers),
        transfers["dst"] * np.int64(schedule.n_addresses) + schedule.dst_address(transfers),
    ))  # fmt: skip
    end = first + np.tile(count, 2)
    low, high = np.concatenate((of["read"], of["write"])), np.concatenate((of["read_end"], of["write_end"]))
    assert (low >= 0).all()
    assert (high <= n_cells).all()
    assert (low < high).all()
    chunks = (first[:, None] < end) & (first < end[:, None])
    np.testing.assert_array_equal((low[:, None] < high) & (low < high[:, None]), chunks)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), n_ranks=st.integers(2, 6), n_hops=st.integers(1, 6))
def test_chunks_are_their_own_cells_where_they_are_few(seed: int, n_ranks: int, n_hops: int) -> None:
    assert_cells_overlap_where_chunks_do(random_schedule(np.random.default_rng(seed), n_ranks, 1, n_hops))


@pytest.mark.nojit
@pytest.mark.parametrize("most", [1024, 0], ids=["by insertion", "by sorting"])
@pytest.mark.parametrize("schedule", [halving_doubling_all_reduce(32), recursive_doubling_all_gather(24)],
                         ids=lambda schedule: str(schedule.name))  # fmt: skip
def test_long_messages_are_cut_where_others_end(schedule: Schedule, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_intervals, "MAX_TOUCHES", most)
    assert_cells_overlap_where_chunks_do(schedule)
