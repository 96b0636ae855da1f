import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network
from commsim.core.network_queries import fabric_cables, find_link, find_node, link_names, partners, tiers
from commsim.routing.network_metrics import measure
from topologies.leaf_spine import leaf_spine
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


@settings(max_examples=200)
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


@settings(max_examples=200)
@given(network=networks())
def test_all_names_together_are_those_one_by_one(network):
    assert link_names(network) == [network.link_name(i) for i in range(network.n_links)]


def test_a_link_is_found_by_its_name():
    network = leaf_spine(2, 2, 3, uplinks_per_spine=3)
    for i, name in enumerate(link_names(network)):
        assert find_link(network, name) == i
    arrows = Network("x", ("a->b", "c", "d#1"), [0, 0, 0], [0, 1, 0], [1, 2, 2], 1.0, 0.0)
    assert [find_link(arrows, name) for name in link_names(arrows)] == [0, 1, 2]


def test_the_fabric_is_what_forwards():
    network = leaf_spine(3, 2, 4)
    names = [network.link_name(i) for i in fabric_cables(network)]
    assert sorted(names) == sorted(f"leaf{i}->spine{j}" for i in range(3) for j in range(2))
    assert len(fabric_cables(torus((3, 3)))) == 18


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("leaf0->spine9", "has no node 'spine9'; did you mean spine"),
        ("lef0->spine1", "has no node 'lef0'; did you mean leaf0"),
        ("leaf0->leaf1", "has no link 'leaf0->leaf1'; did you mean leaf0->"),
        ("leaf0->spine1#2", "has no link 'leaf0->spine1#2'; did you mean leaf0->spine1"),
        ("leaf0", "is called node->node, as in h0->leaf0, got 'leaf0'"),
        ("", "is called node->node"),
        ("->", "has no node ''; nodes are h0, h1, h2 and so on"),
        ("zzz->h0", "has no node 'zzz'; nodes are h0, h1, h2 and so on"),
        ("leaf0->spine1#99999999999999999999999", "has no link 'leaf0->spine1#9"),
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
