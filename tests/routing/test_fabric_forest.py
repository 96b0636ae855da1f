import dataclasses

import numpy as np
import pytest

from commsim.prediction.inputs import load_network
from commsim.routing import fabric_forest as forests
from commsim.routing import walk
from commsim.routing.fabric_forest import fabric_forest
from commsim.routing.routing import find_routes

FORESTS = [
    "star:n_hosts=9",
    "fat_tree:k=4",
    "leaf_spine:n_leaves=4,n_spines=3,hosts_per_leaf=4",
    "three_tier:n_pods=3,racks_per_pod=2,hosts_per_rack=3,switches_per_pod=2,n_cores=3",
    "rail_optimized:n_hosts=6,hosts_per_group=1,groups_per_pod=2,cores_per_spine=2,preset=dgx-a100",
    "dgx-h100@three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=8,switches_per_pod=2,n_cores=3",
    "pcie_host:n_gpus=4,n_nics=2@fat_tree:k=4",
    "dual_tor:n_racks=4,n_spines=2,hosts_per_rack=3",
    "leaf_spine:n_leaves=12,n_spines=3,hosts_per_leaf=1",  # leaves 2 and 3 were one class
]
OTHERS = [
    "torus:dims=4x4",
    "bcube:n=3,k=1",
    "rail_optimized:n_hosts=4,hosts_per_group=2,planes=2",
    "dragonfly:p=2,a=2,h=2",
]


def both(network, routing, monkeypatch, n=300):
    rng = np.random.default_rng(7)
    src, dst = rng.choice(network.endpoints, n), rng.choice(network.endpoints, n)
    channel = rng.integers(0, 3, n)
    found = []
    for least in (10**9, 0):
        monkeypatch.setattr(walk, "LEAST", least)
        found.append(find_routes(network, src, dst, channel, routing=routing, seed=11))
    return found


@pytest.mark.parametrize("routing", ["ecmp", "ecmp_polarised", "shortest", "dmodk", "spray"])
@pytest.mark.parametrize("spec", FORESTS)
def test_routes_are_those_that_a_search_finds(spec, routing, monkeypatch):
    network = load_network(spec)
    assert fabric_forest(network) is not None
    searched, known = both(network, routing, monkeypatch)
    for column in ("first", "link", "share", "latency"):
        assert np.array_equal(getattr(searched, column), getattr(known, column)), column


def test_tiers_of_different_metrics_are_a_forest(monkeypatch):
    network = load_network("fat_tree:k=4")
    metric = network.metric.copy()
    at_core = np.char.startswith(network.nodes, "core")
    metric[at_core[network.src]], metric[at_core[network.dst]] = 3, 5
    uneven = dataclasses.replace(network, metric=metric)
    assert fabric_forest(uneven) is not None
    searched, known = both(uneven, "ecmp", monkeypatch)
    assert np.array_equal(searched.link, known.link)


@pytest.mark.parametrize("spec", OTHERS)
def test_other_networks_are_searched(spec, monkeypatch):
    network = load_network(spec)
    assert fabric_forest(network) is None
    searched, known = both(network, "ecmp", monkeypatch)
    assert np.array_equal(searched.link, known.link)


def test_with_random_failures_routes_stay_those_of_a_search(monkeypatch):
    network = load_network("fat_tree:k=4")
    rng = np.random.default_rng(3)
    n_forests = 0
    for _ in range(30):
        kept = rng.random(network.n_links // 2) > 0.1
        kept[:16] = True  # hosts keep their cables
        links = np.flatnonzero(np.tile(kept, 2))
        columns = {name: getattr(network, name)[links]
                   for name in ("src", "dst", "bandwidth", "latency", "buffer", "loss", "metric")}  # fmt: skip
        damaged = dataclasses.replace(network, **columns)
        n_forests += fabric_forest(damaged) is not None
        try:
            searched, known = both(damaged, "ecmp", monkeypatch, n=100)
        except ValueError:
            continue  # a host was cut off
        assert np.array_equal(searched.link, known.link)
    assert n_forests < 30


def test_links_of_other_metrics_between_two_classes_are_no_forest():
    network = load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2")
    metric = network.metric.copy()
    metric[network.dst == network.nodes.index("spine1")] = 2
    assert fabric_forest(dataclasses.replace(network, metric=metric)) is None


def climbed(forest, a, b):
    """Sum the metrics from one class to another, one step at a time."""
    total = 0
    while a != b and min(a, b) >= 0:
        if forest.depth[a] >= forest.depth[b]:
            total, a = total + forest.up[a], forest.parent[a]
        else:
            total, b = total + forest.down[b], forest.parent[b]
    return float(total) if a == b else np.inf


@pytest.mark.parametrize("spec", FORESTS)
def test_distances_are_those_of_a_climb(spec):
    forest = fabric_forest(load_network(spec))
    a, b = np.random.default_rng(2).integers(0, len(forest.parent), (2, 400))
    assert forest.distances(a, b).tolist() == [climbed(forest, *ends) for ends in zip(a, b, strict=True)]


@pytest.mark.parametrize("at_once", [1, 2**18])
def test_a_machine_that_is_a_short_cut_is_no_forest(monkeypatch, at_once):
    monkeypatch.setattr(forests, "AT_ONCE", at_once)
    network = load_network("pcie_host:n_gpus=4,n_nics=4@fat_tree:k=4")
    assert fabric_forest(network) is not None
    inside = (network.machine[network.src] >= 0) & (network.machine[network.dst] >= 0)
    ports = (network.machine[network.src] >= 0) ^ (network.machine[network.dst] >= 0)
    metric = np.where(inside | ports, network.metric, 9999)  # the fabric is slow, and every machine's ports are near
    assert fabric_forest(dataclasses.replace(network, metric=metric)) is None
