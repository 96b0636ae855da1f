import dataclasses

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import SWITCH
from commsim.prediction.inputs import load_network
from commsim.routing.aggregator_placement import able_switches, place_aggregators

LEAF_SPINE = "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=4"


def seats(spec, ranks=None, **options):
    network = load_network(spec)
    ranks = network.endpoints.tolist() if ranks is None else ranks
    options.setdefault("able", able_switches(network)[0])
    where = place_aggregators(network, ranks, **options)
    return [network.nodes[node] for node in where.helpers], where.tree


def test_racks_are_added_up_by_their_switches_and_these_by_the_lowest_above_them():
    helpers, tree = seats(LEAF_SPINE)
    assert helpers == ["spine0", "leaf0", "leaf1", "leaf2"]
    assert tree == (13,) * 4 + (14,) * 4 + (15,) * 4 + (-1, 12, 12, 12)


def test_ranks_of_one_rack_need_its_switch_alone():
    assert seats(LEAF_SPINE, [4, 5, 7]) == (["leaf1"], (3, 3, 3, -1))


def test_a_rank_alone_in_its_rack_sends_to_where_paths_join():
    helpers, tree = seats(LEAF_SPINE, [0, 1, 4])
    assert helpers == ["spine0", "leaf0"]
    assert tree == (4, 4, 3, -1, 3)


def test_a_fat_tree_has_three_levels():
    helpers, tree = seats("fat_tree:k=4")
    assert helpers[0] == "core0"
    assert [name.rstrip("0123456789") for name in helpers] == ["core"] + ["aggregation"] * 4 + ["edge"] * 8
    assert tree[16] == -1
    assert [tree.count(node) for node in range(16, 29)] == [4] + [2] * 12


def test_with_a_server_only_the_first_switches_and_that_of_the_server_add():
    helpers, tree = seats("fat_tree:k=4", [0, 1, 2, 4, 5], server=7)
    assert helpers == ["edge3", "edge2", "edge0", "edge1", "h7"]  # those of a pod before those of others
    assert tree == (7, 7, 8, 6, 6, 9, 5, 5, 5, -1)


def test_only_switches_that_the_network_says_can_aggregate_do():
    network = load_network(LEAF_SPINE)
    assert able_switches(network)[1]
    can = network.aggregates | np.isin(network.nodes, ["spine1", "leaf2"])
    able, assumed = able_switches(dataclasses.replace(network, aggregates=can))
    assert not assumed
    assert [network.nodes[node] for node in np.flatnonzero(able)] == ["leaf2", "spine1"]
    helpers, tree = seats(LEAF_SPINE, able=able)
    assert helpers == ["spine1", "leaf2"]
    assert tree == (12,) * 8 + (13,) * 4 + (-1, 12)


def test_switches_inside_machines_are_not_assumed_to_be_programmable():
    network = load_network("dgx-h100@star:machines=2")
    able, assumed = able_switches(network)
    assert assumed
    outside = (network.kind == SWITCH) & (network.machine < 0)
    inside = [network.nodes[node] for node in np.flatnonzero(able & ~outside)]
    assert inside == ["m0.nvswitch0", "m1.nvswitch0"]  # which the host type says can reduce
    assert able[outside].all()


def test_gpus_go_to_the_switch_of_the_nic_that_is_nearest_to_them():
    network = load_network("rail_optimized:n_hosts=2")
    helpers, tree = seats("rail_optimized:n_hosts=2")
    assert len(helpers) == 9
    of_machine = [tree[8 * m : 8 * m + 8] for m in range(2)]
    assert of_machine[0] == of_machine[1]
    assert len(set(of_machine[0])) == 8
    assert network.machine[network.endpoints].tolist() == [0] * 8 + [1] * 8


def test_gpus_that_share_a_nic_share_its_switch():
    _, tree = seats("p4d@leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4")
    assert tree[0] == tree[1]


def test_aggregators_that_are_chosen_keep_their_order():
    network = load_network(LEAF_SPINE)
    chosen = [network.nodes.index(name) for name in ("spine1", "leaf1", "leaf0")]
    able = np.isin(np.arange(network.n_nodes), chosen)
    helpers, tree = seats(LEAF_SPINE, chosen=chosen, able=able)
    assert helpers == ["spine1", "leaf1", "leaf0"]
    assert tree == (14,) * 4 + (13,) * 4 + (12,) * 4 + (-1, 12, 12)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["spine0", "spine1"], "an aggregator on spine1, where no paths of ranks join"),
        (["spine0", "leaf0", "leaf0"], "two aggregators on one switch"),
        (["h0"], "the root of an aggregation tree must be a switch"),
    ],
)
def test_aggregators_that_are_chosen_where_they_are_of_no_use_are_refused(names, message):
    network = load_network(LEAF_SPINE)
    chosen = [network.nodes.index(name) for name in names]
    with pytest.raises(InputError, match=message):
        seats(LEAF_SPINE, chosen=chosen, able=np.isin(np.arange(network.n_nodes), chosen))


def test_a_network_without_switches_is_refused():
    with pytest.raises(InputError, match=r"torus.* has no switch that could aggregate"):
        seats("torus:dims=3x3")


def test_switches_that_reach_only_some_ranks_are_refused():
    network = load_network("dgx-h100@star:machines=2")
    able = np.isin(network.nodes, ["m0.nvswitch0"])
    with pytest.raises(InputError, match="no switch that can aggregate reaches all workers"):
        seats("dgx-h100@star:machines=2", able=able)
