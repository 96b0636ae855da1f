import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network, both_ways
from commsim.ranking.synthesis import lower_bound, optimal
from commsim.ranking.synthesis.optimal import all_to_all_rate, tree_all_reduce_rate
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star

pytest.importorskip("scipy")


@pytest.mark.parametrize("p", [2, 3, 5, 8])
def test_on_a_star_both_are_those_of_the_port(p):
    assert all_to_all_rate(star(p, 1e9)) == pytest.approx(p / (p - 1) * 1e9)
    assert tree_all_reduce_rate(star(p, 1e9)) == pytest.approx(p / (2 * (p - 1)) * 1e9)


@pytest.mark.parametrize("p", [3, 4, 5, 6])
def test_all_to_all_on_a_ring_takes_the_shorter_ways(p):
    hops = sum(min(d, p - d) for d in range(p))  # of one rank's messages, over 2 links' worth of capacity per rank
    assert all_to_all_rate(ring(p, 1.0)) == pytest.approx(2 * p / hops)


@pytest.mark.parametrize("p", [3, 4, 6])
def test_all_reduce_on_a_ring_uses_both_directions(p):
    assert tree_all_reduce_rate(ring(p, 1.0)) == pytest.approx(p / (p - 1))


def test_oversubscribed_leaves_limit_what_crosses():
    network = leaf_spine(2, 1, 4, 1.0, oversubscription=4.0)
    assert all_to_all_rate(network) == pytest.approx(8 / (4 * 4))  # 4 x 4 messages of 1/8 cross each way at rate 1
    assert tree_all_reduce_rate(leaf_spine(2, 1, 2, 8.0, uplink_bandwidth=1.0)) == pytest.approx(1.0)


def test_a_path_of_three_is_limited_by_its_middle():
    src, dst = both_ways([0, 1], [1, 2])
    network = Network("path", tuple("abc"), [HOST] * 3, src, dst, 1.0, 0.0, forwards=True)
    assert tree_all_reduce_rate(network) == pytest.approx(1.0)
    assert all_to_all_rate(network) == pytest.approx(3 / 2)


def test_bytes_of_others_do_not_pass_what_does_not_forward():
    src, dst = both_ways([0, 1, 0, 2], [1, 2, 3, 3])
    kind = [HOST] * 3 + [SWITCH]
    through = Network("x", tuple("abcs"), kind, src, dst, [4, 4, 1, 1] * 2, 0.0, forwards=True)
    around = Network("x", tuple("abcs"), kind, src, dst, [4, 4, 1, 1] * 2, 0.0)
    assert all_to_all_rate(around) < all_to_all_rate(through)
    assert all_to_all_rate(around) == pytest.approx(3.0)  # a and c have the switch between them only


@settings(max_examples=settings().max_examples // 3)
@given(seed=st.integers(0, 2**32 - 1))
def test_trees_are_never_better_than_counting_allows(seed):
    rng = np.random.default_rng(seed)
    n_hosts, n_switches = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    ends = [(h, n_hosts + int(rng.integers(n_switches))) for h in range(n_hosts)]
    ends += [(n_hosts + s, n_hosts + s - 1) for s in range(1, n_switches)]
    ends += [(int(rng.integers(n_hosts)), n_hosts + int(rng.integers(n_switches))) for _ in range(2)]
    src, dst = both_ways(*np.array(ends).T)
    kind = [HOST] * n_hosts + [SWITCH] * n_switches
    names = [f"n{i}" for i in range(len(kind))]
    network = Network("x", names, kind, src, dst, rng.integers(1, 5, len(src)).astype(float), 0.0)
    best, counted = tree_all_reduce_rate(network), lower_bound("all_reduce", network).rate
    assert best <= counted * (1 + 1e-6)
    weakest = min(network.bandwidth.min(), best)  # a chain over a spanning tree: everything once each way per link
    assert best >= weakest / (2 * n_hosts)


def test_all_to_all_by_the_flow_engine_is_never_faster():
    from collectives.dense.all_to_all import direct_all_to_all
    from commsim import predict

    for network in (star(5, 1e9), leaf_spine(2, 2, 3, 1e9, uplink_bandwidth=0.75e9), ring(6, 1e9)):
        result = predict(direct_all_to_all(len(network.endpoints)), network, 1e9, routing="spray", overhead="0us")
        assert result.algbw <= all_to_all_rate(network) * (1 + 1e-6)


def test_islands_are_refused_and_one_rank_has_no_bound():
    islands = Network("x", ("a", "b"), [HOST] * 2, [], [], 1.0, 0.0)
    with pytest.raises(InputError, match="x: a rank cannot reach another one"):
        all_to_all_rate(Network("x", tuple("abc"), [HOST] * 3, [0, 1], [1, 0], 1.0, 0.0))
    with pytest.raises(InputError, match="cannot reach"):
        tree_all_reduce_rate(islands)
    assert all_to_all_rate(star(1)) == tree_all_reduce_rate(star(1)) == float("inf")


def test_a_large_network_and_one_without_scipy_are_not_known(monkeypatch):
    monkeypatch.setattr(optimal, "MAX_VARIABLES", 10)
    assert all_to_all_rate(star(4)) is None
    assert tree_all_reduce_rate(star(4)) is None
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert all_to_all_rate(star(4)) is None


def test_pairs_of_too_many_endpoints_are_not_even_listed():
    """`topo check` of a star of 8,000 hosts took 7 GB for a program that it then did not solve."""
    network = star(3000)
    tracemalloc.start()
    assert tree_all_reduce_rate(network) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e7
