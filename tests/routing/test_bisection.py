import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.routing.network_metrics import bisection_bandwidth
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star

pytest.importorskip("scipy")
B = 12.5e9


@settings(max_examples=20)
@given(n_hosts=st.integers(2, 60), bandwidth=st.floats(1.0, 1e12))
def test_half_of_the_hosts_of_a_star_send_at_full_rate(n_hosts, bandwidth):
    assert bisection_bandwidth(star(n_hosts, bandwidth)) == pytest.approx(n_hosts // 2 * bandwidth, rel=1e-12)


@pytest.mark.parametrize(("n_hosts", "cables"), [(2, 1), (3, 2), (4, 2), (9, 2), (64, 2)])
def test_a_ring_is_cut_at_two_cables(n_hosts, cables):
    assert bisection_bandwidth(ring(n_hosts, B)) == cables * B


@pytest.mark.parametrize("k", [2, 4, 6, 8, 16])
def test_a_fat_tree_has_full_bisection_bandwidth(k):
    assert bisection_bandwidth(fat_tree(k, B)) == k**3 // 4 // 2 * B


@pytest.mark.parametrize("ratio", [1.0, 2.0, 3.0, 7.5, 1.37])
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
    network = leaf_spine(5, 2, 7, B, oversubscription=3.0)
    assert bisection_bandwidth(network, 3) == bisection_bandwidth(network, 3)


@settings(max_examples=30)
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
