"""Groups and grids of ranks, by where they sit."""

import pytest

from commsim.core.network import HOST, SWITCH, Network
from commsim.core.placement import Placement, place
from commsim.prediction.inputs import load_network
from commsim.prediction.locality import rank_grid, rank_groups, rank_levels
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star


def test_ranks_on_hosts_without_a_switch_are_near_nothing():
    assert rank_levels(ring(5), place(ring(5), 5), 5) == ()
    assert rank_groups(ring(5), place(ring(5), 5), 5) == ((0, 1, 2, 3, 4),)


def test_groups_of_ranks_follow_the_placement_and_leave_out_what_says_nothing():
    network = leaf_spine(3, 2, 2)
    assert rank_levels(network, Placement([4, 0, 5, 1]), 4) == (("rack", ((0, 2), (1, 3))),)
    assert rank_levels(network, Placement([0, 2, 4]), 3) == ()
    assert rank_levels(network, Placement([0, 1]), 2) == ()
    assert rank_levels(star(4), place(star(4), 4), 4) == ()


def test_levels_are_as_many_as_there_are_and_the_innermost_is_first():
    network = load_network("dgx-h100@fat_tree:k=8")
    levels = rank_levels(network, place(network, 128), 128)
    assert [(name, len(groups), len(groups[0])) for name, groups in levels] == [
        ("machine", 16, 8), ("pod", 8, 16),
    ]  # fmt: skip


def test_ranks_that_sit_on_something_else_are_near_nothing():
    network = Network("x", tuple("abcs"), [2, 2, HOST, SWITCH], [0, 1, 2], [3, 3, 3], 1.0, 0.0, machine=[0, 0, -1, -1])
    assert rank_levels(network, Placement([0, 1, 2]), 3) == (("machine", ((0, 1), (2,))),)


def test_ranks_that_are_spread_make_no_grid():
    network = load_network("leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4")
    assert rank_grid(network, place(network, 16, "packed"), 16) == (4, 4)
    assert rank_grid(network, place(network, 16, "spread"), 16) is None
    assert rank_grid(network, place(network, 6, "packed"), 6) is None


@pytest.mark.parametrize(
    ("network", "n_ranks", "sides"),
    [
        ("torus:dims=4x4x4", 64, (4, 4, 4)),
        ("torus:dims=2x3x4", 24, (2, 3, 4)),
        ("tpu-v4:dims=2x2x4", 16, (2, 2, 4)),
        ("torus:dims=4x4x4", 48, (3, 4, 4)),  # three whole layers of it
        ("torus:dims=4x4x4", 63, None),
        ("star:n_hosts=16", 16, None),
    ],
)
def test_the_grid_of_a_torus_is_its_own(network, n_ranks, sides):
    found = load_network(network)
    assert rank_grid(found, place(found, n_ranks, "packed"), n_ranks) == sides
    assert rank_grid(found, place(found, n_ranks, "random", seed=3), n_ranks) is None
