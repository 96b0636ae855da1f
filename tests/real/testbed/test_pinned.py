"""Pinned routes in a testbed: which router sends what over which cable, and that it does so for real."""

import itertools
import os

import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import find_link
from commsim.real.testbed.layout import lay_out
from commsim.real.testbed.own_testbed import temporary_testbed
from commsim.real.testbed.pinned import turns_of
from commsim.real.testbed.runs import run_cells

CLOS = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=200Mbps,latency=0s"
NETWORK = cs.load_network(CLOS)


def links(*names):
    return [find_link(NETWORK, f"{a}->{b}") for a, b in itertools.pairwise(names)]


def over(spine, src, dst, a, b, channel=0):
    return (src, dst, channel, links(a, f"leaf{int(a[1]) // 2}", f"spine{spine}", f"leaf{int(b[1]) // 2}", b))


def test_every_node_on_the_way_knows_where_messages_between_two_hosts_go():
    placement = cs.Placement([0, 2], cs.PinnedRoutes.of([over(1, 0, 1, "h0", "h2")]))
    h0, h2, leaf0, leaf1, spine1 = (NETWORK.nodes.index(name) for name in ("h0", "h2", "leaf0", "leaf1", "spine1"))
    found = turns_of(lay_out(NETWORK), placement)
    assert [key[0] for key in found] == [h0, leaf0, spine1, leaf1]
    assert {key[1:] for key in found} == {(h0, h2)}
    assert list(found.values()) == over(1, 0, 1, "h0", "h2")[3]


def test_two_channels_may_take_one_route_and_not_two():
    layout = lay_out(NETWORK)
    same = [over(1, 0, 1, "h0", "h2", channel) for channel in (0, 1)]
    assert turns_of(layout, cs.Placement([0, 2], cs.PinnedRoutes.of(same)))
    apart = [over(channel, 0, 1, "h0", "h2", channel) for channel in (0, 1)]
    with pytest.raises(InputError, match="see hosts, not channels, and messages from h0 to h2 are pinned to several"):
        turns_of(layout, cs.Placement([0, 2], cs.PinnedRoutes.of(apart)))


def test_a_route_that_comes_to_a_node_twice_is_refused():
    around = links("h0", "leaf0", "spine0", "leaf0", "spine1", "leaf1", "h2")
    with pytest.raises(InputError, match="the route from h0 to h2 comes to a node twice"):
        turns_of(lay_out(NETWORK), cs.Placement([0, 2], cs.PinnedRoutes.of([(0, 1, 0, around)])))


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.needs_kernel("testbed")
@pytest.mark.sample(1)
@pytest.mark.parametrize("spine", [0, 1])
def test_for_real_the_bytes_go_over_the_pinned_spine(tmp_path, spine):
    ring = cs.COLLECTIVES["ring_all_reduce"].build(4)
    hosts = ("h0", "h2", "h1", "h3")  # so that every hop crosses the spines
    routes = [over(spine, i, (i + 1) % 4, hosts[i], hosts[(i + 1) % 4]) for i in range(4)]
    placement = cs.Placement([0, 2, 1, 3], cs.PinnedRoutes.of(routes))
    cs.save(ring, tmp_path / "ring.npz", network=NETWORK, placement=placement)
    with temporary_testbed(NETWORK) as (place, layout):
        assert place.name.endswith(str(os.getpid()))
        ((_, cell),), _ = run_cells(
            place, layout, [str(tmp_path / "ring.npz")], [1 << 20], calibrated=False, iterations=2, tries=1
        )
    assert cell.result.counters["wrong"] == 0
    assert cell.bytes_error <= 0.01
    for name, busy in (("spine0", spine == 0), ("spine1", spine == 1)):
        carried = cell.result.link_bytes[find_link(NETWORK, f"leaf0->{name}")]
        # Both flows of a leaf send 1.5 MiB; acknowledgements of what comes take either spine.
        assert (carried > 2.9 * 2**20) if busy else (carried < 0.3 * 2**20)
