import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numeric_run import run_reference
from volumes import volumes

from collectives.dense.neighbours import grid_neighbour_exchange, ring_send_recv
from commsim.core.checking.check import check
from commsim.core.errors import InputError, ScheduleError
from commsim.core.program import Program
from commsim.core.schedule import OUTPUT

sides = st.lists(st.integers(1, 5), min_size=1, max_size=4).filter(lambda dims: math.prod(dims) <= 60)


def test_every_rank_ends_with_the_buffer_of_the_previous_one():
    got = run_reference(ring_send_recv(4), np.arange(8).reshape(4, 2))
    assert got.tolist() == [[6, 7], [0, 1], [2, 3], [4, 5]]


def test_sending_the_other_way_round_is_found():
    p = Program(3, 1)
    p.copy(0, src=[0, 1, 2], dst=[2, 0, 1], dst_buffer=OUTPUT)
    with pytest.raises(ScheduleError, match="rank 0 ends with chunk 0 wrong: it holds chunk 1 where 2 belongs"):
        check(p.build("backwards", "send_recv"))


@given(sides)
def test_what_goes_up_comes_from_below_along_every_dimension(dims):
    n_ranks, n = math.prod(dims), 2 * len(dims)
    schedule = grid_neighbour_exchange(n_ranks, tuple(dims))
    check(schedule)
    inputs = np.arange(n_ranks * n).reshape(*dims, n)
    got = run_reference(schedule, inputs.reshape(n_ranks, n)).reshape(*dims, n)
    for axis in range(len(dims)):
        np.testing.assert_array_equal(got[..., 2 * axis], np.roll(inputs[..., 2 * axis + 1], 1, axis=axis))
        np.testing.assert_array_equal(got[..., 2 * axis + 1], np.roll(inputs[..., 2 * axis], -1, axis=axis))
    assert (volumes(schedule)[2] == 2 * sum(side > 1 for side in dims)).all()


def test_each_direction_is_a_channel_so_none_waits():
    transfers = grid_neighbour_exchange(4, (2, 2)).expand()
    assert len(np.unique(transfers[["src", "dst", "channel"]])) == len(transfers) == 16


@pytest.mark.parametrize("dims", [(), (2, 3), (-1, -4)])
def test_sides_that_make_no_such_grid_are_refused(dims):
    with pytest.raises(InputError, match=re.escape("dims must be sides of a grid of 4 ranks, got")):
        grid_neighbour_exchange(4, dims)
