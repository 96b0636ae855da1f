import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.network_queries import locality_levels, racks
from commsim.run.inputs import load_network
from topologies.fat_tree import fat_tree
from topologies.ring import ring


def names_and_counts(network):
    return [(level.name, int(level.group.max()) + 1) for level in locality_levels(network)]


@settings(max_examples=20)
@given(half=st.integers(1, 4))
def test_a_fat_tree_has_racks_and_pods(half):
    network = fat_tree(2 * half)
    levels = locality_levels(network)
    host = np.arange(len(network.endpoints))
    assert levels[0].group.tolist() == host.tolist()
    assert levels[1].group.tolist() == (host // half).tolist()
    assert levels[2].group.tolist() == (host // half**2).tolist()
    assert [level.name for level in levels] == ["machine", "rack", "pod", "tier 3"]


def test_each_group_lies_inside_one_group_of_the_next_level():
    for text in ("dgx-a100@three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=16,switches_per_pod=2,n_cores=2",
                 "rail_optimized:n_hosts=6,hosts_per_group=2", "fat_tree:k=4"):  # fmt: skip
        levels = locality_levels(load_network(text))
        for inner, outer in itertools.pairwise(levels):
            pairs = set(zip(inner.group.tolist(), outer.group.tolist(), strict=True))
            assert len(pairs) == inner.group.max() + 1


def test_machines_of_one_set_of_rails_are_one_rack():
    network = load_network("rail_optimized:n_hosts=6,hosts_per_group=2")
    assert names_and_counts(network) == [("machine", 6), ("rack", 3), ("pod", 1)]


def test_hosts_without_a_switch_are_near_nothing():
    assert names_and_counts(ring(5)) == [("machine", 5)]


def test_a_switch_inside_a_machine_is_no_rack():
    assert names_and_counts(load_network("dgx-h100")) == [("machine", 1)]
    assert racks(load_network("dgx-h100")).tolist() == [0] * 8


def test_a_machine_on_several_racks_is_in_that_of_its_first_link():
    network = load_network("dgx-h100@fat_tree:k=8")  # 4 hosts per edge switch: a machine takes two of them
    assert racks(network).reshape(-1, 8).tolist() == [[m] * 8 for m in range(16)]
