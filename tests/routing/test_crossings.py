"""Counts of routes over links, of several hashes in one pass, are those of the routes."""

import numpy as np
import pytest

from commsim.prediction.inputs import load_network
from commsim.routing import walk
from commsim.routing.crossings import count_crossings, crossings_kernel
from commsim.routing.routing import drawn_together, find_routes

NETWORKS = (
    "fat_tree:k=8",
    "leaf_spine:n_leaves=6,n_spines=3,hosts_per_leaf=8,uplinks_per_spine=2",
    "dgx-h100:net=roce@leaf_spine:machines=8,n_leaves=4,n_spines=3",
    "rail_optimized:n_hosts=16,hosts_per_group=4,groups_per_pod=2,cores_per_spine=2",
)
SEEDS = (0, 7, 2**63 + 5)


def flows(spec):
    """Return all pairs of endpoints of different machines, with three channels by turns."""
    network = load_network(spec)
    src, dst = (nodes.ravel() for nodes in np.meshgrid(network.endpoints, network.endpoints, indexing="ij"))
    apart = (src != dst) & ((network.machine[src] < 0) | (network.machine[src] != network.machine[dst]))
    src, dst = src[apart].astype(np.int64), dst[apart].astype(np.int64)
    return network, src, dst, np.arange(len(src)) % 3


def of_routes(network, src, dst, channel, seed, routing):
    """Count the routes themselves."""
    routes = find_routes(network, src, dst, channel, seed=seed, routing=routing)
    furthest = np.zeros(network.n_links)
    np.maximum.at(furthest, routes.link, np.repeat(routes.latency, np.diff(routes.first)))
    counts = np.bincount(routes.link, minlength=network.n_links)
    return counts.tolist(), furthest.tolist(), routes.link[routes.first[:-1]].tolist()


@pytest.mark.parametrize("routing", ["ecmp", "ecmp_polarised"])
@pytest.mark.parametrize("spec", NETWORKS)
def test_what_hashes_draw_together_are_their_routes(spec, routing, monkeypatch):
    monkeypatch.setattr(walk, "LEAST", 1)
    network, *ends = flows(spec)
    with drawn_together(SEEDS):
        drawn = [count_crossings(network, *ends, seed, routing) for seed in SEEDS]
    for seed, found in zip(SEEDS, drawn, strict=True):
        counted = found.n_routes.tolist(), found.furthest.tolist(), found.port.tolist()
        assert counted == of_routes(network, *ends, seed, routing)


def test_seeds_that_are_drawn_together_take_one_pass(monkeypatch):
    network, *ends = flows(NETWORKS[0])
    passes = []
    count = crossings_kernel.count_forest
    monkeypatch.setattr(crossings_kernel, "count_forest", lambda *given: passes.append(given) or count(*given))
    with drawn_together(SEEDS):
        for seed in SEEDS:
            count_crossings(network, *ends, seed, "ecmp")
    assert len(passes) == 1
    count_crossings(network, *ends, 1, "ecmp")
    assert len(passes) == 2


def test_other_channels_are_other_flows():
    network, src, dst, channel = flows(NETWORKS[0])
    with drawn_together(SEEDS):
        first = count_crossings(network, src, dst, channel, 0, "ecmp")
        other = count_crossings(network, src, dst, channel + 1, 0, "ecmp")
    assert first.n_routes.tolist() != other.n_routes.tolist()
    assert other.n_routes.tolist() == of_routes(network, src, dst, channel + 1, 0, "ecmp")[0]


def test_two_ways_that_are_equally_short_are_left_to_the_search(monkeypatch):
    monkeypatch.setattr(walk, "LEAST", 1)
    network, *ends = flows("dual_tor:n_racks=4,n_spines=4,hosts_per_rack=4")
    assert count_crossings(network, *ends, 0, "ecmp") is None
