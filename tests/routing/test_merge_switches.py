import dataclasses

import numpy as np
import pytest

from commsim.prediction.inputs import load_network
from commsim.routing import merge_switches as merging
from commsim.routing.merge_switches import merge_switches, switch_classes
from commsim.routing.routing import find_routes


def test_a_fat_tree_folds_to_its_pods_and_one_core():
    network = load_network("fat_tree:k=4")
    merged = merge_switches(network)
    pods = ("aggregation0", "aggregation2", "aggregation4", "aggregation6")
    assert merged.network.nodes == (*(f"h{i}" for i in range(16)), *(f"edge{i}" for i in range(8)), *pods, "core0")
    assert sorted(set(np.bincount(merged.bundles.link).tolist())) == [1, 2, 4]
    assert merged.bundles.share_out(merged.network.bandwidth).tolist() == network.bandwidth.tolist()
    assert merged.network.bandwidth.sum() == pytest.approx(network.bandwidth.sum())


def test_a_link_that_differs_keeps_its_switches_apart():
    network = load_network("leaf_spine:n_leaves=3,n_spines=4,hosts_per_leaf=2")
    assert sum(name.startswith("spine") for name in merge_switches(network).network.nodes) == 1
    bandwidth = network.bandwidth.copy()
    bandwidth[np.flatnonzero(network.dst == network.nodes.index("spine2"))[0]] /= 2
    slower = merge_switches(dataclasses.replace(network, bandwidth=bandwidth))
    assert [name for name in slower.network.nodes if name.startswith("spine")] == ["spine0", "spine2"]


@pytest.mark.parametrize("spec", ["fat_tree:k=4", "rail_optimized:n_hosts=4,hosts_per_group=1,preset=dgx-a100"])
def test_one_pass_over_many_links_finds_the_same_classes(spec, monkeypatch):
    network = load_network(spec)
    kind = np.random.default_rng(3).integers(0, 2, network.n_links)
    for kinds in (network.metric, kind):
        monkeypatch.setattr(merging, "MANY", network.n_links + 1)
        slow = switch_classes(network, kinds)
        monkeypatch.setattr(merging, "MANY", 0)
        assert np.array_equal(switch_classes(network, kinds), slow)
    for few, factor in ((64, 1 + kind), (64, 1 + np.arange(network.n_links)), (1, 1 + kind)):
        monkeypatch.setattr(merging, "FEW", few)
        monkeypatch.setattr(merging, "AT_ONCE", 7)
        merged = []
        for many in (network.n_links + 1, 0):
            monkeypatch.setattr(merging, "MANY", many)
            merged.append(merge_switches(dataclasses.replace(network, bandwidth=network.bandwidth * factor)))
        assert merged[0].network == merged[1].network
        assert merged[0].node.tolist() == merged[1].node.tolist()
        slow, found = (one.bundles.link.tolist() for one in merged)
        assert found == slow


@pytest.mark.parametrize(
    "spec",
    [
        "fat_tree:k=4",
        "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=2",
        "three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=2,switches_per_pod=2,n_cores=3",
        "rail_optimized:n_hosts=4,hosts_per_group=1,groups_per_pod=2,cores_per_spine=2,preset=dgx-a100",
        "leaf_spine:n_leaves=6,n_spines=2,hosts_per_leaf=1",
    ],
)
def test_sprayed_messages_load_links_as_bundles_say(spec):
    network = load_network(spec)
    merged = merge_switches(network)
    rng = np.random.default_rng(5)
    src, dst = rng.choice(network.endpoints, 40), rng.choice(network.endpoints, 40)
    routes = find_routes(network, src, dst, routing="spray")
    bundled = find_routes(merged.network, merged.node[src], merged.node[dst], routing="spray")
    assert (bundled.share == 1).all()
    load = np.bincount(routes.link, routes.share, network.n_links)
    alike = merged.bundles.share_out(np.bincount(bundled.link, bundled.share, merged.network.n_links))
    np.testing.assert_allclose(load, alike, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(routes.latency, bundled.latency, rtol=1e-12)


def test_what_has_no_switches_stays_as_it_is():
    network = load_network("torus:dims=3x3")
    merged = merge_switches(network)
    assert merged.network.nodes == network.nodes
    assert (merged.bundles.link == np.arange(network.n_links)).all()


def test_links_that_differ_in_two_ways_at_once_keep_their_switches_apart():
    """One switch has the slower link, another the longer one: that is no one kind of links."""
    network = load_network("leaf_spine:n_leaves=3,n_spines=4,hosts_per_leaf=2")
    bandwidth, latency = network.bandwidth.copy(), network.latency.copy()
    for name, column, factor in (("spine1", bandwidth, 2), ("spine2", latency, 2)):
        column[network.dst == network.nodes.index(name)] *= factor
    merged = merge_switches(dataclasses.replace(network, bandwidth=bandwidth, latency=latency))
    assert [name for name in merged.network.nodes if name.startswith("spine")] == ["spine0", "spine1", "spine2"]
