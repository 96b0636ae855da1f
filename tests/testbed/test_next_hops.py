"""Forwarding tables: that a message which follows them arrives, by the paths that predictions take."""

import dataclasses

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import SEATS
from commsim.routing.routing import find_routes
from commsim.run.inputs import load_network
from commsim.testbed.layout import next_hops

FAT_TREE, TORUS = "fat_tree:k=4", "torus:dims=3x4"
DRAGONFLY, BCUBE = "dragonfly:p=2,a=2,h=1", "bcube:n=3,k=1"


def followed(network, hops, a, b):
    """Return all paths that the tables allow; a loop would be longer than there are nodes."""
    paths, open_ones = [], [(a, ())]
    while open_ones:
        node, path = open_ones.pop()
        assert len(path) < network.n_nodes
        if node == b:
            paths.append(path)
        else:
            open_ones += [(int(network.dst[link]), (*path, link)) for link in hops[node, b]]
    return paths


def seats_of(network):
    return np.flatnonzero(np.isin(network.kind, SEATS)).tolist()


@pytest.mark.parametrize(
    ("spec", "routing"),
    [(FAT_TREE, "dmodk"), (FAT_TREE, "shortest"), (TORUS, "shortest"), (BCUBE, "shortest"), (DRAGONFLY, "shortest")],
)
def test_the_tables_lead_to_everybody_by_the_paths_of_the_predictions(spec, routing):
    network = load_network(spec)
    hops = next_hops(network, routing)
    for a in seats_of(network):
        for b in seats_of(network):
            if a != b:
                expected = tuple(find_routes(network, [a], [b], routing=routing).link.tolist())
                assert followed(network, hops, a, b) == [expected]


@pytest.mark.parametrize("routing", ["ecmp", "ecmp_polarised", "spray"])
def test_where_hosts_are_hashed_over_equal_paths_all_of_them_are_in_the_tables(routing):
    network = load_network(FAT_TREE)
    hops = next_hops(network, routing)
    far = followed(network, hops, 0, 15)
    assert len(far) == 4
    assert {len(path) for path in far} == {6}
    assert len(followed(network, hops, 0, 1)) == 1
    assert max(len(links) for links in hops.values()) == 2


@pytest.mark.parametrize(("spec", "routing"), [(TORUS, "dimension_order"), (DRAGONFLY, "minimal")])
def test_paths_of_grids_and_dragonflies_arrive_and_are_no_longer_than_predicted(spec, routing):
    network = load_network(spec)
    hops = next_hops(network, routing)
    for a in seats_of(network):
        for b in seats_of(network):
            if a != b:
                length = len(find_routes(network, [a], [b], routing=routing).link)
                assert {len(path) for path in followed(network, hops, a, b)} == {length}


def test_switches_are_reached_and_reach_everybody():
    network = load_network("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2")
    hops = next_hops(network, "shortest")
    for seat in seats_of(network):
        for switch in set(range(network.n_nodes)) - set(seats_of(network)):
            assert len(followed(network, hops, seat, switch)) == 1
            assert len(followed(network, hops, switch, seat)) == 1


def test_a_detour_that_depends_on_where_a_message_has_been_is_refused():
    network = dataclasses.replace(load_network(DRAGONFLY), routing="valiant")
    with pytest.raises(InputError, match="routing valiant cannot be built; minimal can"):
        next_hops(network, network.routing)
