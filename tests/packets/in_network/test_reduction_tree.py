import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numeric_run import run_reference

from collectives.in_network.reduction_tree import all_reduce_chunk, read_tree, tree_cost
from commsim.core.checking.check import check
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program


@st.composite
def trees(draw):
    """Any tree: every helper but the topmost is below an earlier one, and those without ranks get one."""
    n_helpers = draw(st.integers(1, 5))
    above = [-1] + [draw(st.integers(0, i - 1)) for i in range(1, n_helpers)]
    leaves = [h for h in range(n_helpers) if h not in above]
    leaf = leaves + draw(st.lists(st.integers(0, n_helpers - 1), min_size=1, max_size=6))
    n_ranks = len(leaf)
    return n_ranks, tuple(n_ranks + h for h in leaf) + tuple(n_ranks + h if h >= 0 else -1 for h in above)


def built(n_ranks, tree, n_chunks, window):
    shape = read_tree("it", n_ranks, tree)
    p = Program(n_ranks, n_chunks, n_helpers=shape.n_helpers, n_scratch=window or 0)
    with p.repeat(n_chunks, chunk=1):
        all_reduce_chunk(p, shape, window)
    return p.build("it", "all_reduce")


@given(drawn=trees(), n_chunks=st.integers(1, 7), window=st.one_of(st.none(), st.integers(1, 7)))
def test_any_tree_and_any_window_is_an_all_reduce(drawn, n_chunks, window):
    assert check(built(*drawn, n_chunks, window)).method == "exact"


@given(drawn=trees(), window=st.one_of(st.none(), st.integers(1, 3)))
def test_the_sums_are_right_on_numbers_too(drawn, window):
    n_ranks, tree = drawn
    inputs = np.random.default_rng(n_ranks).integers(-100, 100, (n_ranks, 12)).astype(float)
    np.testing.assert_array_equal(
        run_reference(built(n_ranks, tree, 4, window), inputs), np.tile(inputs.sum(axis=0), (n_ranks, 1))
    )


@given(drawn=trees())
def test_each_participant_sends_one_stream_up_and_one_to_each_child_down(drawn):
    n_ranks, tree = drawn
    transfers = built(n_ranks, tree, 3, None).expand()
    moving = transfers[transfers["src"] != transfers["dst"]]
    sent = np.bincount(moving["src"], minlength=len(tree)) / 3
    fan_in = np.bincount([t for t in tree if t >= 0], minlength=len(tree))
    np.testing.assert_array_equal(sent, fan_in + (np.array(tree) >= 0))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ((3, 3), "got 2 numbers"),
        ((3, 3, -1), "got 3 numbers"),
        ((3, 3, 3, 3), "-1 for exactly one helper, the topmost"),
        ((3, 3, -1, -1), "-1 for exactly one helper, the topmost"),
        ((3, 3, -1, 4, 3), "-1 for exactly one helper, the topmost"),
        ((3, 3, 3, -2), "-1 for exactly one helper, the topmost"),
        ((3, 3, 1, -1), r"parents are helpers 3\.\.3, got 1"),
        ((3, 3, 7, -1), r"parents are helpers 3\.\.3, got 7"),
        ((3, 3, 3, -1, 3), "helper 4 has no child"),
        ((3, 3, 4, -1, 5, 4), "never reaches the topmost"),
    ],
)
def test_what_is_no_tree_of_helpers_above_the_ranks_is_refused(tree, message):
    with pytest.raises(InputError, match=f"^it: tree must be the parent of each of 3 ranks.*{message}"):
        read_tree("it", 3, tree)


def test_unequal_aggregators_have_a_closed_form_only_where_adding_takes_no_time():
    shape = read_tree("it", 3, (4, 4, 3, -1, 3))
    assert tree_cost("it", shape, 1.0, LogGP(B=1.0), 1, None) == 4
    assert tree_cost("it", read_tree("it", 3, (3, 3, 3, -1)), 1.0, LogGP(B=1.0, gamma=1.0), 1, None) == 5
    uneven = read_tree("it", 5, (6, 6, 7, 7, 7, -1, 5, 5))
    with pytest.raises(InputError, match="closed form with gamma only if all aggregators of a level are equal"):
        tree_cost("it", uneven, 1.0, LogGP(B=1.0, gamma=1.0), 1, None)
