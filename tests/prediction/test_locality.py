"""Groups and grids of ranks, by where they sit."""

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
