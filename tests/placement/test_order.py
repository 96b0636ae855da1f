"""Order of ranks on nodes that are given."""

import numpy as np
import pytest
from racks_of import racks

from commsim.core.errors import InputError
from commsim.placement.order import order_ranks
from commsim.prediction.inputs import load_network

RACKS = "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,oversubscription=2"
# Ten pods on three racks of four slots, in an order that crosses racks seven times around the ring.
CROSSING = ["h0", "h1", "h4", "h5", "h8", "h9", "h2", "h6", "h10", "h7"]


def ring_crossings(network, names):
    rack = dict(zip(network.endpoints.tolist(), racks(network).tolist(), strict=True))
    at = [rack[network.nodes.index(name)] for name in names]
    return sum(a != b for a, b in zip(at, at[1:] + at[:1], strict=True))


def test_ten_pods_on_three_racks_cross_three_times_in_place_of_seven():
    network = load_network(RACKS)
    found = order_ranks(network, CROSSING, 2**26)
    assert ring_crossings(network, CROSSING) == 7
    assert (found.crossings_before["rack"], found.crossings_after["rack"]) == (7, 3)
    assert ring_crossings(network, found.order) == 3
    assert sorted(found.order) == sorted(CROSSING)
    assert [CROSSING[i] for i in found.ranks] == list(found.order)
    assert found.time_after < found.time_before


def test_an_order_that_is_good_is_kept():
    network = load_network(RACKS)
    good = ["h8", "h9", "h0", "h1", "h2", "h3"]
    assert order_ranks(network, good, 2**26).order == tuple(good)
    assert order_ranks(network, ["h5"], 2**26).order == ("h5",)


@pytest.mark.parametrize("seed", range(20))
def test_the_predicted_time_is_never_worse_on_random_clusters(seed):
    rng = np.random.default_rng(seed)
    leaves, hosts = int(rng.integers(2, 6)), int(rng.integers(2, 6))
    rate = f"{hosts * 25}Gbps"  # 2:1
    network = load_network(f"leaf_spine:n_leaves={leaves},n_spines=2,hosts_per_leaf={hosts},uplink_bandwidth={rate}")
    nodes = [f"h{i}" for i in rng.permutation(leaves * hosts)[: int(rng.integers(2, leaves * hosts + 1))]]
    found = order_ranks(network, nodes, 2**24)
    assert found.time_after <= found.time_before
    assert all(found.crossings_after[level] <= n for level, n in found.crossings_before.items())


def test_a_large_ring_is_estimated_by_its_most_loaded_link():
    """Of 300 ranks in two racks in turn, all neighbours cross: 300 on an uplink, or 1 where they lie side by side."""
    network = load_network("leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=150,bandwidth=100Gbps,latency=0us")
    turns = [f"h{i // 2 + 150 * (i % 2)}" for i in range(300)]
    found = order_ranks(network, turns, 3e8)
    assert found.how == "ring"
    assert found.crossings_before["rack"] == 300
    assert found.crossings_after["rack"] == 2
    uplink = float(network.bandwidth.max())
    assert found.time_before == pytest.approx(2 * 299 * 1e6 * max(150 / uplink, 1 / 12.5e9), rel=1e-9)
    with pytest.raises(InputError, match="is simulated for at most 256 ranks"):
        order_ranks(network, turns, 3e8, collective="halving_doubling_all_reduce")


def test_nodes_that_are_none_are_named():
    network = load_network(RACKS)
    with pytest.raises(InputError, match="no place for ranks that is named 'leaf0'; the first is 'h0'"):
        order_ranks(network, ["h0", "leaf0"], 1e6)
    with pytest.raises(InputError, match="no nodes to order"):
        order_ranks(network, [], 1e6)
