"""How next hops are chosen: by digits of the destination, by one hash at all nodes, along dimensions."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError, RoutingError
from commsim.core.faults.failures import fail_links
from commsim.core.network import SWITCH, Network, both_ways
from commsim.routing.routing import find_routes
from topologies.bcube import bcube
from topologies.dragonfly import dragonfly
from topologies.fat_tree import fat_tree
from topologies.hypercube import hypercube
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.star import star
from topologies.torus import torus


def all_pairs(network):
    return tuple(x.ravel() for x in np.meshgrid(network.hosts, network.hosts, indexing="ij"))


def paths(network, src, dst, **options):
    """Links of each route."""
    routes = find_routes(network, src, dst, **options)
    return [routes.link[a:b] for a, b in zip(routes.first[:-1], routes.first[1:], strict=True)]


FULL_TREES = [
    fat_tree(2),
    fat_tree(4),
    pytest.param(fat_tree(6), marks=pytest.mark.jit),
    pytest.param(fat_tree(8), marks=pytest.mark.jit),
    leaf_spine(5, 4, 4),
    leaf_spine(3, 2, 6, uplinks_per_spine=3),
]


@pytest.mark.parametrize("network", FULL_TREES, ids=lambda network: network.name.split(",")[0])
def test_dmodk_lets_every_shift_pass_a_full_tree_without_contention(network):
    host = network.hosts
    for shift in range(1, len(host)):
        routes = find_routes(network, host, np.roll(host, -shift), routing="dmodk")
        assert np.bincount(routes.link).max() == 1


def test_ecmp_does_not():
    host = np.arange(16)
    worst = [np.bincount(find_routes(fat_tree(4), host, np.roll(host, -s)).link).max() for s in range(1, 16)]
    assert max(worst) > 1


@pytest.mark.parametrize("network", FULL_TREES, ids=lambda network: network.name.split(",")[0])
def test_dmodk_is_shortest_and_goes_by_the_destination_alone(network):
    src, dst = all_pairs(network)
    routes = find_routes(network, src, dst, routing="dmodk", seed=5)
    shortest = find_routes(network, src, dst, routing="shortest")
    assert np.array_equal(np.diff(routes.first), np.diff(shortest.first))
    assert np.array_equal(routes.link, find_routes(network, src, dst, 3, routing="dmodk").link)
    switch = network.kind[network.src[routes.link]] == SWITCH
    flow = np.repeat(np.arange(len(src)), np.diff(routes.first))[switch]
    table = {}
    for node, target, link in zip(network.src[routes.link[switch]], dst[flow], routes.link[switch], strict=True):
        assert table.setdefault((node, target), link) == link


def test_dmodk_uses_all_core_switches_for_one_host_after_the_other():
    # Zahavi's digits in fat_tree(4): host j is reached over aggregation switch j % 2 and its core switch j // 2 % 2.
    network = fat_tree(4)
    first_core = network.nodes.index("core0")
    cores = [
        network.dst[path[2]] - first_core
        for path in paths(network, np.zeros(12, int), np.arange(4, 16), routing="dmodk")
    ]
    assert cores == [2 * (j % 2) + j // 2 % 2 for j in range(4, 16)]


@pytest.mark.parametrize("network", [ring(4), torus((2, 2)), bcube(2, 1)], ids=["ring", "torus", "bcube"])
def test_dmodk_refuses_what_is_no_tree(network):
    with pytest.raises(InputError, match="dmodk routing needs a tree, but traffic passes h0"):
        find_routes(network, 0, 1, routing="dmodk")
    with pytest.raises(InputError, match="but router0:router1 joins two switches of one tier"):
        find_routes(dragonfly(1, 2, 1), 0, 1, routing="dmodk")


def test_dmodk_finds_its_way_around_a_failure():
    network = fail_links(leaf_spine(3, 2, 2), ["leaf0:spine0"])
    src, dst = all_pairs(network)
    routes = find_routes(network, src, dst, routing="dmodk")
    assert np.array_equal(np.diff(routes.first), np.diff(find_routes(network, src, dst, routing="shortest").first))


def test_one_hash_at_all_switches_leaves_most_core_switches_idle():
    # What is drawn at the edge is drawn again at the aggregation switch: of k^2/4 core switches k/2 are used.
    network = fat_tree(8)
    src, dst = (x.ravel() for x in np.meshgrid(np.arange(16), np.arange(16, 128)))
    used = {
        routing: {int(network.dst[path[2]]) for path in paths(network, src, dst, routing=routing)}
        for routing in ("ecmp", "ecmp_polarised")
    }
    assert len(used["ecmp"]) == 16
    assert len(used["ecmp_polarised"]) == 4


def test_one_hash_is_as_good_as_many_when_there_is_one_choice():
    network = leaf_spine(2, 8, 32)
    src, dst = (x.ravel() for x in np.meshgrid(np.arange(32), np.arange(32, 64)))
    for routing in ("ecmp", "ecmp_polarised"):
        routes = find_routes(network, src, dst, routing=routing)
        count = np.bincount(routes.link)[64 : 64 + 8]  # the uplinks of leaf0; 128 expected on each
        assert ((count - 128) ** 2 / 128).sum() < 29.9  # chi-square with 7 degrees: once in 10 000 draws


def steps(network, path):
    """Dimension and signed step of each link between hosts of a grid."""
    change = network.coordinates[network.dst[path]] - network.coordinates[network.src[path]]
    assert (np.count_nonzero(change, axis=1) == 1).all()
    dimension = change.astype(bool).argmax(axis=1)
    return dimension, change[np.arange(len(path)), dimension]


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 2)
@given(dims=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), wrap=st.booleans(), seed=st.integers(0, 99))
def test_dimension_order_takes_the_shorter_way_round_each_dimension_in_turn(dims, wrap, seed):
    network = torus(dims, wrap)
    src, dst = all_pairs(network)
    for a, b, path in zip(src, dst, paths(network, src, dst, seed=seed), strict=True):
        dimension, step = steps(network, path)
        assert (np.diff(dimension) >= 0).all()
        for d, size in enumerate(dims):
            way = abs(network.coordinates[a, d] - network.coordinates[b, d])
            assert np.count_nonzero(dimension == d) == (min(way, size - way) if wrap else way)
            assert len(set(np.sign(step[dimension == d] % size * 2 - size))) <= 1 or size == 2


def channel_dependencies(network, src, dst):
    """Pairs of links that a message holds one after the other."""
    return {
        pair for path in paths(network, src, dst) for pair in zip(path[:-1].tolist(), path[1:].tolist(), strict=True)
    }


def is_acyclic(pairs):
    left = {a for a, _ in pairs} | {b for _, b in pairs}
    while left:
        free = left - {b for a, b in pairs if a in left}
        if not free:
            return False
        left -= free
    return True


@pytest.mark.parametrize(
    "network", [torus((3, 4), False), torus((3, 2, 3), False), hypercube(4)], ids=["2d", "3d", "cube"]
)
def test_dimension_order_cannot_deadlock_in_a_mesh_or_a_hypercube(network):
    # Dally and Seitz: no deadlock when the channel dependencies have no cycle.
    assert is_acyclic(channel_dependencies(network, *all_pairs(network)))


def test_in_any_order_there_would_be_a_cycle():
    network = torus((3, 3), False)
    any_order = dataclasses.replace(network, routing="ecmp")
    assert not is_acyclic(channel_dependencies(any_order, *all_pairs(network)))


def test_a_tie_between_the_two_ways_round_is_drawn():
    network = ring(4)
    links = find_routes(network, np.zeros(64, int), np.full(64, 2), np.arange(64), routing="dimension_order").link
    assert 16 < np.count_nonzero(network.dst[links] == 1) < 48


def test_dimension_order_in_bcube_corrects_one_digit_per_switch():
    network = bcube(3, 2)
    src, dst = all_pairs(network)
    for a, b, path in zip(src, dst, paths(network, src, dst, routing="dimension_order"), strict=True):
        differs = np.flatnonzero(network.coordinates[a] != network.coordinates[b])
        levels = [network.nodes[s].split("_")[0] for s in network.dst[path[::2]]]
        assert levels == [f"level{d}" for d in differs]


def test_a_torus_goes_the_long_way_round_a_cut_line_and_a_mesh_cannot():
    src, dst = np.array([0]), np.array([1])
    around = fail_links(torus((5, 2)), ["h0:h2"])  # along the first dimension
    assert len(find_routes(around, src, np.array([2])).link) == 4
    cut = fail_links(torus((3, 3), False), ["h0:h1"])
    with pytest.raises(RoutingError, match=r"no path from h0 to h1 in dimension order; ecmp takes any$"):
        find_routes(cut, src, dst)
    assert len(find_routes(cut, src, dst, routing="ecmp").link) == 3


@pytest.mark.parametrize(("routing", "what"), [("dimension_order", "a grid"), ("minimal", "groups")])
def test_routings_that_need_coordinates_say_so(routing, what):
    with pytest.raises(InputError, match=f"{routing} routing needs {what}, but the nodes have no coordinates"):
        find_routes(star(3), 0, 1, routing=routing)


def test_hosts_on_the_switches_of_a_grid_are_routed_too():
    # Four switches in a square, a host on each, with the coordinates of its switch.
    src, dst = both_ways([0, 1, 2, 3, 4, 6, 4, 5], [4, 5, 6, 7, 5, 7, 6, 7])
    at = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (2, 1))
    network = Network("square", [*"abcd", *"stuv"], [0] * 4 + [1] * 4, src, dst, 1.0, 0.0, coordinates=at)
    (path,) = paths(network, 0, 3, routing="dimension_order")
    assert [network.link_name(int(i)) for i in path] == ["a:s", "s:u", "u:v", "v:d"]
