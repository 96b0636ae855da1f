"""Routing by metrics: paths have the least sum of the links' metrics, whatever the number of links."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError, RoutingError
from commsim.core.network import HOST, MAX_METRIC, SWITCH, Network
from commsim.routing.routing import find_routes


def random_network(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    ends = rng.integers(0, n, (int(rng.integers(1, 30)), 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    if not len(ends):
        ends = np.array([[0, 1]])
    kind = [HOST, *rng.integers(0, 2, n - 1)]
    return Network(
        "random", [f"n{i}" for i in range(n)], kind, ends[:, 0], ends[:, 1], 1.0, rng.uniform(0, 1, len(ends)),
        forwards=rng.random(n) < 0.6, metric=rng.choice([1, 2, 3, 50], len(ends)),
    )  # fmt: skip


def slow_costs(network):
    """Least sums between all pairs by Floyd and Warshall, passing forwarding nodes only."""
    n = network.n_nodes
    cost = np.full((n, n), np.inf)
    np.minimum.at(cost, (network.src, network.dst), network.metric)
    np.fill_diagonal(cost, 0)
    for middle in np.flatnonzero(network.forwards):
        cost = np.minimum(cost, cost[:, [middle]] + cost[[middle], :])
    return cost


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_path_has_the_least_sum_that_an_obvious_algorithm_finds(seed):
    network = random_network(seed)
    cost = slow_costs(network)
    for a, b in np.ndindex(cost.shape):
        for routing in ("ecmp", "shortest"):
            if np.isinf(cost[a, b]):
                with pytest.raises(RoutingError):
                    find_routes(network, a, b, routing=routing)
                continue
            links = find_routes(network, a, b, routing=routing).link
            assert network.metric[links].sum() == cost[a, b]
            assert [a, *network.dst[links]] == [*network.src[links], b]
            assert network.forwards[network.dst[links[:-1]]].all()


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32 - 1))
def test_spraying_splits_equally_at_every_node_over_links_on_paths_of_the_least_sum(seed):
    network = random_network(seed)
    cost = slow_costs(network)
    for a, b in np.ndindex(cost.shape):
        if a == b or np.isinf(cost[a, b]):
            continue
        routes = find_routes(network, a, b, routing="spray")
        part, slowest = np.zeros(network.n_nodes), np.zeros(network.n_nodes)
        part[a] = 1.0
        passes = network.forwards.copy()
        passes[b] = True
        used = np.isclose(cost[network.src, b], network.metric + cost[network.dst, b]) & passes[network.dst]
        for node in sorted(range(network.n_nodes), key=lambda v: -cost[v, b]):
            out = np.flatnonzero(used & (network.src == node))
            if node == b or not part[node] or np.isinf(cost[node, b]):
                continue
            for link in out:
                assert routes.share[routes.link == link] == pytest.approx([part[node] / len(out)])
                end = network.dst[link]
                part[end] += part[node] / len(out)
                slowest[end] = max(slowest[end], slowest[node] + network.latency[link])
        assert part[b] == pytest.approx(1.0)
        assert routes.latency == pytest.approx([slowest[b]])


def test_a_longer_way_of_less_metric_is_taken():
    network = Network("x", tuple("abst"), [HOST, HOST, SWITCH, SWITCH], [0, 0, 2, 3], [1, 2, 3, 1], 1.0, 0.0,
                      metric=[4, 1, 1, 1])  # fmt: skip
    assert find_routes(network, 0, 1).link.tolist() == [1, 2, 3]


@pytest.mark.parametrize("metric", [0, -1, MAX_METRIC + 1])
def test_a_metric_out_of_range_is_refused(metric):
    with pytest.raises(InputError, match=rf"link a->b needs a metric 1\.\.1048576, got {metric}"):
        Network("x", ("a", "b"), [HOST] * 2, [0], [1], 1.0, 0.0, metric=[metric])
