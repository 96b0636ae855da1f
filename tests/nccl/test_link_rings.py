"""Rings of NCCL over direct links between GPUs: all links are used, as far as they have room."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import commsim as cs
from commsim.core.network import GPU, Network
from commsim.nccl.plans.link_rings import rings_of_links
from topologies.hosts.mesh_host import mesh_host
from topologies.hosts.nvswitch_host import nvswitch_host


def _gpus(network: Network) -> list[int]:
    return [node for node, kind in enumerate(network.kind) if kind == GPU]


def _uses(rings: tuple[tuple[int, ...], ...]) -> Counter[tuple[int, int]]:
    return Counter(pair for ring in rings for pair in pairwise((*ring, ring[0])))


def _rings(network: Network) -> tuple[tuple[int, ...], ...]:
    return rings_of_links(network, _gpus(network))


def test_four_gpus_joined_all_to_all_use_every_link_in_both_directions_alike() -> None:
    uses = _uses(_rings(mesh_host()))
    assert len(uses) == 12
    assert len(set(uses.values())) == 1


def test_the_hybrid_cube_has_three_rings_and_their_reverses_with_double_links_used_twice() -> None:
    """Each GPU of a DGX-1 has 6 NVLinks, and a ring with its reverse takes two of them: 3 by hand, not more."""
    network = mesh_host(n_gpus=8, layout="cube")
    rings = rings_of_links(network, _gpus(network))
    rate = {(a, b): r for a, b, r in zip(network.src, network.dst, network.bandwidth, strict=True) if max(a, b) < 8}
    assert len(rings) == 6
    assert all(sorted(ring) == [*range(8)] for ring in rings)
    assert all(count <= round(rate[pair] / min(rate.values())) for pair, count in _uses(rings).items())


def test_there_are_no_rings_over_links_where_gpus_meet_in_a_switch_or_in_pairs() -> None:
    assert _rings(nvswitch_host()) == ()
    assert _rings(mesh_host(layout="pairs")) == ()


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter", "broadcast"])
def test_a_large_collective_on_four_joined_gpus_loads_each_link_with_a_third(operation: str) -> None:
    """Alps measured 338 GB/s of bus bandwidth in one node; over one order of the ring it would be a link's 120."""
    size = 2**30
    result = cs.predict(f"nccl_{operation}:algorithm=ring,protocol=simple", "gh200-quad", size)
    leaves = {"all_reduce": 1.5, "all_gather": 0.75, "reduce_scatter": 0.75, "broadcast": 1.0}[operation] * size
    assert max(result.link_bytes) == pytest.approx(leaves / 3, rel=0.02)
