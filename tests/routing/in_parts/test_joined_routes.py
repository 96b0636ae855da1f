import dataclasses

import numpy as np
import pytest

from commsim.core import jit
from commsim.core.network import GPU, HOST
from commsim.core.network_queries import tiers, with_rates
from commsim.engine.ways.proof_cache import PROOFS
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.routing import pinned, ports_kernel
from commsim.routing.in_parts.joined_routes import find_joined_routes
from commsim.routing.routing import find_routes

FABRICS = [
    "dgx-h100@leaf_spine:machines=8,n_leaves=4,n_spines=4,uplinks_per_spine=2",
    "dgx-h100@leaf_spine:machines=6,n_leaves=3,n_spines=3,uplinks_per_spine=1",
    "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=3", "fat_tree:k=4",
]  # fmt: skip


def pairs_of(network):
    ends = np.flatnonzero(np.isin(network.kind, (GPU if (network.kind == GPU).any() else HOST,)))
    src, dst = (axis.ravel().astype(np.int32) for axis in np.meshgrid(ends, ends))
    return np.tile(src, 2), np.tile(dst, 2)  # two channels


@pytest.mark.parametrize("fabric", FABRICS)
def test_parts_make_the_routes_that_a_search_finds(fabric):
    network = load_network(fabric)
    src, dst = pairs_of(network)
    joined = find_joined_routes(network, src, dst)
    assert joined is not None
    assert len(joined.of) == len(src) // 2
    found, wanted = joined.each(), find_routes(network, src, dst, routing="spray")
    assert (found.first == wanted.first).all()
    assert found.first.flags.c_contiguous  # a kernel is compiled for each kind
    for one, other in zip(found.first[:-1].tolist(), found.first[1:].tolist(), strict=True):
        ours, theirs = (np.argsort(routes.link[one:other], kind="stable") for routes in (found, wanted))
        assert (found.link[one:other][ours] == wanted.link[one:other][theirs]).all()
        assert found.share[one:other][ours] == pytest.approx(wanted.share[one:other][theirs], rel=1e-15)
    assert found.latency == pytest.approx(wanted.latency, rel=1e-14)
    assert (joined.crosses() == (np.diff(wanted.first) > 0)).all()
    weights = np.random.default_rng(1).integers(1, 1000, len(src)).astype(np.float64)
    carried = np.bincount(wanted.link, np.repeat(weights, np.diff(wanted.first)) * wanted.share, network.n_links)
    assert joined.on_links(weights, network.n_links) == pytest.approx(carried, rel=1e-14)


@pytest.mark.parametrize(
    "fabric", ["rail_optimized:machines=4,preset=dgx-h100", "hgx-h100@fat_tree:machines=2,k=4", "torus:dims=4x4"]
)
def test_without_one_nearest_port_of_each_node_there_are_no_parts(fabric):
    network = load_network(fabric)
    assert find_joined_routes(network, *pairs_of(network)) is None


@pytest.mark.parametrize("fabric", FABRICS[:2])
def test_an_all_to_all_takes_what_it_takes_with_a_route_for_each_connection(fabric, monkeypatch):
    network = load_network(fabric)
    found = []
    for least in (1, 2**40):
        monkeypatch.setattr(pinned, "LEAST", least)
        PROOFS.clear()
        plan = prepare("nccl_all_to_all", network)
        paths = plan.at(2**28).paths
        assert (paths.proof.routes.pair is not None) == (least == 1)
        found.append((paths.proof.full, paths.simulate(2**28, framing=paths.known.framing)))
    (full, ours), (wanted, theirs) = found
    assert full == wanted
    assert ours.time == theirs.time
    assert ours.link_bytes == pytest.approx(theirs.link_bytes, rel=1e-14)


def test_a_network_with_other_rates_has_the_layout_of_the_first_and_latencies_of_its_own():
    """Sizes with other algorithms have other latencies: what is found of nodes and links is not found again."""
    network = load_network("dgx-h100@leaf_spine:machines=8,n_leaves=4,n_spines=2")
    gpus = network.endpoints.astype(np.int32)
    src, dst = np.repeat(gpus, 8), np.tile(np.roll(gpus, 9)[:8], len(gpus))
    apart = src != dst
    first = find_joined_routes(network, src[apart], dst[apart])
    slower = with_rates(network, latency=network.latency * 3, bandwidth=network.bandwidth / 2)
    again = find_joined_routes(slower, src[apart], dst[apart])
    assert first is not None
    assert again is not None
    assert tiers(slower) is tiers(network)
    assert np.array_equal(first.each().link, again.each().link)
    np.testing.assert_allclose(again.each().latency, 3 * first.each().latency)
    alone = find_routes(slower, src[apart], dst[apart], routing="spray")
    np.testing.assert_allclose(again.each().latency, alone.latency)


class Counted(np.ndarray):
    """An array that counts the rows that are read one by one."""

    reads = 0

    def __getitem__(self, key):
        Counted.reads += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("fabric", FABRICS)
def test_the_work_of_looking_for_ports_is_not_told_as_less_than_it_is(fabric, monkeypatch):
    """Each of 8,192 GPUs looks through its machine: told as one look at each link, it was interpreted for 17 s."""
    found, steps, expected = ports_kernel.find_ports, [], jit.expected_work

    def counted(nodes, away, *more):
        Counted.reads = 0
        ports = getattr(found, "py_func", found)(nodes, (*away[:2], away[2].view(Counted)), *more)
        assert len(nodes) < Counted.reads <= steps[-1]
        return ports

    monkeypatch.setattr(jit, "expected_work", lambda n, **more: steps.append(n) or expected(n, **more))
    monkeypatch.setattr(ports_kernel, "find_ports", counted)
    network = dataclasses.replace(load_network(fabric))  # of which nothing is known yet
    assert find_joined_routes(network, *pairs_of(network)) is not None
    assert len(steps) >= 2
