import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.routing import network_metrics
from commsim.routing.network_metrics import measure
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star


def test_counts_rates_and_degrees_of_a_leaf_spine():
    metrics = measure(leaf_spine(4, 2, 8, 1e9, uplink_bandwidth=4e9))
    assert metrics.counts == {"host": 32, "switch": 6}
    assert metrics.link_rates == {1e9: 64, 4e9: 16}
    assert list(metrics.link_rates) == [1e9, 4e9]
    assert metrics.degrees == {"host": (1, 1), "switch": (4, 10)}
    assert metrics.tier_sizes == (32, 4, 2)
    assert metrics.no_path is None


@settings(max_examples=20)
@given(half=st.integers(1, 4))
def test_a_fat_tree_is_not_oversubscribed_at_any_tier(half):
    metrics = measure(fat_tree(2 * half))
    assert metrics.oversubscription == {1: 1.0, 2: 1.0}
    assert metrics.diameter == 6


def test_nothing_leads_up_from_the_top():
    assert measure(star(4)).oversubscription == {}
    assert measure(ring(4)).oversubscription == {}


def test_the_worst_switch_of_a_tier_counts():
    src, dst = both_ways([0, 1, 2, 3, 4], [3, 4, 4, 5, 5])
    network = Network("x", tuple("abcstr"), [0, 0, 0, 1, 1, 1], src, dst, [1, 1, 1, 1, 4] * 2, 0.0)
    assert measure(network).oversubscription == {1: 1.0}
    network = Network("x", tuple("abcstr"), [0, 0, 0, 1, 1, 1], src, dst, 1.0, 0.0)
    assert measure(network).oversubscription == {1: 2.0}


def slow_diameter(network):
    """Longest shortest path by Floyd and Warshall, where only forwarding nodes are passed through."""
    n = network.n_nodes
    hops = np.full((n, n), np.inf)
    hops[network.src, network.dst] = 1
    np.fill_diagonal(hops, 0)
    for middle in np.flatnonzero(network.forwards):
        hops = np.minimum(hops, hops[:, [middle]] + hops[[middle], :])
    return hops[np.ix_(network.hosts, network.hosts)]


@st.composite
def any_network(draw):
    n_hosts, n_switches = draw(st.integers(1, 6)), draw(st.integers(0, 5))
    n = n_hosts + n_switches
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=25))
    ends = [(a, b) for a, b in ends if a != b]
    kind = [HOST] * n_hosts + [SWITCH] * n_switches
    forwards = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return Network(
        "any", [f"n{i}" for i in range(n)], kind, [a for a, _ in ends], [b for _, b in ends], 1.0, 0.0,
        forwards=forwards,
    )  # fmt: skip


@settings(max_examples=300)
@given(network=any_network())
def test_diameter_and_missing_paths_are_those_of_an_obvious_algorithm(network):
    hops = slow_diameter(network)
    metrics = measure(network)
    assert metrics.is_exact
    assert metrics.diameter == hops[np.isfinite(hops)].max()
    assert (metrics.no_path is None) == bool(np.isfinite(hops).all())
    if metrics.no_path is not None:
        a, b = (network.hosts.tolist().index(network.nodes.index(name)) for name in metrics.no_path)
        assert np.isinf(hops[a, b])


def test_two_islands_are_named():
    src, dst = both_ways([0, 1], [2, 3])
    metrics = measure(Network("islands", tuple("abst"), [0, 0, 1, 1], src, dst, 1.0, 0.0))
    assert set(metrics.no_path) == {"a", "b"}


def test_a_large_network_says_that_not_all_hosts_were_looked_at(monkeypatch):
    monkeypatch.setattr(network_metrics, "MAX_SOURCES", 10)
    assert not measure(ring(30)).is_exact
    assert measure(ring(30)).diameter == 15
    assert measure(star(30)).is_exact
