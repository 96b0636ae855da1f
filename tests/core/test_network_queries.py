import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from racks_of import racks

from commsim.core.errors import InputError
from commsim.core.faults.failures import fail_links
from commsim.core.names.nodes_and_links import find_link, find_node, link_names
from commsim.core.network import HOST, SWITCH, Network
from commsim.core.network_queries import fabric_cables, locality_levels, partners, tiers
from commsim.prediction.inputs import load_network
from commsim.routing.network_metrics import measure
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring
from topologies.torus import torus


@st.composite
def networks(draw):
    """Any links between a few nodes, many of them parallel, whose names hold arrows and number signs."""
    names = draw(st.lists(st.text("a->#1", min_size=1, max_size=4), min_size=2, max_size=5, unique=True))
    n = len(names)
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
    ends = [(a, b) for a, b in ends if a != b]
    kind = [HOST, *draw(st.lists(st.sampled_from([HOST, SWITCH]), min_size=n - 1, max_size=n - 1))]
    return Network("any", names, kind, [a for a, _ in ends], [b for _, b in ends], 1.0, 0.0)


@given(network=networks())
def test_a_partner_leads_back_and_is_mutual(network):
    partner = partners(network)
    number = {}
    nth = [number.setdefault((a, b), []).append(i) or len(number[a, b]) - 1
           for i, (a, b) in enumerate(zip(network.src.tolist(), network.dst.tolist(), strict=True))]  # fmt: skip
    for i, j in enumerate(partner):
        back = number.get((int(network.dst[i]), int(network.src[i])), [])
        assert j == (back[nth[i]] if nth[i] < len(back) else i)
    assert np.array_equal(partner[partner], np.arange(network.n_links))


@given(network=networks())
def test_all_names_together_are_those_one_by_one(network):
    assert link_names(network) == [network.link_name(i) for i in range(network.n_links)]


def test_a_link_is_found_by_its_name():
    network = leaf_spine(2, 2, 3, uplinks_per_spine=3)
    for i, name in enumerate(link_names(network)):
        assert find_link(network, name) == find_link(network, name.replace(":", "->")) == i
    arrows = Network("x", ("a->b", "c", "d#1"), [0, 0, 0], [0, 1, 0], [1, 2, 2], 1.0, 0.0)
    assert [find_link(arrows, name) for name in link_names(arrows)] == [0, 1, 2]
    colons = Network("x", ("a:b", "c", "c:d"), [0, 0, 0], [0, 1, 0], [1, 2, 2], 1.0, 0.0)
    assert [find_link(colons, name) for name in link_names(colons)] == [0, 1, 2]


def test_the_fabric_is_what_forwards():
    network = leaf_spine(3, 2, 4)
    names = [network.link_name(i) for i in fabric_cables(network)]
    assert sorted(names) == sorted(f"leaf{i}:spine{j}" for i in range(3) for j in range(2))
    assert len(fabric_cables(torus((3, 3)))) == 18


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("leaf0:spine9", "has no node 'spine9'; did you mean spine"),
        ("lef0:spine1", "has no node 'lef0'; did you mean leaf0"),
        ("leaf0:leaf1", "has no link 'leaf0:leaf1'; did you mean leaf0:"),
        ("leaf0:spine1#2", "has no link 'leaf0:spine1#2'; did you mean leaf0:spine1"),
        ("leaf0", "is called node:node, as in h0:leaf0, got 'leaf0'"),
        ("", "is called node:node"),
        (":", "has no node ''; nodes are h0, h1, h2 and so on"),
        ("zzz->h0", "has no node 'zzz'; nodes are h0, h1, h2 and so on"),
        ("leaf0:spine1#99999999999999999999999", "has no link 'leaf0:spine1#9"),
    ],
)
def test_what_there_is_not_is_refused_with_what_looks_like_it(name, message):
    with pytest.raises(InputError, match=message):
        find_link(leaf_spine(2, 2, 2), name)


def test_nodes_are_found_by_name():
    assert find_node(leaf_spine(2, 2, 2), "spine1") == 7
    with pytest.raises(InputError, match="has no node 'h9'; did you mean h"):
        find_node(leaf_spine(2, 2, 2), "h9")


def test_what_no_host_reaches_is_in_no_tier():
    network = Network("x", tuple("abst"), [0, 0, 1, 1], [0, 2, 3], [2, 1, 2], 1.0, 0.0)
    assert tiers(network).tolist() == [0, 0, 1, -1]
    assert measure(network).tier_sizes == (2, 1)


def names_and_counts(network):
    return [(level.name, int(level.group.max()) + 1) for level in locality_levels(network)]


@settings(max_examples=settings().max_examples * 2 // 3)
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


def test_racks_whose_first_uplink_failed_stay_in_their_pod():
    whole = leaf_spine(4, 2, 4)
    broken = fail_links(whole, ["leaf0:spine0"])
    assert [np.unique(level.group).size for level in locality_levels(broken)] == [16, 4, 1]
    assert [np.unique(level.group).size for level in locality_levels(whole)] == [16, 4, 1]
