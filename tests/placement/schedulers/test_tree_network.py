import numpy as np
import pytest
from fabric_trees import trees
from hypothesis import given
from racks_of import racks

from commsim.core.errors import InputError
from commsim.core.machines.attach import attach_machines
from commsim.placement.schedulers.fabric_tree import Switch, SwitchTree
from commsim.placement.schedulers.tier_rates import parse_tiers
from commsim.placement.schedulers.tree_network import build_network, cables_up, host_names, tree_of
from commsim.prediction.inputs import load_network


def rate(network, a, b):
    link = (network.src == network.nodes.index(a)) & (network.dst == network.nodes.index(b))
    return float(network.bandwidth[link].sum())


def same(tree):
    return {(s.name, s.switches, s.nodes) for s in tree.switches}


@given(trees(balanced=True))
def test_a_tree_comes_back_from_the_network_it_makes(tree):
    n_tiers = max(tree.tiers().values())
    network = build_network(tree, parse_tiers(",".join(f"{i}={i}Gbps" for i in range(1, n_tiers + 1))))
    found, stand_ins = tree_of(network)
    assert same(found) == same(tree)
    assert not stand_ins
    assert network.is_cabled


def test_a_ratio_lays_cables_at_the_rate_of_the_ports_below():
    """Three nodes at 3:2 are two cables; one node is one, as no cable is slower than a port."""
    leaves = (Switch("a", nodes=("n0", "n1", "n2")), Switch("b", nodes=("n3",)))
    network = build_network(SwitchTree((*leaves, Switch("t", ("a", "b")))), parse_tiers("1=80Gbps,2=3:2"), 1e-6)
    assert rate(network, "n0", "a") == rate(network, "a", "n0") == 10e9
    assert rate(network, "a", "t") == rate(network, "t", "a") == 20e9
    assert rate(network, "b", "t") == 10e9
    assert set(network.bandwidth.tolist()) == {10e9}
    assert cables_up(network) == ["tier 2: 1 to 2 cables of 80Gbps up from each switch"]
    assert (network.latency == 1e-6).all()
    assert racks(network).tolist() == [0, 0, 0, 1]


def test_cables_of_another_rate_are_counted():
    leaves = (Switch("a", nodes=("n0", "n1")), Switch("b", nodes=("n2", "n3")))
    network = build_network(SwitchTree((*leaves, Switch("t", ("a", "b")))), parse_tiers("1=80Gbps,2=3x40Gbps"))
    assert rate(network, "a", "t") == 15e9
    assert cables_up(network) == ["tier 2: 3 cables of 40Gbps up from each switch"]


def test_switches_that_do_the_same_are_one():
    tree, stand_ins = tree_of(load_network("leaf_spine:n_leaves=3,n_spines=4,hosts_per_leaf=2"))
    assert same(tree) == {
        ("leaf0", (), ("h0", "h1")), ("leaf1", (), ("h2", "h3")), ("leaf2", (), ("h4", "h5")),
        ("spine0", ("leaf0", "leaf1", "leaf2"), ()),
    }  # fmt: skip
    assert stand_ins == {"spine0": ("spine0", "spine1", "spine2", "spine3")}


def test_a_fat_tree_has_edges_pods_and_one_top():
    tree, _ = tree_of(load_network("fat_tree:k=4"))
    assert sorted(tree.tiers().values()) == [1] * 8 + [2] * 4 + [3]
    assert len(tree.nodes) == 16


def test_switches_that_nothing_is_above_are_put_below_one():
    network = load_network("dragonfly:p=1,a=2,h=1")
    tree, _ = tree_of(network)
    (top,) = [s for s in tree.switches if s.switches]
    assert top.name == "fabric"
    assert len(top.switches) == len(tree.switches) - 1
    assert set(tree.nodes) == {network.nodes[i] for i in network.hosts}


def test_machines_are_nodes_by_their_first_name():
    network = attach_machines(
        load_network("leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4"),
        load_network("nvswitch_host:n_gpus=4,n_nics=4,n_pcie_switches=4"),
    )
    tree, _ = tree_of(network)
    assert set(tree.nodes) == set(host_names(network)) - {"leaf0", "leaf1", "spine0"} == {"m0", "m1"}


def test_a_network_without_switches_is_no_tree():
    with pytest.raises(InputError, match="has no switch above it"):
        tree_of(load_network("torus:dims=2x2"))


def test_a_switch_over_nothing_has_no_rate():
    tree = SwitchTree((Switch("a", nodes=("n",)), Switch("b"), Switch("t", ("a", "b"))))
    with pytest.raises(InputError, match="switch b has no node below it"):
        build_network(tree, parse_tiers("1=1Gbps,2=1Gbps"))


def test_host_names_of_plain_hosts_are_their_own():
    network = load_network("leaf_spine:n_leaves=1,n_spines=1,hosts_per_leaf=2")
    assert host_names(network) == network.nodes
    assert np.unique(host_names(network)).size == network.n_nodes


def test_rates_and_ratios_are_read():
    tiers = parse_tiers("1=100Gbps, 2=4:2,3=50GB/s")
    assert tiers.uplinks(1, 0.0, 0.0, "x") == (12.5e9, 1)
    assert tiers.uplinks(2, 8 * 12.5e9, 12.5e9, "x") == (12.5e9, 4)
    assert tiers.uplinks(3, 1.0, 1.0, "x") == (50e9, 1)
    tiers.require_used({1: "a to b", 2: "b to c", 3: "c to d"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("100Gbps", "TIER=RATE"),
        ("1=100", "needs a unit"),
        ("1=1Gbps,1=2Gbps", "tier 1 twice"),
        ("1=2:1", "tier 1, the link of a node, has nothing below it"),
        ("1=1Gbps,2=0:1", "positive numbers"),
        ("", "TIER=RATE"),
    ],
)
def test_what_is_no_table_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_tiers(text)


def test_a_tier_that_is_missing_or_too_much_is_named():
    tiers = parse_tiers("1=1Gbps,4=1Gbps")
    with pytest.raises(InputError, match=r"the rate of tier 2 \(switch a to b\)"):
        tiers.uplinks(2, 1.0, 1.0, "switch a to b")
    with pytest.raises(InputError, match=r"has a tier 4, but the highest is 2: 1"):
        tiers.require_used({1: "a to b", 2: "b to c"})
