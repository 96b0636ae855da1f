import dataclasses
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core import network_queries
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.routing import network_metrics
from commsim.routing.bisection import bisection_bandwidth
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


@settings(max_examples=settings().max_examples * 2 // 3)
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


pytest.importorskip("scipy")
B = 12.5e9


@settings(max_examples=settings().max_examples * 2 // 3)
@given(n_hosts=st.integers(2, 60), bandwidth=st.floats(1.0, 1e12))
def test_half_of_the_hosts_of_a_star_send_at_full_rate(n_hosts, bandwidth):
    assert bisection_bandwidth(star(n_hosts, bandwidth)) == pytest.approx(n_hosts // 2 * bandwidth, rel=1e-12)


@pytest.mark.parametrize(("n_hosts", "cables"), [(2, 1), (3, 2), (4, 2), (9, 2), (64, 2)])
def test_a_ring_is_cut_at_two_cables(n_hosts, cables):
    assert bisection_bandwidth(ring(n_hosts, B)) == cables * B


@pytest.mark.parametrize("k", [2, 4, 6, 8, 16])
def test_a_fat_tree_has_full_bisection_bandwidth(k):
    assert bisection_bandwidth(fat_tree(k, B)) == k**3 // 4 // 2 * B


@pytest.mark.parametrize("ratio", [1.0, 1.5, 3.0, 6.0])
def test_oversubscription_divides_the_bisection_bandwidth_of_a_leaf_spine(ratio):
    network = leaf_spine(4, 2, 6, B, oversubscription=ratio)
    assert bisection_bandwidth(network) == pytest.approx(12 * B / ratio, rel=1e-8)


def test_parallel_links_add_up():
    assert bisection_bandwidth(leaf_spine(2, 1, 8, B, B, uplinks_per_spine=3)) == 3 * B


def test_the_worse_direction_counts():
    network = Network("x", ("a", "b", "s"), [HOST, HOST, SWITCH], [0, 2, 1, 2], [2, 1, 2, 0], [5, 5, 3, 5], 0.0)
    assert bisection_bandwidth(network) == 3


def test_traffic_does_not_pass_what_does_not_forward():
    src, dst = both_ways([0, 1, 0, 1], [2, 2, 3, 3])
    network = Network("x", tuple("abst"), [0, 0, 1, 1], src, dst, 1.0, 0.0, forwards=[0, 0, 1, 0])
    assert bisection_bandwidth(network) == 1


def test_islands_have_no_bisection_bandwidth_and_one_host_no_limit():
    assert bisection_bandwidth(Network("x", ("a", "b"), [HOST] * 2, [], [], 1.0, 0.0)) == 0
    assert bisection_bandwidth(star(1)) == float("inf")


def test_the_same_seed_gives_the_same_number():
    network = leaf_spine(5, 2, 7, B, oversubscription=3.5)
    assert bisection_bandwidth(network, 3) == bisection_bandwidth(network, 3)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 6))
def test_it_is_never_below_the_smallest_of_all_balanced_cuts(seed, n):
    rng = np.random.default_rng(seed)
    src, dst = both_ways(*(a.ravel() for a in np.triu_indices(n, 1)))
    network = Network("x", [f"h{i}" for i in range(n)], [HOST] * n, src, dst, rng.integers(1, 9, len(src)), 0.0)
    cuts = []
    for mask in range(2**n):
        half = np.array([mask >> i & 1 for i in range(n)], bool)
        if half.sum() in (n // 2, n - n // 2):
            cuts.append(network.bandwidth[half[network.src] & ~half[network.dst]].sum())
    assert bisection_bandwidth(network) >= min(cuts)


def test_without_scipy_it_is_not_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.sparse.csgraph", None)
    assert bisection_bandwidth(star(4)) is None


def test_a_link_that_is_faster_than_any_integer_adds_what_an_infinite_one_would():
    """Its rate wrapped to the least integer when it was counted in units of the others."""
    pytest.importorskip("scipy")
    network = star(4, 1e9)
    fast = network.bandwidth.copy()
    fast[0] = 1e33
    found = bisection_bandwidth(dataclasses.replace(network, bandwidth=fast))
    fast[0] = 1e15
    assert found == bisection_bandwidth(dataclasses.replace(network, bandwidth=fast))


def test_capacities_of_a_few_links_at_once_are_those_of_all(monkeypatch):
    network = fat_tree(4)
    rates = network.bandwidth * np.random.default_rng(2).uniform(0.5, 1.0, network.n_links)
    network = dataclasses.replace(network, bandwidth=rates)
    found = []
    for at_once in (network.n_links, 5):
        monkeypatch.setattr(network_queries, "AT_ONCE", at_once)
        found.append(measure(network).oversubscription)
    assert found[0] == found[1]
