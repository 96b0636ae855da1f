"""Rings over hosts, and the links that they pass."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.placement.cluster import Cluster
from commsim.placement.link_use import link_use, link_uses, ring_edges
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(2, 2, 2)
CLUSTER = Cluster(NETWORK, np.where(NETWORK.kind == 0, 4, 0))
HOSTS = st.sampled_from(NETWORK.nodes[:4])


def used(use: np.ndarray) -> dict[str, float]:
    return {NETWORK.link_name(int(i)): float(use[i]) for i in np.flatnonzero(use)}


@pytest.mark.parametrize(
    ("placement", "edges"),
    [
        ("", []),
        ("aaaa", []),
        ("aabb", ["ab", "ba"]),
        ("abc", ["ab", "bc", "ca"]),
        ("aabbaa", ["ab", "ba"]),
        ("abac", ["ab", "ba", "ac", "ca"]),
    ],
)
def test_consecutive_ranks_of_one_host_are_one_stop_of_the_ring(placement: str, edges: list[str]) -> None:
    assert ring_edges(tuple(placement)) == [tuple(edge) for edge in edges]


@given(st.lists(HOSTS, max_size=12))
def test_every_stop_sends_once_and_receives_once(placement: list[str]) -> None:
    edges = ring_edges(placement)
    assert sorted(a for a, _ in edges) == sorted(b for _, b in edges)
    assert all(a != b for a, b in edges)
    assert {a for a, _ in edges} == (set(placement) if len(set(placement)) > 1 else set())


def test_in_a_rack_a_ring_uses_the_hosts_own_links_once() -> None:
    assert used(link_use(CLUSTER, ("h0", "h0", "h1"))) == dict.fromkeys(
        ("h0:leaf0", "h1:leaf0", "leaf0:h0", "leaf0:h1"), 1.0
    )


def test_a_ring_that_jumps_between_racks_uses_the_uplinks_as_often_as_it_crosses() -> None:
    up = np.isin(NETWORK.src, [4, 5]) & np.isin(NETWORK.dst, [6, 7])
    assert link_use(CLUSTER, ("h0", "h1", "h2", "h3"))[up].sum() == 2
    assert link_use(CLUSTER, ("h0", "h2", "h1", "h3"))[up].sum() == 4


def test_spraying_spreads_the_rate_over_the_spines() -> None:
    sprayed = Cluster(dataclasses.replace(NETWORK, routing="spray"), CLUSTER.gpus)
    found = used(link_use(sprayed, ("h0", "h2")))
    assert found["leaf0:spine0"] == found["leaf0:spine1"] == 0.5
    assert found["h0:leaf0"] == 1.0


@given(st.lists(st.lists(HOSTS, max_size=8), min_size=1, max_size=4), st.integers(0, 5))
def test_many_placements_together_use_what_each_uses_alone(placements: list[list[str]], seed: int) -> None:
    together = link_uses(CLUSTER, placements, seed)
    assert all(np.array_equal(row, link_use(CLUSTER, one, seed)) for row, one in zip(together, placements, strict=True))


def test_a_node_that_does_not_exist_is_named() -> None:
    with pytest.raises(InputError, match="placed on 'h7', which is not a node of"):
        link_use(CLUSTER, ("h0", "h7"))
