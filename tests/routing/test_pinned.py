import itertools

import numpy as np
import pytest

from commsim.core.names.nodes_and_links import find_link
from commsim.core.network import Network
from commsim.core.pinned_routes import PinnedRoutes
from commsim.core.placement import Placement
from commsim.routing.pinned import find_connection_routes, turned_round
from commsim.routing.routing import find_routes
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(2, 4, 2)
ENDS = np.array([[0, 2], [1, 3], [2, 0], [0, 2]], np.int32)
CHANNEL = np.array([0, 0, 0, 1])


def links(*names):
    return [find_link(NETWORK, f"{a}->{b}") for a, b in itertools.pairwise(names)]


def rows(routes):
    return [part.tolist() for part in np.split(routes.link, routes.first[1:-1])]


def test_pinned_connections_take_their_routes_and_the_others_what_the_routing_says():
    pinned = links("h0", "leaf0", "spine2", "leaf1", "h2")
    placement = Placement([0, 1, 2, 3], PinnedRoutes.of([(0, 2, 1, pinned)]))
    found = find_connection_routes(NETWORK, placement, ENDS, CHANNEL, seed=3)
    free = find_routes(NETWORK, ENDS[:, 0], ENDS[:, 1], CHANNEL, seed=3)
    assert rows(found) == [*rows(free)[:3], pinned]
    np.testing.assert_allclose(found.latency, NETWORK.latency[pinned].sum())
    assert found.share.tolist() == [1.0] * 16


def test_acknowledgements_take_the_pinned_route_back():
    pinned = links("h0", "leaf0", "spine3", "leaf1", "h2")
    placement = Placement([0, 1, 2, 3], PinnedRoutes.of([(0, 2, 0, pinned)]))
    back = find_connection_routes(NETWORK, turned_round(NETWORK, placement), ENDS[:1, ::-1], CHANNEL[:1])
    assert rows(back) == [links("h2", "leaf1", "spine3", "leaf0", "h0")]


def test_a_route_over_a_link_without_reverse_goes_back_as_the_routing_says():
    around = Network("around", "abs", [0, 0, 1], [0, 1, 0, 2], [1, 0, 2, 1], 1e9, 0.0)
    placement = Placement([0, 1], PinnedRoutes.of([(0, 1, 0, [2, 3]), (0, 1, 1, [0])]))
    back = turned_round(around, placement)
    assert back.routes == PinnedRoutes.of([(1, 0, 1, [1])])


@pytest.mark.parametrize("routing", ["ecmp", "shortest", "dmodk"])
def test_without_pins_routes_are_the_routings(routing):
    found = find_connection_routes(NETWORK, Placement([0, 1, 2, 3]), ENDS, CHANNEL, routing=routing, seed=5)
    free = find_routes(NETWORK, ENDS[:, 0], ENDS[:, 1], CHANNEL, routing=routing, seed=5)
    assert rows(found) == rows(free)
