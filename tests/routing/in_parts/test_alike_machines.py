"""Routes inside of machines that are alike, and their ports: those that a search in the whole network finds."""

import dataclasses

import numpy as np
import pytest

from commsim.core.network import Network
from commsim.prediction.inputs import load_network
from commsim.routing import forest_routes, walk
from commsim.routing.in_parts import alike_machines as module
from commsim.routing.in_parts.alike_machines import alike_machines, ports_inside, routes_inside
from commsim.routing.link_rows import links_in_rows, only_sends
from commsim.routing.merge_switches import fabric_nodes
from commsim.routing.ports_kernel import find_ports
from commsim.routing.routing import find_routes

RAILS = "rail_optimized:n_hosts=64,preset=dgx-h100"
NETWORKS = (RAILS, "rail_optimized:n_hosts=64,preset=dgx-a100,planes=2", "dgx-h100@fat_tree:k=16",
            "gh200-quad@fat_tree:k=12")  # fmt: skip


def pairs(network: Network) -> tuple[np.ndarray, np.ndarray]:
    rng, seats = np.random.default_rng(3), network.endpoints
    src = rng.choice(seats, 600)
    near = np.minimum(np.searchsorted(seats, src) + rng.integers(0, 8, 600), len(seats) - 1)
    return np.concatenate((src, src)), np.concatenate((seats[near], rng.choice(seats, 600)))


@pytest.mark.parametrize("spec", NETWORKS)
@pytest.mark.parametrize("routing", ["dmodk", "ecmp", "spray"])
def test_routes_are_those_of_a_search_in_the_whole_network(
    spec: str, routing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = load_network(spec)
    src, dst = pairs(network)
    assert alike_machines(network) is not None
    found = find_routes(network, src, dst, routing=routing, seed=4)
    monkeypatch.setattr(walk, "LEAST", len(src) + 1)
    searched = find_routes(dataclasses.replace(network), src, dst, routing=routing, seed=4)
    for name in ("first", "link", "share", "latency"):
        assert np.array_equal(getattr(found, name), getattr(searched, name)), name


@pytest.mark.parametrize("spec", NETWORKS)
def test_ports_are_those_that_are_found_one_by_one(spec: str) -> None:
    network = load_network(spec)
    machines = alike_machines(network)
    assert machines is not None
    nodes, fabric = network.endpoints[::3].astype(np.int64), fabric_nodes(network)
    ends = network.src, network.dst
    away, towards = (links_in_rows(*way, network.n_nodes) for way in (ends, ends[::-1]))
    inbound = network.forwards & ~only_sends(network)
    for rows, forwards, inward in (((away, towards), network.forwards, False), ((towards, away), inbound, True)):
        one_by_one = find_ports(nodes, *rows, network.machine, fabric, forwards, network.metric)
        for a, b in zip(ports_inside(network, machines, nodes, forwards, inward=inward), one_by_one, strict=True):
            assert np.array_equal(a, b[: len(a)])


def test_routes_inside_are_of_pairs_in_one_machine_and_all_of_them_on_nvswitch() -> None:
    network = load_network(RAILS)
    machines = alike_machines(network)
    assert machines is not None
    src, dst = pairs(network)
    which = routes_inside(network, machines, src, dst, walk.walk)[0]
    assert np.array_equal(which, np.flatnonzero(network.machine[src] == network.machine[dst]))


def test_ways_through_the_fabric_that_may_be_as_short_are_left_to_the_search() -> None:
    network = load_network(RAILS)
    cheap = np.where(network.metric == 4, 1, network.metric)  # out of the machine and back costs what NVSwitch does
    network = dataclasses.replace(network, metric=cheap)
    machines = alike_machines(network)
    assert machines is not None
    same = network.endpoints[:1], network.endpoints[:1]
    assert len(routes_inside(network, machines, *pairs(network), walk.walk)[0]) > 0  # a node and itself
    src, dst = network.endpoints[:1], network.endpoints[1:2]
    assert len(routes_inside(network, machines, src, dst, walk.walk)[0]) == 0
    assert len(routes_inside(network, machines, *same, walk.walk)[0]) == 1


def other(network: Network, what: str) -> Network:
    """One machine made different: a link is gone, dearer or moved, or a node does not forward."""
    inside = np.flatnonzero((network.machine[network.src] == 9) & (network.machine[network.dst] == 9))
    if what == "metric":
        metric = network.metric.copy()
        metric[inside[3]] += 1
        return dataclasses.replace(network, metric=metric)
    if what == "forwards":
        forwards = network.forwards.copy()
        forwards[np.flatnonzero((network.machine == 9) & forwards)[-1]] = False
        return dataclasses.replace(network, forwards=forwards)
    dst = network.dst.copy()
    if what == "moved":
        free = np.flatnonzero((network.machine == 9) & (np.arange(network.n_nodes) != network.src[inside[3]]))
        dst[inside[3]] = free[free != dst[inside[3]]][0]
    else:
        dst[inside[3]] = np.flatnonzero(network.machine == 10)[0]
    return dataclasses.replace(network, dst=dst)


@pytest.mark.parametrize("what", ["metric", "forwards", "moved", "joined"])
def test_machines_of_which_one_differs_are_not_alike(what: str) -> None:
    assert alike_machines(other(load_network(RAILS), what)) is None


def test_few_machines_are_not_compared() -> None:
    assert alike_machines(load_network(f"rail_optimized:n_hosts={module.LEAST // 2}")) is None


def test_ends_of_routes_are_kept_only_where_they_are_hashed() -> None:
    network = load_network(RAILS)
    src, dst = pairs(network)
    for routing, kept in (("dmodk", False), ("ecmp", True)):
        forest_routes._ends.clear()
        find_routes(network, src, dst, routing=routing)
        assert bool(forest_routes._ends) is kept


def test_routes_inside_are_found_once_for_all_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    network = load_network(RAILS)
    src, dst = pairs(network)
    searches = []
    found_inside = module._found_inside
    monkeypatch.setattr(module, "_latest", [])
    monkeypatch.setattr(module, "_found_inside", lambda *of: searches.append(of) or found_inside(*of))
    for seed in range(3):
        find_routes(network, src, dst, routing="ecmp", seed=seed)
    find_routes(network, dst, src, routing="ecmp")
    assert len(searches) == 2
