import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import RoutingError
from commsim.core.faults.failures import fail_links
from commsim.core.network import HOST
from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes
from topologies.dragonfly import dragonfly
from topologies.fully_connected import fully_connected

dragonflies = st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 3)).map(lambda pah: dragonfly(*pah))


def all_pairs(network):
    return tuple(x.ravel() for x in np.meshgrid(network.hosts, network.hosts, indexing="ij"))


def walked(network, src, dst, **options):
    """Nodes of each route, source and destination included."""
    routes = find_routes(network, src, dst, **options)
    for r, source in enumerate(src):
        yield [int(source), *network.dst[routes.link[routes.first[r] : routes.first[r + 1]]].tolist()]


def groups_of(network, nodes):
    return [int(group) for group, _ in itertools.groupby(network.coordinates[nodes, 0])]


def local_global_local(network, a, b):
    """Fewest links between two routers over at most one cable between groups, by trying all of these."""
    group = network.coordinates[:, 0]
    if group[a] == group[b]:
        return int(a != b)
    cables = np.flatnonzero((group[network.src] == group[a]) & (group[network.dst] == group[b]))
    return min(int(network.src[c] != a) + 1 + int(network.dst[c] != b) for c in cables)


@settings(max_examples=settings().max_examples * 2 // 3)
@given(network=dragonflies, data=st.data())
def test_minimal_is_one_cable_in_each_group_and_one_between_them(network, data):
    src, dst = all_pairs(network)
    for nodes in walked(network, src, dst, routing="minimal", seed=data.draw(st.integers(0, 9))):
        if len(nodes) > 1:
            assert len(nodes) - 3 == local_global_local(network, nodes[1], nodes[-2])
        assert len(groups_of(network, nodes)) <= 2
        assert len(set(nodes)) == len(nodes)


def test_ecmp_may_pass_other_groups_where_that_is_no_longer():
    network = dragonfly(1, 4, 2)
    counts = {
        routing: max(len(groups_of(network, nodes)) for nodes in walked(network, *all_pairs(network), routing=routing))
        for routing in ("minimal", "ecmp")
    }
    assert counts["minimal"] == 2 < counts["ecmp"]


@settings(max_examples=settings().max_examples * 2 // 3)
@given(network=dragonflies.filter(lambda n: n.coordinates[:, 0].max() >= 2), seed=st.integers(0, 9))
@pytest.mark.jit
def test_valiant_passes_one_third_group_and_is_minimal_before_and_after(network, seed):
    group = network.coordinates[:, 0]
    for nodes in walked(network, *all_pairs(network), routing="valiant", seed=seed):
        assert len(set(nodes)) == len(nodes)
        if group[nodes[0]] == group[nodes[-1]]:
            assert len(nodes) == 1 or len(nodes) - 3 == local_global_local(network, nodes[1], nodes[-2])
            continue
        crossings = [i for i in range(len(nodes) - 1) if group[nodes[i]] != group[nodes[i + 1]]]
        assert len(groups_of(network, nodes)) == 3
        near, far = crossings[0], crossings[0] + 1
        assert near == 1 + (nodes[near] != nodes[1])  # the host's link, and at most one to the router with the cable
        assert len(nodes) - 2 - far == local_global_local(network, nodes[far], nodes[-2])
        assert len(nodes) <= 8


def test_the_third_group_is_drawn_evenly():
    network = dragonfly(2, 4, 2)
    far = len(network.hosts) - 1
    nodes = list(walked(network, np.zeros(1400, int), np.full(1400, far), channel=np.arange(1400), routing="valiant"))
    third, count = np.unique([groups_of(network, path)[1] for path in nodes], return_counts=True)
    assert third.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert ((count - 200) ** 2 / 200).sum() < 27.9  # chi-square with 6 degrees: once in 10 000 draws


def test_valiant_spreads_what_minimal_sends_over_one_cable():
    # Every host of a group sends to the next group: the worst case of the paper, section 4.3.
    network = dragonfly(4, 8, 4)
    per_group, n = 32, len(network.hosts)
    src = np.arange(n)
    dst = (src + per_group) % n
    group = network.coordinates[:, 0]
    crossing = group[network.src] != group[network.dst]
    load = {
        routing: np.bincount(find_routes(network, src, dst, routing=routing).link, minlength=network.n_links)[crossing]
        for routing in ("minimal", "valiant")
    }
    assert load["minimal"].max() == per_group
    assert load["valiant"].max() < per_group / 3
    assert load["valiant"].sum() == 2 * load["minimal"].sum()


def test_the_draw_depends_on_the_seed_and_on_nothing_else():
    network = dragonfly(1, 3, 2)
    src, dst = all_pairs(network)
    one, same, other = (find_routes(network, src, dst, routing="valiant", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.link, same.link)
    assert not np.array_equal(one.link, other.link)
    alone = find_routes(network, src[7], dst[7], routing="valiant", seed=1)
    assert alone.link.tolist() == one.link[one.first[7] : one.first[8]].tolist()


def test_latency_and_share_are_those_of_the_links():
    network = dragonfly(1, 3, 2, latency=1e-6, global_latency=7e-6)
    src, dst = all_pairs(network)
    routes = find_routes(network, src, dst, routing="valiant")
    total = np.add.reduceat(np.append(network.latency[routes.link], 0.0), routes.first[:-1])
    np.testing.assert_allclose(routes.latency, np.where(np.diff(routes.first) > 0, total, 0.0), rtol=1e-12)
    assert (routes.share == 1).all()


def test_with_hosts_for_groups_a_third_host_is_passed():
    network = fully_connected(5)
    src, dst = all_pairs(network)
    for nodes in walked(network, src, dst, routing="valiant"):
        assert len(nodes) == (1 if nodes[0] == nodes[-1] else 3)
    assert (network.kind == HOST).all()


def test_two_groups_have_no_third_one_and_it_goes_by_any_switch():
    network = dragonfly(2, 1, 1)
    routers = {node for nodes in walked(network, [0], [2], routing="valiant") for node in nodes[1:-1]}
    assert routers == {4, 5}


def test_a_failed_cable_between_two_groups_is_passed_by_valiant_and_by_ecmp():
    network = dragonfly(1, 2, 1)
    group, is_host = network.coordinates[:, 0], network.kind == HOST
    cable = int(np.flatnonzero(group[network.src] != group[network.dst])[0])
    src, dst = (np.flatnonzero(is_host & (group == group[end]))[:1] for end in (network.src[cable], network.dst[cable]))
    cut = fail_links(network, [network.link_name(cable)])
    with pytest.raises(RoutingError, match="that changes the group at most once; ecmp takes any"):
        find_routes(cut, src, dst, routing="minimal")
    for routing in ("valiant", "ecmp"):
        assert len(groups_of(cut, next(walked(cut, src, dst, routing=routing)))) == 3


GROUPLESS = [
    "jellyfish:n_switches=10,degree=4,hosts_per_switch=2", "fat_tree:k=4", "torus:dims=4x4", "hypercube:dimension=4",
    "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=2", "ring:n_hosts=7",
]  # fmt: skip


@pytest.mark.parametrize("spec", GROUPLESS)
def test_without_groups_it_goes_by_way_of_any_switch_on_shortest_paths(spec):
    network = load_network(spec)
    src, dst = all_pairs(network)
    through = set()
    for seed in range(3):
        routes = list(walked(network, src, dst, routing="valiant", seed=seed))
        for nodes, source, target in zip(routes, src, dst, strict=True):
            assert (nodes[0], nodes[-1]) == (source, target)
            assert network.forwards[nodes[1:-1]].all()
            through |= set(nodes[1:-1])
    assert through == set(np.flatnonzero(network.forwards).tolist())  # each is drawn
    ways = [find_routes(network, src, dst, routing=routing) for routing in ("valiant", "ecmp")]
    hops = [np.diff(routes.first) for routes in ways]
    assert (hops[0] >= hops[1]).all()
    assert hops[1].max() < hops[0].max() <= 2 * hops[1].max()


def test_it_spreads_what_minimal_paths_put_on_one_cable():
    """Neighbours of a ring of switches that all send one way share one cable; Valiant's detours take all of them."""
    network = load_network("jellyfish:n_switches=12,degree=3,hosts_per_switch=8")
    a, b = (int(node) for node in (network.src[-1], network.dst[-1]))  # two switches with a cable
    src, dst = (network.hosts[np.isin(network.hosts, network.src[network.dst == end])] for end in (a, b))
    used = {}
    for routing in ("ecmp", "valiant"):
        routes = find_routes(network, src, dst, routing=routing)
        between = network.kind[network.src[routes.link]] == network.kind[network.dst[routes.link]]
        used[routing] = np.bincount(routes.link[between]).max()
    assert used["ecmp"] == 8 > used["valiant"]
