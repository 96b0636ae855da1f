import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from volumes import volumes

from collectives.dense.double_tree import depths, double_tree_all_reduce, double_tree_bounds, two_trees
from commsim.core.cost import LogGP
from commsim.core.schedule import REDUCE


@given(n_ranks=st.integers(1, 3000))
def test_no_rank_has_children_in_both_trees_and_none_has_more_than_two(n_ranks):
    children = [np.bincount(parent[parent >= 0], minlength=n_ranks) for parent in two_trees(n_ranks)]
    assert not ((children[0] > 0) & (children[1] > 0)).any()
    assert max(c.max() for c in children) <= 2


@given(n_ranks=st.integers(1, 3000))
def test_both_are_trees_of_logarithmic_height(n_ranks):
    for parent in two_trees(n_ranks):
        assert np.count_nonzero(parent < 0) == 1
        assert depths(parent).max() <= np.ceil(np.log2(n_ranks))
        at = np.arange(n_ranks)
        for _ in range(n_ranks.bit_length()):
            at = np.where(parent[at] < 0, at, parent[at])
        assert (at == np.flatnonzero(parent < 0)).all()


@pytest.mark.parametrize("n_ranks", [2, 3, 6, 7, 8, 16, 33])
def test_no_rank_ever_sends_the_whole_vector_to_one_other(n_ranks):
    schedule = double_tree_all_reduce(n_ranks, n_chunks=4)
    transfers = schedule.expand()
    assert schedule.n_chunks == 8
    assert (transfers["count"] == 1).all()
    sent, received, _ = volumes(schedule)
    assert sent.max() <= 2.0
    assert received.max() <= 2.0
    assert sent.sum() == 2 * (n_ranks - 1)  # each half crosses each of the p-1 links of its tree up and down


def test_the_generating_round_goes_up_and_down_once():
    schedule = double_tree_all_reduce(16, n_chunks=5)
    (block,) = schedule.blocks
    height = max(int(depths(parent).max()) for parent in two_trees(16))
    assert (block.times, block.step) == (5, (0, 0, 1, 1))
    assert block.n_hops == 2 * height
    reducing = block.body["op"] == REDUCE
    assert (np.diff(reducing.astype(int)) <= 0).all()  # all the way up, then all the way down
    assert np.count_nonzero(reducing) == 2 * 15


def test_children_of_one_parent_reduce_in_the_same_hop():
    transfers = double_tree_all_reduce(32, n_chunks=1).expand()
    up = transfers[transfers["op"] == REDUCE]
    for parent, tree in {(int(t["dst"]), int(t["channel"])) for t in up}:
        assert len(set(up["hop"][(up["dst"] == parent) & (up["channel"] == tree)].tolist())) == 1


@given(
    n_ranks=st.integers(2, 300), n_chunks=st.integers(1, 100), size=st.floats(1, 1e9), L=st.floats(0, 1e-3),
    o=st.floats(0, 1e-3), gamma=st.floats(0, 1e-9),
)  # fmt: skip
def test_the_bounds_are_in_order(n_ranks, n_chunks, size, L, o, gamma):
    lower, upper = double_tree_bounds(n_ranks, size, LogGP(L=L, o=o, B=1e9, gamma=gamma), n_chunks)
    assert 0 < lower <= upper * (1 + 1e-12)


def test_the_upper_bound_tends_to_twice_the_vector():
    size, link = 1e9, LogGP(B=1e9)
    uppers = [double_tree_bounds(64, size, link, n_chunks)[1] for n_chunks in (1, 16, 256, 2**20)]
    assert uppers == sorted(uppers, reverse=True)
    assert uppers[-1] == pytest.approx(2 * size / link.B, rel=1e-4)


def test_a_hundred_thousand_ranks_are_built():
    schedule = double_tree_all_reduce(131_072)
    assert sum(len(block.body) for block in schedule.blocks) == 4 * 131_071
