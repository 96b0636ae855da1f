"""Ranks in an order in which the ring leaves each rack once."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.placement.free_gpus import crossings, order_ranks
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(3, 2, 4)


def test_ten_pods_on_racks_of_four_are_numbered_rack_by_rack() -> None:
    mixed = [f"h{i}" for i in (8, 0, 4, 1, 5, 9, 2, 6, 3, 7)]
    assert order_ranks(NETWORK, mixed) == tuple(f"h{i}" for i in range(10))


@given(st.lists(st.sampled_from(NETWORK.nodes[:12]), min_size=2, max_size=6))
@settings(deadline=None)
def test_no_order_crosses_racks_less_often(nodes: list[str]) -> None:
    least = min(crossings(NETWORK, order) for order in itertools.permutations(nodes))
    assert crossings(NETWORK, order_ranks(NETWORK, nodes)) == least


@pytest.mark.parametrize("level", [0, 1, 2])
def test_hosts_racks_and_pods_are_kept_together(level: int) -> None:
    network = fat_tree(4)
    nodes = [network.nodes[i] for i in (0, 15, 1, 8, 9, 2, 4, 0, 12, 3)]
    groups = {0: 9, 1: 6, 2: 4}
    assert crossings(network, order_ranks(network, nodes), level) == groups[level]


def test_a_job_in_one_rack_crosses_nothing() -> None:
    assert crossings(NETWORK, ("h0", "h1", "h2")) == 0
