import itertools

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import find_link
from commsim.core.pinned_routes import PinnedRoutes
from commsim.core.placement import Placement, joined
from topologies.leaf_spine import leaf_spine
from topologies.ring import ring

NETWORK = leaf_spine(2, 2, 2)  # h0 and h1 at leaf0, h2 and h3 at leaf1, two spines


def over(*names, ends=(0, 1, 0)):
    nodes = [f"{a}:{b}" for a, b in itertools.pairwise(names)]
    return (*ends, [find_link(NETWORK, name) for name in nodes])


def test_routes_are_equal_whatever_the_order_in_which_they_are_given():
    rows = [over("h0", "leaf0", "spine1", "leaf1", "h2"), over("h2", "leaf1", "spine0", "leaf0", "h0", ends=(1, 0, 3))]
    assert PinnedRoutes.of(rows) == PinnedRoutes.of(rows[::-1])
    assert Placement([0, 2], PinnedRoutes.of(rows)) != Placement([0, 2])


def test_a_connection_is_found_by_sender_receiver_and_channel():
    routes = PinnedRoutes.of([(0, 1, 0, []), (0, 1, 7, []), (2, 1, 0, [])])
    ends = np.array([[0, 1], [0, 1], [1, 0], [2, 1], [0, 1]], np.int32)
    assert routes.rows_of(ends, np.array([7, 0, 0, 0, 1])).tolist() == [1, 0, -1, 2, -1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (over("h0", "leaf0", "spine0", "leaf1", "h3"), "channel 0: its pinned route ends at h3, the receiver is on h2"),
        (over("h1", "leaf0", "spine0", "leaf1", "h2"), "takes h1:leaf0 from h0, where that link does not begin"),
        ((0, 1, 0, [0, 10]), "takes leaf1:h2 from leaf0, where that link does not begin"),
        (over("h0", "leaf0", "h1", "leaf0", "spine0", "leaf1", "h2"), "passes through h1, which does not forward"),
        ((0, 1, 0, []), "ends at h0, the receiver is on h2"),
        ((0, 1, 0, [99]), "takes link 99, .* has links 0..15"),
        (over("h0", "leaf0", ends=(0, 5, 0)), "names 5, which is not one of 2 participants"),
        (over("h0", "leaf0", ends=(0, 1, -1)), "names -1, which is not a channel"),
    ],
)  # fmt: skip
def test_a_route_that_the_network_does_not_have_is_refused(row, message):
    with pytest.raises(InputError, match=message):
        Placement([0, 2], PinnedRoutes.of([row])).check(NETWORK, 2)


def test_hosts_that_forward_may_be_passed():
    network = ring(4)
    around = [find_link(network, name) for name in ("h0:h3", "h3:h2", "h2:h1")]
    Placement([0, 1, 2, 3], PinnedRoutes.of([(0, 1, 0, around)])).check(network, 4)


def test_one_connection_has_one_route():
    with pytest.raises(InputError, match="0 -> 1, channel 2 has two pinned routes"):
        PinnedRoutes.of([(0, 1, 2, [0]), (0, 1, 2, [1])])


def test_placements_of_several_jobs_are_joined_with_their_routes():
    row = over("h1", "leaf0", "spine1", "leaf1", "h3")
    together = joined([Placement([0, 2]), Placement([1, 3], PinnedRoutes.of([row]))])
    assert together.nodes.tolist() == [0, 2, 1, 3]
    assert together.routes == PinnedRoutes.of([(2, 3, 0, row[3])])
    together.check(NETWORK, 4)
    assert joined([Placement([0, 2]), Placement([1, 3])]).routes is None
