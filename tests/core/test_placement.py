import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from racks_of import racks

from commsim.core.errors import InputError
from commsim.core.network import CPU, GPU, HOST, SWITCH, Network, both_ways
from commsim.core.placement import RANK_ORDERS, Placement, helper_nodes, helper_order, place
from commsim.prediction.inputs import load_network
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star


@given(n_leaves=st.integers(1, 5), per_leaf=st.integers(1, 5), seed=st.integers(0, 9), data=st.data())
def test_every_strategy_puts_every_rank_on_a_host_of_its_own(n_leaves, per_leaf, seed, data):
    network = leaf_spine(n_leaves, 2, per_leaf)
    n = data.draw(st.integers(1, n_leaves * per_leaf))
    for strategy in RANK_ORDERS:
        place(network, n, strategy, seed).check(network, n)


def test_packed_takes_the_hosts_in_order():
    assert place(leaf_spine(3, 1, 4), 6).nodes.tolist() == [0, 1, 2, 3, 4, 5]


def test_spread_deals_the_racks_in_turn():
    assert place(leaf_spine(3, 1, 3), 9, "spread").nodes.tolist() == [0, 3, 6, 1, 4, 7, 2, 5, 8]


def test_spread_goes_on_when_a_small_rack_is_full():
    network = Network("uneven", tuple("abcdst"), [HOST] * 4 + [SWITCH] * 2, [0, 1, 2, 3], [4, 5, 5, 5], 1.0, 0.0)
    assert place(network, 4, "spread").nodes.tolist() == [0, 1, 2, 3]
    assert racks(network).tolist() == [0, 1, 1, 1]


def test_a_host_without_a_switch_is_a_rack_of_its_own():
    assert racks(ring(3)).tolist() == [0, 1, 2]


def test_a_host_on_two_switches_is_in_the_rack_of_its_first_link():
    network = Network("dual", tuple("abst"), [HOST] * 2 + [SWITCH] * 2, [0, 0, 1, 1], [3, 2, 2, 3], 1.0, 0.0)
    assert racks(network).tolist() == [0, 1]


def test_random_depends_on_the_seed_only():
    network = star(50)
    assert place(network, 20, "random", 1) == place(network, 20, "random", 1)
    assert place(network, 20, "random", 1) != place(network, 20, "random", 2)
    assert set(place(network, 50, "random").nodes.tolist()) == set(range(50))


@pytest.mark.parametrize("n", [0, -1, 5])
def test_more_ranks_than_hosts_or_none_are_refused(n):
    with pytest.raises(InputError, match=rf"ranks must be 1\.\.4 \(star:.* has 4 hosts\), got {n}"):
        place(star(4), n)


def test_an_unknown_strategy_lists_the_known_ones():
    with pytest.raises(InputError, match=r"unknown placement strategy 'tight'; known: .*muri, packed, random, spread"):
        place(star(4), 2, "tight")


@pytest.mark.parametrize(
    ("nodes", "n_ranks", "n_helpers", "message"),
    [
        ([0, 1], 3, 0, "placement has 2 participants, the collective 3 ranks and 0 helpers"),
        ([0, 5], 2, 0, r"placement names node 5, star:.* has nodes 0\.\.4"),
        ([0, -1], 2, 0, "placement names node -1"),
        ([0, 4], 2, 0, "rank 1 is placed on switch0, a switch; ranks are placed on hosts"),
        ([0, 1, 0], 3, 0, "ranks 0, 2 share node h0; a host takes one rank"),
        ([0, 1, 4], 2, 1, "helper 0 is placed on switch0, which cannot aggregate"),
    ],
)
def test_a_placement_that_the_network_cannot_take_is_refused(nodes, n_ranks, n_helpers, message):
    with pytest.raises(InputError, match=message):
        Placement(nodes).check(star(4), n_ranks, n_helpers)


def test_a_helper_sits_beside_a_rank_or_on_a_switch_that_aggregates():
    Placement([0, 1, 0]).check(star(4), 2, 1)
    src, dst = [0, 1], [1, 0]
    network = Network("x", ("a", "s"), [HOST, SWITCH], src, dst, 1.0, 0.0, aggregates=[True, True])
    Placement([0, 1]).check(network, 1, 1)


@pytest.mark.parametrize("nodes", [[], [[0, 1]], 3])
def test_a_placement_is_a_list_of_at_least_one_node(nodes):
    with pytest.raises(InputError, match="a placement is a list of at least one node"):
        Placement(nodes)


def test_a_placement_of_fractions_is_refused():
    with pytest.raises(InputError, match=r"placement must hold values that fit int32, got 1\.5"):
        Placement([0, 1.5])


def test_placements_are_compared_by_value():
    assert Placement(np.array([1, 2])) == Placement([1, 2])
    assert len({Placement([1, 2]), Placement([1, 2]), Placement([2, 1])}) == 2


@pytest.mark.parametrize("strategy", RANK_ORDERS)
def test_helpers_go_to_host_memory_where_ranks_sit_on_gpus(strategy):
    network = load_network("dgx-h100@star:machines=2")
    ranks = place(network, 16, strategy).nodes
    beside = [network.nodes[node] for node in helper_order(network, ranks)]
    assert beside == ["m0.memory0", "m0.memory1", "m1.memory0", "m1.memory1"]
    place(network, 16).check(network, 16)


def test_helpers_go_to_sockets_without_memory_and_else_to_hosts():
    src, dst = both_ways([0, 1, 2], [2, 2, 3])
    network = Network("x", ("g", "h", "c", "s"), [GPU, GPU, CPU, SWITCH], src, dst, 1.0, 0.0)
    assert helper_order(network, place(network, 2).nodes).tolist() == [2]
    assert helper_nodes(star(4)).tolist() == []


def test_spread_deals_machines_in_turn_and_racks_before_them():
    network = load_network("dgx-h100@leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=16")
    placement = place(network, 6, "spread")
    assert [network.nodes[node] for node in placement.nodes] == [
        "m0.gpu0", "m2.gpu0", "m1.gpu0", "m3.gpu0", "m0.gpu1", "m2.gpu1",
    ]  # fmt: skip


def test_a_rank_sits_on_a_gpu_a_host_or_a_memory_and_on_nothing_else():
    network = load_network("dgx-h100")
    Placement([network.nodes.index("gpu0"), network.nodes.index("memory1")]).check(network, 2)
    for name, kind in (("cpu0", "cpu"), ("nic0", "nic"), ("nvswitch0", "switch")):
        with pytest.raises(InputError, match=rf"rank 0 is placed on {name}, a {kind}; ranks are placed on"):
            Placement([network.nodes.index(name)]).check(network, 1)
    with pytest.raises(InputError, match="ranks 0, 1 share node gpu0; a gpu takes one rank"):
        Placement([0, 0]).check(network, 2)
    with pytest.raises(InputError, match=r"ranks must be 1\.\.8 \(dgx-h100 has 8 GPUs\), got 9"):
        place(network, 9)
