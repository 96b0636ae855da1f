import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numeric_run import run_reference

from collectives.dense.unequal_blocks import direct_all_to_all_v, ring_all_gather_v
from commsim.core.checking.check import check
from commsim.core.errors import InputError, ScheduleError
from commsim.core.files.schedule_file import read_schedule, write_schedule
from commsim.core.program import Program

some = st.integers(0, 4)


@given(counts=st.lists(some, min_size=1, max_size=12).filter(any))
def test_blocks_of_any_sizes_are_gathered(counts):
    n_ranks = len(counts)
    schedule = ring_all_gather_v(n_ranks, tuple(counts))
    assert check(schedule).method == "exact"
    inputs = np.full((n_ranks, 3 * sum(counts)), -1)
    ends = 3 * np.cumsum(counts)
    for rank, count in enumerate(counts):
        inputs[rank, ends[rank] - 3 * count : ends[rank]] = rank
    wanted = np.tile(np.repeat(np.arange(n_ranks), 3 * np.array(counts)), (n_ranks, 1))
    np.testing.assert_array_equal(run_reference(schedule, inputs), wanted)


@given(n_ranks=st.integers(1, 7), data=st.data())
def test_blocks_of_any_sizes_are_exchanged(n_ranks, data):
    counts = tuple(data.draw(st.lists(some, min_size=n_ranks**2, max_size=n_ranks**2).filter(any)))
    schedule = direct_all_to_all_v(n_ranks, counts)
    assert check(schedule).method == "exact"
    matrix = np.reshape(counts, (n_ranks, n_ranks))
    inputs = np.full((n_ranks, 2 * schedule.n_chunks), -1)
    for rank in range(n_ranks):
        row = np.concatenate([np.full(2 * matrix[rank, to], 100 * rank + to) for to in range(n_ranks)])
        inputs[rank, : len(row)] = row
    outputs = run_reference(schedule, inputs)
    for rank in range(n_ranks):
        wanted = np.concatenate([np.full(2 * matrix[o, rank], 100 * o + rank) for o in range(n_ranks)])
        np.testing.assert_array_equal(outputs[rank, : len(wanted)], wanted)


def test_empty_blocks_are_no_messages():
    assert ring_all_gather_v(3, (0, 2, 0)).n_transfers == 2
    assert direct_all_to_all_v(2, (0, 3, 0, 0)).n_transfers == 1


def test_the_checker_knows_whose_chunk_is_whose():
    p = Program(2, 3)
    p.copy(0, src=0, dst=1, count=1)
    p.copy(1, src=1, dst=0, count=2)
    check(p.build("right", "all_gather_v", layout=(1, 2)))
    with pytest.raises(ScheduleError, match="participant 1 sends chunk 1, which no transfer has written"):
        check(p.build("wrong", "all_gather_v", layout=(2, 1)))


@pytest.mark.parametrize("schedule", [ring_all_gather_v(3, (1, 0, 4)), direct_all_to_all_v(2, (1, 2, 3, 4))])
def test_the_counts_are_saved_with_the_schedule(schedule, tmp_path):
    write_schedule(schedule, tmp_path / "v.npz")
    again = read_schedule(tmp_path / "v.npz")
    assert again == schedule
    assert again.layout == schedule.layout != ()


@pytest.mark.parametrize("build", [ring_all_gather_v, direct_all_to_all_v])
@pytest.mark.parametrize("counts", [(), (1,), (0, 0), (0, 0, 0, 0), (1, -1), (1, 1, 1, -1), (1, 2, 3)])
def test_counts_that_fit_no_ranks_are_refused(build, counts):
    with pytest.raises(InputError, match=r"counts must be [24] whole numbers, one for each .*, got"):
        build(2, counts)


def test_chunks_that_do_not_match_the_counts_are_refused():
    with pytest.raises(ScheduleError, match="the blocks of this layout make 3 chunks, got n_chunks=6"):
        Program(2, 6).build("v", "all_gather_v", layout=(1, 2))


def test_a_layout_where_none_belongs_is_refused():
    with pytest.raises(ScheduleError, match="takes no layout, got 1x1"):
        Program(2, 2).build("x", "all_gather", layout=(1, 1))
