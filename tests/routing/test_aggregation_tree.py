"""Trees of aggregating switches: where paths join, a switch aggregates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.prediction.inputs import load_network
from commsim.routing.aggregation_tree import AggregationTree, aggregation_tree

NETWORKS = (
    "star:n_hosts=8,bandwidth=100Gbps,latency=1us",
    "leaf_spine:n_leaves=4,n_spines=3,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us",
    "fat_tree:k=4,bandwidth=100Gbps,latency=1us",
    "torus:dims=3x3,bandwidth=100Gbps,latency=1us",
)


def check(network: Network, workers: list[int], tree: AggregationTree) -> None:
    """Raise unless all paths are paths, parents come first, and every switch that has a part joins something."""
    assert tree.parent[0] == -1
    assert all(0 <= p < i for i, p in enumerate(tree.parent) if i)
    starts = [*workers, *tree.nodes[1:]]
    ends = [*(tree.nodes[a] for a in tree.leaf), *(tree.nodes[p] for p in tree.parent[1:])]
    for start, end, links in zip(starts, ends, [*tree.worker_up, *tree.up[1:]], strict=True):
        assert network.src[links[0]] == start
        assert network.dst[links[-1]] == end
        assert (network.dst[list(links[:-1])] == network.src[list(links[1:])]).all()
    assert all(fan_in > 1 for fan_in in tree.fan_in[1:])
    used = [link for links in (*tree.worker_up, *tree.up) for link in links]
    assert len(used) == len(set(used))


@pytest.mark.parametrize("where", NETWORKS[:3])
@given(seed=st.integers(0, 2**32), n=st.integers(1, 8), turn=st.integers(0, 5))
def test_any_workers_get_a_tree_without_shared_links(where: str, seed: int, n: int, turn: int) -> None:
    network = load_network(where)
    workers = np.random.default_rng(seed).permutation(network.endpoints)[:n].tolist()
    check(network, workers, aggregation_tree(network, tuple(workers), turn=turn))


def test_a_star_has_one_aggregator() -> None:
    network = load_network(NETWORKS[0])
    tree = aggregation_tree(network, tuple(network.endpoints.tolist()))
    assert tree.fan_in == (8,)


def test_racks_have_an_aggregator_each_below_a_spine() -> None:
    network = load_network(NETWORKS[1])
    tree = aggregation_tree(network, tuple(network.endpoints.tolist()))
    assert tree.fan_in == (4, 4, 4, 4, 4)
    assert network.nodes[tree.nodes[0]].startswith("spine")


def test_turns_give_roots_of_their_own() -> None:
    network = load_network(NETWORKS[1])
    workers = tuple(network.endpoints.tolist())
    assert len({aggregation_tree(network, workers, turn=i).nodes[0] for i in range(3)}) == 3


def test_in_a_fat_tree_only_the_first_switches_and_the_root_aggregate_when_asked_so() -> None:
    network = load_network(NETWORKS[2])
    workers = tuple(network.endpoints.tolist())
    every, edges = (aggregation_tree(network, workers, edges_only=e) for e in (False, True))
    assert len(every.nodes) == 1 + 4 + 8
    assert len(edges.nodes) == 1 + 8
    assert set(edges.parent[1:]) == {0}


def test_a_network_without_switches_is_refused() -> None:
    network = load_network(NETWORKS[3])
    with pytest.raises(InputError, match="no switch that can aggregate reaches all workers"):
        aggregation_tree(network, tuple(network.endpoints.tolist()))


def test_a_root_that_is_no_switch_is_refused() -> None:
    network = load_network(NETWORKS[0])
    host = int(network.endpoints[0])
    with pytest.raises(InputError, match="the root of an aggregation tree must be a switch"):
        aggregation_tree(network, tuple(network.endpoints.tolist()), root=host)
