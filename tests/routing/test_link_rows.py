import numpy as np
import pytest

from commsim.core.network import Network, both_ways
from commsim.prediction.inputs import load_network
from commsim.routing import link_rows, walk
from commsim.routing.link_rows import links_in_rows, shared_searches
from commsim.routing.walk import forwarding_rows
from topologies.dual_tor import dual_tor
from topologies.fat_tree import fat_tree
from topologies.torus import torus


def searches(network, dst):
    return shared_searches(network, links_in_rows(network.dst, network.src, network.n_nodes), np.asarray(dst))


def test_links_are_grouped_in_their_order():
    first, link, end = links_in_rows(np.array([2, 0, 2], np.int32), np.array([5, 6, 7], np.int32), 3)
    assert (first.tolist(), link.tolist(), end.tolist()) == ([0, 1, 1, 3], [1, 0, 2], [6, 5, 7])


def test_links_into_hosts_are_left_out_of_the_middle_of_paths():
    network = fat_tree(4)
    first, link, end = forwarding_rows(network, links_in_rows(network.src, network.dst, network.n_nodes))
    order = np.argsort(network.src, kind="stable")
    assert np.array_equal(link, order[network.forwards[network.dst[order]]])
    assert network.forwards[end].all()
    assert len(link) == network.n_links - 16
    assert np.array_equal(network.src[link], np.repeat(np.arange(network.n_nodes), np.diff(first)))


@pytest.mark.parametrize("spec", ["rail_optimized:n_hosts=4", "fat_tree:k=4"])
@pytest.mark.parametrize("in_place", [False, True])
def test_one_pass_over_many_links_leaves_the_same_rows(spec, in_place, monkeypatch):
    network = load_network(spec)
    rows = links_in_rows(network.src, network.dst, network.n_nodes)
    slow = forwarding_rows(network, rows)
    monkeypatch.setattr(walk, "MANY", 0)
    given = tuple(column.copy() for column in rows)
    for column, expected in zip(forwarding_rows(network, given, in_place=in_place), slow, strict=True):
        assert np.array_equal(column, expected)
    assert in_place or all(map(np.array_equal, given, rows))


def test_hosts_of_one_edge_switch_share_a_search():
    network = fat_tree(4)
    number = searches(network, np.arange(16))
    assert np.array_equal(number[0::2], number[1::2])
    assert len(set(number.tolist())) == 8


def test_hosts_on_the_same_two_switches_share_a_search():
    assert len(set(searches(dual_tor(3, 2, 4), np.arange(12)).tolist())) == 3


def test_what_forwards_or_stands_elsewhere_has_a_search_of_its_own():
    assert len(set(searches(torus((3, 3)), np.arange(9)).tolist())) == 9
    src, dst = both_ways([0, 1], [2, 2])
    fields = {"nodes": tuple("abs"), "kind": [0, 0, 1], "src": src, "dst": dst, "bandwidth": 1.0, "latency": 0.0}
    assert len(set(searches(Network("x", **fields), [0, 1]))) == 1
    assert len(set(searches(Network("x", **fields, metric=[1, 1, 1, 2]), [0, 1]))) == 2
    assert len(set(searches(Network("x", **fields, coordinates=[[0], [1], [0]]), [0, 1]))) == 2


def test_numbers_come_in_the_order_of_the_destinations():
    assert searches(torus((3, 3)), [4, 0, 4, 8]).tolist() == [1, 0, 1, 2]


def test_rows_of_many_links_are_counted_and_equal_to_sorted_ones(monkeypatch):
    network = fat_tree(4)
    rows = []
    for many in (link_rows.MANY, 0):
        monkeypatch.setattr(link_rows, "MANY", many)
        rows.append(links_in_rows(network.src, network.dst, network.n_nodes))
    for sorted_, counted in zip(*rows, strict=True):
        np.testing.assert_array_equal(sorted_, counted)
        assert sorted_.dtype == counted.dtype
