import dataclasses
import os
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest
from flow_cases import random_network
from flow_networks import cabled
from hypothesis import given
from hypothesis import strategies as st
from slow_routing import distance

from commsim.core.errors import InputError, RoutingError
from commsim.core.network import HOST, MAX_METRIC, SWITCH, Network, both_ways, kinds, node_names
from commsim.routing import routes as routes_module
from commsim.routing import walk
from commsim.routing.routing import Routes, drawn_together, find_routes
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.torus import torus


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Random graphs, some of whose switches do not forward and some of whose hosts do."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    network = random_network(rng, draw(st.integers(2, 6)), draw(st.integers(1, 5)), costs=True)
    odd = rng.random(network.n_nodes) < draw(st.sampled_from([0.0, 0.2]))
    return dataclasses.replace(network, forwards=network.forwards ^ odd)


def all_pairs(network: Network) -> list[tuple[int, int]]:
    """Pairs of nodes that a path joins."""
    nodes = range(network.n_nodes)
    return [(a, b) for a in nodes for b in nodes if distance(network, a, b) is not None]


def route(routes: Routes, r: int) -> list[tuple[int, float]]:
    rows = slice(routes.first[r], routes.first[r + 1])
    return list(zip(routes.link[rows].tolist(), routes.share[rows].tolist(), strict=True))


@pytest.mark.parametrize("routing", ["ecmp", "shortest"])
@given(network=networks(), seed=st.integers(-5, 2**70))
def test_a_single_path_is_joined_shortest_and_passes_forwarding_nodes_only(
    routing: str, network: Network, seed: int
) -> None:
    pairs = all_pairs(network)
    routes = find_routes(network, *zip(*pairs, strict=True), routing=routing, seed=seed)
    for r, (source, target) in enumerate(pairs):
        links = [link for link, _ in route(routes, r)]
        nodes = [source, *network.dst[links].tolist()]
        assert len(links) == distance(network, source, target)
        assert nodes[:-1] == network.src[links].tolist()
        assert nodes[-1] == target
        assert network.forwards[nodes[1:-1]].all()
        assert all(share == 1.0 for _, share in route(routes, r))
        assert routes.latency[r] == pytest.approx(network.latency[links].sum())


@given(network=networks())
def test_shortest_takes_the_lowest_link_at_every_node(network: Network) -> None:
    pairs = all_pairs(network)
    routes = find_routes(network, *zip(*pairs, strict=True), routing="shortest")
    for r, (_, target) in enumerate(pairs):
        for link, _ in route(routes, r):
            node = network.src[link]
            left = distance(network, int(node), target)
            assert left is not None
            nearer = [
                k for k in np.flatnonzero(network.src == node)
                if distance(network, int(network.dst[k]), target) == left - 1
                and (network.dst[k] == target or network.forwards[network.dst[k]])
            ]  # fmt: skip
            assert link == min(nearer)


@given(network=networks())
def test_spraying_conserves_bytes_at_every_node_and_cut_and_splits_equally(network: Network) -> None:
    pairs = all_pairs(network)
    routes = find_routes(network, *zip(*pairs, strict=True), routing="spray")
    for r, (source, target) in enumerate(pairs):
        into, out_of, level, slowest = (defaultdict(float), defaultdict(list), defaultdict(float), {source: 0.0})
        for link, share in route(routes, r):  # nearest to the source first
            a, b = int(network.src[link]), int(network.dst[link])
            assert a in slowest
            assert b == target or network.forwards[b]
            left = distance(network, b, target)
            assert left == distance(network, a, target) - 1  # type: ignore[operator]
            into[b] += share
            out_of[a].append(share)
            level[left] += share
            slowest[b] = max(slowest.get(b, 0.0), slowest[a] + network.latency[link])
        assert len(level) == distance(network, source, target)
        assert list(level.values()) == pytest.approx([1.0] * len(level))
        for node, shares in out_of.items():
            assert sum(shares) == pytest.approx(1.0 if node == source else into[node])
            assert shares == pytest.approx([shares[0]] * len(shares))
        assert routes.latency[r] == pytest.approx(slowest[target])


def test_spraying_uses_all_shortest_paths() -> None:
    # From one pod to another of a fat tree with k = 4: 2 aggregation switches, 4 cores, and back.
    routes = find_routes(fat_tree(4), [0], [15], routing="spray")
    shares = [share for _, share in route(routes, 0)]
    assert shares == [1.0, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 1.0]


def test_a_message_inside_one_node_uses_no_link() -> None:
    routes = find_routes(fat_tree(4), [3, 3], [3, 2])  # h2 and h3 hang on one edge switch
    assert routes.first.tolist() == [0, 0, 2]
    assert routes.latency.tolist() == [0.0, 2 * 500e-9]


def test_each_flow_keeps_its_path_for_one_seed_whatever_is_asked_with_it() -> None:
    network = fat_tree(4)
    src, dst, channel = np.arange(15).repeat(3), np.full(45, 15), np.tile(np.arange(3), 15)
    together = find_routes(network, src, dst, channel, seed=7)
    order = np.random.default_rng(0).permutation(45)
    moved = find_routes(network, src[order], dst[order], channel[order], seed=7)
    alone = [find_routes(network, src[i], dst[i], channel[i], seed=7) for i in range(45)]
    assert [route(moved, r) for r in range(45)] == [route(together, int(i)) for i in order]
    assert [route(r, 0) for r in alone] == [route(together, i) for i in range(45)]


def test_another_seed_or_channel_may_take_another_path() -> None:
    network, flows = fat_tree(4), (np.zeros(64, int), np.full(64, 15))
    by_channel = find_routes(network, *flows, np.arange(64))
    assert len({tuple(route(by_channel, r)) for r in range(64)}) == 4
    by_seed = {tuple(route(find_routes(network, 0, 15, seed=seed), 0)) for seed in range(64)}
    assert len(by_seed) == 4
    assert (find_routes(network, *flows, np.arange(64), seed=1).link != by_channel.link).any()


@pytest.mark.parametrize("seed", range(4))
def test_ecmp_spreads_flows_evenly_over_spines_and_parallel_links(seed: int) -> None:
    # 32 x 32 flows from one leaf to another over 4 spines with 2 cables to each: 128 expected on each of 8 uplinks.
    # The sum of squared deviations over 128 is chi-square with 7 degrees: above 35 once in 100 000 draws.
    network = leaf_spine(n_leaves=2, n_spines=4, hosts_per_leaf=32, uplinks_per_spine=2)
    src, dst = (x.ravel() for x in np.meshgrid(np.arange(32), np.arange(32, 64)))
    routes = find_routes(network, src, dst, routing="ecmp", seed=seed)
    for position in (1, 2):  # up to the spine, and down from it
        _, count = np.unique(routes.link.reshape(-1, 4)[:, position], return_counts=True)
        assert len(count) == 8
        assert ((count - 128) ** 2 / 128).sum() < 35


def test_choices_at_two_tiers_are_independent() -> None:
    # 8 x 8 x 64 flows between two pods of fat_tree(8) take 16 links between 4 aggregation and 16 core switches: 256
    # on each. Chi-square with 15 degrees is above 48 once in 50 000 draws.
    network = fat_tree(8)
    src, dst, channel = (x.ravel() for x in np.meshgrid(np.arange(8), np.arange(16, 24), np.arange(64)))
    routes = find_routes(network, src, dst, channel)
    _, count = np.unique(routes.link.reshape(-1, 6)[:, 2], return_counts=True)
    assert len(count) == 16
    assert ((count - 256) ** 2 / 256).sum() < 48


def test_parallel_links_are_sprayed_over_equally() -> None:
    src, dst = both_ways([0, 0, 0, 1], [2, 2, 2, 2])
    network = Network("parallel", node_names(h=2, switch=1), kinds(2, 1), src, dst, 1.0, 0.0)
    assert route(find_routes(network, 0, 1, routing="spray"), 0) == [(0, 1 / 3), (1, 1 / 3), (2, 1 / 3), (7, 1.0)]
    taken = {route(find_routes(network, 0, 1, channel=c), 0)[0][0] for c in range(40)}
    assert taken == {0, 1, 2}


def test_hosts_do_not_forward_unless_they_are_said_to() -> None:
    network = cabled({"h0-h1": 1.0, "h1-h2": 1.0})
    with pytest.raises(RoutingError, match="no path from h0 to h2"):
        find_routes(network, 0, 2)
    assert len(find_routes(dataclasses.replace(network, forwards=[False, True, False]), 0, 2).link) == 2


@pytest.mark.parametrize("routing", ["ecmp", "shortest", "spray"])
def test_the_error_names_the_pair_that_has_no_path(routing: str) -> None:
    network = cabled({"h0-s0": 1.0, "h1-s0": 1.0, "h2-s1": 1.0, "h3-s1": 1.0})
    with pytest.raises(RoutingError, match="cabled: no path from h1 to h3"):
        find_routes(network, [0, 2, 1], [1, 3, 3], routing=routing)


def test_an_unknown_routing_is_refused() -> None:
    with pytest.raises(InputError, match="unknown routing 'best'; known: ecmp, shortest, spray"):
        find_routes(fat_tree(2), 0, 1, routing="best")


PROGRAM = """
import numpy as np
from commsim.routing.routing import find_routes
from topologies.fat_tree import fat_tree
src, dst = (x.ravel() for x in np.meshgrid(np.arange(16), np.arange(16)))
for routing in ("ecmp", "shortest", "spray"):
    r = find_routes(fat_tree(4), src, dst, routing=routing, seed=3)
    print(*(x.tobytes().hex() for x in (r.first, r.link, r.share, r.latency)))
"""


def test_the_kernels_give_the_same_bits_without_jit() -> None:
    def output(**environment: str) -> str:
        path = {"PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=os.environ | path | environment, capture_output=True, text=True,
            check=True,
        ).stdout  # fmt: skip

    compiled = output(NUMBA_DISABLE_JIT="0")
    assert len(compiled) > 1000
    assert compiled == output(NUMBA_DISABLE_JIT="1")


# Routing by metrics: paths have the least sum of the links' metrics, whatever the number of links.
def network_with_metrics(seed):
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


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
def test_every_path_has_the_least_sum_that_an_obvious_algorithm_finds(seed):
    network = network_with_metrics(seed)
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


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
def test_spraying_splits_equally_at_every_node_over_links_on_paths_of_the_least_sum(seed):
    network = network_with_metrics(seed)
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
    with pytest.raises(InputError, match=rf"link a:b needs a metric 1\.\.1048576, got {metric}"):
        Network("x", ("a", "b"), [HOST] * 2, [0], [1], 1.0, 0.0, metric=[metric])


def test_searches_that_end_nearby_are_estimated_as_short(monkeypatch):
    """Neighbours of 131,072 GPUs were refused: 2.8 hours were expected of searches that took less than a second."""
    said = {}
    monkeypatch.setattr(walk, "WORTH_SAYING", 1e-9)
    network = torus((20, 20))
    here = network.hosts
    for far in (1, 10):
        monkeypatch.setattr(walk, "expect", lambda seconds, *_, far=far: said.update({far: seconds}))
        find_routes(network, here, np.roll(here, far), routing="ecmp")
    assert said[1] < said[10] / 20
    assert said[10] <= walk.PER_LOOK * 2 * len(here) * network.n_links


def test_pairs_that_several_channels_join_have_the_routes_that_each_has_alone():
    network = leaf_spine(n_leaves=3, n_spines=3, hosts_per_leaf=2, uplinks_per_spine=2)
    draw = np.random.default_rng(1)
    src, dst = draw.choice(network.hosts, (2, 200))
    found = find_routes(network, src, dst, np.arange(200), routing="spray")
    for row in range(0, 200, 7):
        (alone, at) = find_routes(network, src[row], dst[row], row, routing="spray"), slice(*found.first[row : row + 2])
        assert alone.link.tolist() == found.link[at].tolist()
        assert alone.share.tolist() == found.share[at].tolist()
        assert alone.latency[0] == found.latency[row]


def test_bytes_of_links_are_added_up_route_by_route_whatever_is_added_at_once(monkeypatch):
    rng = np.random.default_rng(1)
    length = rng.integers(0, 5, 300)
    first = np.concatenate(([0], np.cumsum(length)))
    network = leaf_spine(n_leaves=2, n_spines=2, hosts_per_leaf=2)
    link, share = rng.integers(0, network.n_links, first[-1]).astype(np.int32), rng.random(first[-1])
    routes, sent = Routes(first, link, share, np.zeros(300)), rng.random(300)
    expected = np.zeros(network.n_links)
    for r in range(300):
        for k in range(first[r], first[r + 1]):
            expected[link[k]] += sent[r] * share[k]
    for at_once in (1, 7, 300, 1000):
        monkeypatch.setattr(routes_module, "AT_ONCE", at_once)
        carried, on_wire = routes.carried(sent, network.n_links)
        assert np.array_equal(carried, expected)
        assert on_wire == sent[length > 0].sum()


@pytest.mark.parametrize("routing", ["ecmp", "ecmp_polarised"])
def test_seeds_drawn_together_take_one_walk_and_the_routes_of_each_alone(
    routing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, seeds = fat_tree(4), (3, 2**70, 5)
    src, dst = np.random.default_rng(0).choice(16, (2, 40))
    alone = [find_routes(network, src, dst, routing=routing, seed=seed) for seed in seeds]
    walks, walk_once = [], walk.walk
    monkeypatch.setattr(walk, "walk", lambda *of: walks.append(of) or walk_once(*of))
    other = fat_tree(4)
    with drawn_together(seeds):
        found = [find_routes(network, src, dst, routing=routing, seed=seed) for seed in seeds]
        assert len(walks) == 1
        find_routes(network, src, dst[::-1], routing=routing, seed=3)
        find_routes(other, src, dst, routing=routing, seed=3)
        assert len(walks) == 3  # other flows, and another network, have routes of their own
    for a, b in zip(alone, found, strict=True):
        for field in ("first", "link", "share", "latency"):
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
    assert any(not np.array_equal(alone[0].link, one.link) for one in alone[1:])


@pytest.mark.parametrize("pairs", [([0, 1, 0], [1, 2, 1]), ([1, 0], [2, 1])])
def test_a_pair_without_a_path_is_named_also_where_seeds_are_drawn_together(pairs: tuple[list[int], list[int]]) -> None:
    network = Network("apart", ["a", "b", "c"], kinds(3, 0), *both_ways(0, 1), 1.0, 0.0)
    with drawn_together((1, 2)), pytest.raises(RoutingError, match="no path from b to c"):
        find_routes(network, *pairs, routing="ecmp", seed=1)
