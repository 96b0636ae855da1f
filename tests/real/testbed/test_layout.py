"""What is to be built, before anything is."""

import dataclasses
from ipaddress import IPv4Address

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.network import HOST, SEATS, SWITCH, Network
from commsim.prediction.inputs import load_network
from commsim.real.testbed import cable_shape as shaping
from commsim.real.testbed.build import receive_window
from commsim.real.testbed.cable_shape import BURST, FRAME, QUEUE, shape_of
from commsim.real.testbed.forwarding import next_hops
from commsim.real.testbed.layout import MAX_NODES, lay_out
from commsim.routing.routing import find_routes

BRIDGED = ["star:n_hosts=4", "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2"]
ROUTED = ["leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2", "fat_tree:k=4", "torus:dims=3x3", "bcube:n=2,k=1",
          "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,uplinks_per_spine=2", "ring:n_hosts=4"]  # fmt: skip


@pytest.mark.parametrize("spec", BRIDGED)
def test_switches_are_bridges_where_there_is_one_path_through_them(spec):
    layout = lay_out(load_network(spec))
    assert layout.bridged
    assert all(port.address is None and port.peer is None for port in layout.ports)


@pytest.mark.parametrize("spec", ROUTED)
def test_switches_are_routers_where_there_are_several_paths_or_hosts_forward(spec):
    layout = lay_out(load_network(spec))
    assert not layout.bridged
    for a, b in layout.cables:
        assert (a.address, a.peer) == (b.peer, b.address)
        assert int(a.address) % 2 == 0
        assert int(b.address) == int(a.address) + 1


def test_two_stars_that_nothing_joins_are_bridges():
    one = load_network("star:n_hosts=2")
    names = [f"{side}{name}" for side in "ab" for name in one.nodes]
    n = one.n_nodes
    both = Network("two", names, np.tile(one.kind, 2), np.r_[one.src, one.src + n], np.r_[one.dst, one.dst + n], 1e6, 0)
    assert lay_out(both).bridged


def test_a_host_with_two_cables_is_not_bridged_though_there_is_one_path():
    kind = [HOST, SWITCH, HOST, SWITCH, HOST]
    src, dst = np.array([0, 1, 1, 2, 2, 3, 3, 4]), np.array([1, 0, 2, 1, 3, 2, 4, 3])
    layout = lay_out(Network("chain", list("abcde"), kind, src, dst, 1e6, 0))
    assert not layout.bridged
    assert [layout.device(node) for node in range(5)] == ["p0", "own0", "own0", "own0", "p0"]


@pytest.mark.parametrize("spec", [*BRIDGED, *ROUTED])
def test_every_link_leaves_at_one_port_and_names_and_addresses_are_nobody_elses(spec):
    network = load_network(spec)
    layout = lay_out(network)
    assert [port.link for port in layout.ports] == list(range(network.n_links))
    assert [port.node for port in layout.ports] == network.src.tolist()
    assert len({(port.node, port.device) for port in layout.ports}) == network.n_links
    used = [layout.address(node) for node in range(network.n_nodes)]
    used += [port.address for port in layout.ports if port.address is not None]
    assert len(set(used)) == len(used)
    for a, b in layout.cables:
        assert (network.src[a.link], network.dst[a.link]) == (network.dst[b.link], network.src[b.link])
    for node in range(network.n_nodes):
        devices = [port.device for port in layout.ports_of(node)]
        assert sorted(devices) == [f"p{i}" for i in range(len(devices))]


def test_a_seat_with_one_port_is_reached_there_and_a_bridge_has_an_address_too():
    layout = lay_out(load_network("star:n_hosts=3"))
    assert layout.seats == (0, 1, 2)
    assert [layout.device(node) for node in range(4)] == ["p0", "p0", "p0", "br0"]
    assert layout.address(0) == IPv4Address("10.77.0.1")
    assert layout.address(3) == IPv4Address("10.77.0.4")


def test_parallel_cables_stay_apart():
    network = load_network("leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=1,uplinks_per_spine=3")
    leaf = network.nodes.index("leaf0")
    cables = [(a, b) for a, b in lay_out(network).cables if leaf in (a.node, b.node)]
    assert len(cables) == 4
    assert len({a.link for a, _ in cables} | {b.link for _, b in cables}) == 8


def test_the_receive_window_is_a_time_of_the_slowest_link_and_never_below_what_tcp_needs():
    fast = load_network("star:n_hosts=4,bandwidth=800Mbps")
    assert receive_window(lay_out(fast)) == 1_050_000  # 10.5 ms of 100 MB/s
    slow = np.where(fast.src == fast.hosts[-1], 0.5, 1.0) * fast.bandwidth
    assert receive_window(lay_out(dataclasses.replace(fast, bandwidth=slow))) == 525_000
    assert receive_window(lay_out(load_network("star:n_hosts=4,bandwidth=10Mbps"))) == 131_072


def test_too_large_a_network_is_refused():
    with pytest.raises(InputError, match=f"at most {MAX_NODES} nodes, star.* has 71"):
        lay_out(load_network("star:n_hosts=70"))


def test_a_routing_for_other_networks_is_refused_even_where_there_is_one_path():
    with pytest.raises(InputError, match="dimension_order routing needs a grid"):
        lay_out(dataclasses.replace(load_network("star:n_hosts=2"), routing="dimension_order"))


def test_a_link_without_its_way_back_is_refused_by_name():
    star = load_network("star:n_hosts=2")
    keep = np.arange(star.n_links) != star.n_links - 1
    fields = {name: getattr(star, name)[keep] for name in ("src", "dst", "bandwidth", "latency", "buffer", "loss",
                                                           "metric")}  # fmt: skip
    with pytest.raises(InputError, match=r"h1:.* has no way back"):
        lay_out(dataclasses.replace(star, **fields))


# Rates, buffers and losses of links as the kernel's queues have them.
@pytest.fixture
def kernel(monkeypatch):
    """A kernel of which the test says what it can do."""

    def has(*, netem, nftables=True):
        monkeypatch.setattr(shaping, "has_netem", lambda: netem)
        monkeypatch.setattr(shaping, "has_nftables", lambda: nftables)

    return has


def star(**fields):
    return dataclasses.replace(load_network("star:n_hosts=2,bandwidth=200Mbps,latency=0s"), **fields)


def test_a_link_is_a_token_bucket_of_two_frames_at_its_rate(kernel):
    kernel(netem=False)
    shape = shape_of(star(), 0)
    ((kind, options),) = shape.queues
    assert kind == "tbf"
    assert options["rate"] == 25_000_000
    assert options["burst"] == BURST == 2 * 9014
    assert options["limit"] == QUEUE
    assert shape.loss == 0
    assert not shape.warnings


@pytest.mark.parametrize(("buffer", "limit"), [(100_000.0, 100_000), (1.0, BURST), (1e12, QUEUE), (np.inf, QUEUE)])
def test_the_queue_is_as_long_as_the_buffer_but_never_shorter_than_what_may_pass_at_once(kernel, buffer, limit):
    kernel(netem=False)
    assert shape_of(star(buffer=buffer), 0).queues[0][1]["limit"] == limit


def test_each_link_has_its_own_rate(kernel):
    kernel(netem=False)
    rates = [1e6, 2e6, 3e6, 4e6]
    found = [shape_of(star(bandwidth=np.array(rates)), link).queues[0][1]["rate"] for link in range(4)]
    assert found == rates


@pytest.mark.parametrize("rate", [9_999.0, 4.1e9])
def test_a_rate_that_no_bucket_has_is_refused_with_the_link(kernel, rate):
    kernel(netem=False)
    with pytest.raises(InputError, match=r"10000 to 4e\+09 bytes/s, got .* on h0:.*; scale the network down"):
        shape_of(star(bandwidth=rate), 0)


def test_the_ends_of_the_range_are_taken(kernel):
    kernel(netem=False)
    assert shape_of(star(bandwidth=10_000.0), 0).queues
    assert shape_of(star(bandwidth=4e9), 0).queues


def test_netem_delays_and_loses_where_the_kernel_has_it(kernel):
    kernel(netem=True)
    shape = shape_of(star(latency=2e-3, loss=0.01), 0)
    (outer, delayed), (inner, bucket) = shape.queues
    assert (outer, inner) == ("netem", "tbf")
    assert delayed["delay"] == 2000
    assert delayed["loss"] == pytest.approx(1.0)
    assert bucket["parent"] == "1:1"
    assert shape.loss == 0
    assert not shape.warnings


def test_without_netem_latency_is_left_out_and_said_and_loss_becomes_a_rule(kernel):
    kernel(netem=False)
    shape = shape_of(star(latency=2e-3, loss=0.01), 0)
    assert [kind for kind, _ in shape.queues] == ["tbf"]
    assert shape.loss == pytest.approx(0.01)
    (warning,) = shape.warnings
    assert "not their latencies" in warning


def test_with_neither_there_is_no_loss_and_that_is_said(kernel):
    kernel(netem=False, nftables=False)
    shape = shape_of(star(loss=0.01), 0)
    assert shape.loss == 0
    assert shape.warnings == ("neither netem nor nftables: no losses",)


def test_a_message_is_cut_into_frames_with_headers():
    assert FRAME.framing.payload == 9000 - 52
    assert FRAME.framing.header == 66


# Forwarding tables: that a message which follows them arrives, by the paths that predictions take.
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
