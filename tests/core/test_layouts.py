import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.layouts import chunk_bounds, from_every_rank, from_every_rank_v, home_of_chunks, neighbour


@given(n_ranks=st.integers(1, 9), data=st.data())
def test_equal_counts_are_an_ordinary_all_to_all(n_ranks, data):
    ranks = np.array(data.draw(st.lists(st.integers(0, n_ranks - 1), min_size=1, unique=True)))
    plain = from_every_rank(ranks, n_ranks, 2 * n_ranks, ())
    counted = from_every_rank_v(ranks, n_ranks, 2 * n_ranks, (2,) * n_ranks**2)
    for a, b in zip(plain, counted, strict=True):
        np.testing.assert_array_equal(a, b)


@given(n_ranks=st.integers(1, 40), per_rank=st.integers(1, 5))
def test_homes_are_the_blocks_that_bounds_cut(n_ranks, per_rank):
    bounds = chunk_bounds(n_ranks * per_rank, n_ranks)
    home = home_of_chunks(n_ranks, n_ranks * per_rank)
    np.testing.assert_array_equal(home, np.repeat(np.arange(n_ranks), np.diff(bounds)))
    np.testing.assert_array_equal(home, home_of_chunks(n_ranks, n_ranks * per_rank, (per_rank,) * n_ranks))


@given(dims=st.lists(st.integers(1, 5), min_size=1, max_size=4), data=st.data())
def test_neighbours_are_one_step_along_their_dimension_and_know_each_other(dims, data):
    n_ranks = int(np.prod(dims))
    rank = np.array([data.draw(st.integers(0, n_ranks - 1))])
    block = np.array([data.draw(st.integers(0, 2 * len(dims) - 1))])
    there = neighbour(rank, block, tuple(dims))
    assert neighbour(there, block ^ 1, tuple(dims)) == rank
    a, b = (np.array(np.unravel_index(int(r[0]), dims)) for r in (rank, there))
    step = np.zeros(len(dims), int)
    step[block[0] // 2] = 2 * (block[0] % 2) - 1
    np.testing.assert_array_equal((a + step) % dims, b)
