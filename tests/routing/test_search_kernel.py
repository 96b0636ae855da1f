"""Distances over links of unequal metric, and which links a rule allows, against obvious algorithms."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import RoutingError
from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import GPU, HOST, SWITCH, Network
from commsim.routing.routing import find_routes


@st.composite
def networks(draw):
    """Networks of any shape, with one-way and parallel links, metrics, and hosts that forward."""
    n = draw(st.integers(2, 9))
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30))
    ends = [(a, b) for a, b in ends if a != b]

    def column(values, size):
        return draw(st.lists(values, min_size=size, max_size=size))

    largest = draw(st.sampled_from([1, 3, 1000]))
    return Network(
        "any", [f"n{i}" for i in range(n)], [HOST, *column(st.sampled_from([HOST, SWITCH]), n - 1)],
        [a for a, _ in ends], [b for _, b in ends], 1.0, column(st.floats(0, 1), len(ends)),
        forwards=column(st.booleans(), n), metric=column(st.integers(1, largest), len(ends)),
        coordinates=np.reshape(column(st.integers(0, 2), 2 * n), (n, 2)),
    )  # fmt: skip


def any_link(a, b):
    return True


def distances(network, allowed=any_link):
    """Smallest sum of metrics by Floyd and Warshall, through forwarding nodes."""
    n = network.n_nodes
    best = np.full((n, n), np.inf)
    for a, b, metric in zip(network.src, network.dst, network.metric, strict=True):
        if allowed(a, b):
            best[a, b] = min(best[a, b], metric)
    np.fill_diagonal(best, 0)
    for middle in np.flatnonzero(network.forwards):
        best = np.minimum(best, best[:, [middle]] + best[[middle], :])
    return best


def in_dimension_order(network, source, target):
    """Links along the first dimension in which a node differs from the target, if it is as the source beyond."""
    at = network.coordinates

    def allowed(a, b):
        differs = np.flatnonzero(at[a] != at[target])
        moved = np.flatnonzero(at[a] != at[b])
        if not differs.size:
            return not moved.size
        return set(moved) <= {differs[0]} and (at[a][differs[0] + 1 :] == at[source][differs[0] + 1 :]).all()

    return allowed


def check_routes(network, routing, allowed_for):
    """Compare every pair with the distance over the links that `allowed_for` the pair."""
    for source in range(network.n_nodes):
        for target in range(network.n_nodes):
            allowed = allowed_for(source, target)
            expected = distances(network, allowed)[source, target]
            if np.isinf(expected):
                with pytest.raises(RoutingError, match=f"no path from n{source} to n{target}"):
                    find_routes(network, source, target, routing=routing)
                continue
            links = find_routes(network, source, target, routing=routing).link
            nodes = [source, *network.dst[links].tolist()]
            assert network.metric[links].sum() == expected
            assert network.src[links].tolist() == nodes[:-1]
            assert nodes[-1] == target
            assert network.forwards[nodes[1:-1]].all()
            assert all(allowed(a, b) for a, b in itertools.pairwise(nodes))


@given(network=networks())
def test_paths_are_shortest_in_the_sum_of_their_metrics(network):
    check_routes(network, "ecmp", lambda *_: any_link)


@given(network=networks())
def test_minimal_paths_change_the_group_once_and_into_that_of_the_destination(network):
    group = network.coordinates[:, 0]
    check_routes(network, "minimal", lambda _, target: lambda a, b: group[b] in (group[a], group[target]))


@given(network=networks())
def test_paths_in_dimension_order_finish_each_dimension_before_the_next(network):
    check_routes(network, "dimension_order", lambda source, target: in_dimension_order(network, source, target))


@given(network=networks())
def test_many_pairs_at_once_get_the_paths_that_they_get_alone(network):
    best = distances(network)
    src, dst = np.nonzero(np.isfinite(best))
    together = find_routes(network, src, dst, routing="shortest")
    for r in range(len(src)):
        alone = find_routes(network, src[r], dst[r], routing="shortest")
        assert together.link[together.first[r] : together.first[r + 1]].tolist() == alone.link.tolist()


@given(network=networks())
def test_spraying_loses_no_byte_where_metrics_differ(network):
    best = distances(network)
    src, dst = np.nonzero(np.isfinite(best))
    routes = find_routes(network, src, dst, routing="spray")
    for r, (source, target) in enumerate(zip(src, dst, strict=True)):
        rows = slice(routes.first[r], routes.first[r + 1])
        flow = np.zeros(network.n_nodes)
        np.add.at(flow, network.dst[routes.link[rows]], routes.share[rows])
        np.subtract.at(flow, network.src[routes.link[rows]], routes.share[rows])
        expected = np.zeros(network.n_nodes)
        expected[target] += 1
        expected[source] -= 1
        np.testing.assert_allclose(flow, expected, atol=1e-12)


def test_a_large_metric_is_avoided_and_a_unit_one_changes_nothing():
    network = Network("x", ("a", "b", "c"), [0, 0, 0], [0, 0, 2], [1, 2, 1], 1.0, 0.0, forwards=True)
    assert find_routes(network, 0, 1).link.tolist() == [0]
    detour = dataclasses.replace(network, metric=[2**20, 1, 1])
    assert find_routes(detour, 0, 1).link.tolist() == [1, 2]


@pytest.mark.parametrize("machine", [0, 1])
def test_gpus_on_an_nvswitch_pass_on_nothing_that_comes_to_their_machine(machine):
    # a neighbour of GPU a would reach GPU b of its machine over it; a itself may send to b, and b to the neighbour
    ends = [(0, 1), (1, 3), (2, 3)]
    network = Network(
        "passes", ["h", "a", "b", "nvswitch"], [HOST, GPU, GPU, SWITCH],
        *zip(*ends, *(two[::-1] for two in ends), strict=True), 1.0, 0.0,
        forwards=[False, True, True, True], machine=[-1, machine, machine, machine],
        metric=[1, NVLINK_METRIC, NVLINK_METRIC] * 2,
    )  # fmt: skip
    with pytest.raises(RoutingError, match="no path from h to b"):
        find_routes(network, 0, 2)
    assert network.dst[find_routes(network, 1, 2).link].tolist() == [3, 2]
    assert network.dst[find_routes(network, 2, 0).link].tolist() == [3, 1, 0]
