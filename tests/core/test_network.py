import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.files.npz import write_arrays
from commsim.core.files.store import SUFFIXES, read_network, save
from commsim.core.network import CPU, GPU, HOST, MEMORY, NIC, SWITCH, Network, both_ways, kinds, node_names
from commsim.routing.merge_switches import merge_switches
from topologies.bcube import bcube
from topologies.dragonfly import dragonfly
from topologies.leaf_spine import leaf_spine
from topologies.star import star
from topologies.torus import torus


def pair(**changes) -> Network:
    """Two hosts on a switch, with one field changed."""
    src, dst = both_ways([0, 1], [2, 2])
    fields = {
        "name": "pair",
        "nodes": ("a", "b", "s"),
        "kind": [HOST, HOST, SWITCH],
        "src": src,
        "dst": dst,
        "bandwidth": 1e9,
        "latency": 1e-6,
    }
    return Network(**fields | changes)


def test_scalars_fill_all_links_and_nodes():
    network = pair(loss=0.5, overhead=1e-6)
    assert network.bandwidth.tolist() == [1e9] * 4
    assert network.loss.tolist() == [0.5] * 4
    assert network.buffer.tolist() == [np.inf] * 4
    assert network.overhead.tolist() == [1e-6] * 3
    assert network.gamma.tolist() == [0.0] * 3


def test_what_all_links_or_nodes_share_takes_no_memory():
    shared = ("buffer", "loss", "overhead", "recv_overhead", "gamma", "message_engines")
    network = leaf_spine(n_leaves=2, n_spines=2, hosts_per_leaf=2)
    merged = merge_switches(network).network
    for one in (network, dataclasses.replace(network, latency=1e-6), merged):
        assert [getattr(one, name).strides for name in shared] == [(0,)] * len(shared)
    assert len(merged.loss) == merged.n_links < network.n_links
    assert len(merged.gamma) == merged.n_nodes < network.n_nodes


def test_switches_forward_and_hosts_aggregate_unless_told_otherwise():
    assert pair().forwards.tolist() == [False, False, True]
    assert pair().aggregates.tolist() == [True, True, False]
    assert pair(forwards=True, aggregates=[False, False, True]).aggregates.tolist() == [False, False, True]


def test_networks_are_compared_by_value():
    assert pair() == pair()
    assert hash(pair()) == hash(pair())
    assert pair() != pair(latency=2e-6)
    assert pair() != pair(routing="spray")


def test_no_array_of_a_network_can_be_written():
    with pytest.raises(ValueError, match="read-only"):
        pair().bandwidth[0] = 1
    with pytest.raises(AttributeError):
        pair().name = "other"


def test_links_are_named_by_their_ends_and_parallel_ones_are_numbered():
    network = pair(src=[0, 0, 1, 0], dst=[2, 2, 2, 2])
    assert [network.link_name(i) for i in range(4)] == ["a:s", "a:s#1", "b:s", "a:s#2"]


def test_ranks_sit_on_gpus_if_there_are_any_else_on_hosts_else_on_memories():
    assert pair(kind=[HOST, GPU, SWITCH]).endpoints.tolist() == [1]
    assert pair(kind=[MEMORY, HOST, SWITCH]).endpoints.tolist() == [1]
    assert pair(kind=[SWITCH, CPU, MEMORY]).endpoints.tolist() == [2]


def test_what_forwards_and_what_takes_helpers_follows_from_the_kind():
    nodes = ("a", "b", "c", "d", "e", "f")
    network = Network("x", nodes, [HOST, SWITCH, GPU, CPU, NIC, MEMORY], [], [], 1.0, 0.0)
    assert network.forwards.tolist() == [False, True, False, True, True, False]
    assert network.aggregates.tolist() == [True, False, True, True, False, True]
    assert network.machine.tolist() == [-1] * 6


def test_hosts_are_found_wherever_they_are():
    assert pair(kind=[SWITCH, HOST, HOST]).hosts.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a\nb"}, "the name of a network is printable text"),
        ({"nodes": ("a", "a", "s")}, "pair: node name 'a' is used twice"),
        ({"nodes": ("a", "", "s")}, "a node name is printable text, got ''"),
        ({"nodes": ("a", "b\n", "s")}, "printable text"),
        ({"nodes": ("a", 1, "s")}, "printable text, got 1"),
        ({"kind": [SWITCH] * 3}, "at least one host, GPU or memory"),
        ({"machine": [0, 0, -2]}, "pair: machines are numbered from 0, or -1 for none, got -2"),
        ({"metric": [1, 1, 0, 1]}, r"link s:a needs a metric 1\.\.1048576, got 0"),
        ({"kind": [HOST, HOST, 6]}, "node kinds are host, switch, gpu, cpu, nic, memory"),
        ({"kind": [HOST, HOST, 256]}, "pair: kind must hold values that fit uint8, got 256"),
        ({"kind": [HOST, HOST]}, r"pair: kind must have the shape \(3,\), got \(2,\)"),
        ({"routing": "hot potato"}, "unknown routing 'hot potato'; known: ecmp, shortest, spray"),
        ({"src": [0, 1, 2, 3]}, "a link ends at node 3 of 3"),
        ({"src": [0, 1, 2, -1]}, "a link ends at node -1 of 3"),
        ({"src": [0, 1, 2, 0.5]}, "src must hold values that fit int32, got 0.5"),
        ({"src": [0, 1, 2, 2**32]}, "src must hold values that fit int32"),
        ({"src": [2, 1, 2, 2]}, "link s:s joins a node to itself"),
        ({"bandwidth": [1, 2, 0, 1]}, "link s:a needs a positive bandwidth, got 0.0"),
        ({"bandwidth": np.inf}, "needs a positive bandwidth, got inf"),
        ({"bandwidth": np.nan}, "needs a positive bandwidth, got nan"),
        ({"bandwidth": [1, 2]}, "bandwidth must have the shape"),
        ({"bandwidth": "1Gbps"}, "bandwidth must hold numbers"),
        ({"latency": -1e-9}, "needs a latency of 0 or more"),
        ({"latency": np.inf}, "needs a latency of 0 or more"),
        ({"buffer": 0}, "needs a positive buffer"),
        ({"buffer": np.nan}, "needs a positive buffer"),
        ({"loss": 1.0}, r"needs a loss in \[0, 1\)"),
        ({"loss": -0.1}, "needs a loss"),
        ({"overhead": [0, -1, 0]}, "node b needs overhead >= 0, got -1.0"),
        ({"recv_overhead": np.inf}, "node a needs recv_overhead >= 0"),
        ({"gamma": np.nan}, "node a needs gamma >= 0"),
        ({"forwards": [True] * 2}, "forwards must have the shape"),
        ({"forwards": [0, 1, 2]}, "forwards must hold values that fit bool, got 2"),
    ],
)
def test_a_wrong_field_is_refused_by_name(changes, message):
    with pytest.raises(InputError, match=message):
        pair(**changes)


def test_a_network_of_one_host_without_links_is_legal():
    network = Network("one", ("a",), [HOST], [], [], 1.0, 0.0)
    assert (network.n_nodes, network.n_links, network.bandwidth.shape) == (1, 0, (0,))


def test_cables_are_links_both_ways_first_all_there_and_then_all_back():
    src, dst = both_ways([0, 1], [2, 3])
    assert (src.tolist(), dst.tolist()) == ([0, 1, 2, 3], [2, 3, 0, 1])
    assert src.dtype == dst.dtype == np.int32


def test_names_and_kinds_of_nodes_come_in_the_order_given():
    assert node_names(h=2, leaf=1) == ("h0", "h1", "leaf0")
    assert kinds(2, 1).tolist() == [HOST, HOST, SWITCH]


# Coordinates of nodes: in a network, and in its files.
def three(coordinates):
    return Network("x", ("a", "b", "c"), [0, 0, 0], [0], [1], 1.0, 0.0, coordinates=coordinates)


def test_there_are_none_unless_given():
    assert star(3).coordinates.shape == (4, 0)


def test_they_are_kept_frozen_and_compared():
    network = three([[0, 1], [2, -1], [5, 6]])
    assert network.coordinates.dtype == np.int32
    assert not network.coordinates.flags.writeable
    assert network == three(np.array([[0, 1], [2, -1], [5, 6]]))
    assert network != three([[0, 1], [2, -1], [5, 7]])
    assert hash(network) == hash(three([[0, 1], [2, -1], [5, 6]]))


@pytest.mark.parametrize(
    ("coordinates", "message"),
    [
        ([[0, 1], [2, 3]], r"x: coordinates must have the shape \(3, 2\), got \(2, 2\)"),
        ([0, 1, 2], r"x: coordinates must have the shape"),
        (np.zeros((3, 2, 2)), r"x: coordinates must have the shape"),
        ([[0.5], [1], [2]], "coordinates must hold values that fit int32, got 0.5"),
        ([["a"], ["b"], ["c"]], "coordinates must hold numbers"),
    ],
)
def test_what_is_no_place_for_every_node_is_refused(coordinates, message):
    with pytest.raises(InputError, match=message):
        three(coordinates)


@given(
    at=st.integers(0, 3).flatmap(
        lambda d: st.lists(st.lists(st.integers(-1, 2**31 - 1), min_size=d, max_size=d), min_size=3, max_size=3)
    ),
    suffix=st.sampled_from(SUFFIXES),
)
def test_any_coordinates_read_back_as_they_were_saved(tmp_path_factory, at, suffix):
    network = three(np.array(at, int).reshape(3, -1))
    path = tmp_path_factory.getbasetemp() / f"coordinates{suffix}"
    save(network, path)
    assert read_network(path) == network


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "network", [torus((3, 2)), bcube(2, 1), dragonfly(1, 2, 1)], ids=["torus", "bcube", "dragonfly"]
)
def test_topologies_keep_coordinates_and_routing_in_a_file(tmp_path, suffix, network):
    save(network, tmp_path / f"x{suffix}")
    assert read_network(tmp_path / f"x{suffix}") == network


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([0], r"nodes\[1\].coordinates must be a list of 2 whole numbers, as in nodes\[0\], got \[0\]"),
        (None, r"nodes\[1\].coordinates is missing: a list of 2 whole numbers, as in nodes\[0\]"),
        ([0, 0.5], r"nodes\[1\].coordinates\[1\] must be a whole number, got 0.5"),
        (7, r"nodes\[1\].coordinates must be a list of a whole number, got 7"),
        ([0, 2**31], r"coordinates\[1\] must be a whole number of 32 bits, got 2147483648"),
        ([0, 2**80], r"coordinates\[1\] must be a whole number of 32 bits, got 1208925819614629174706176"),
    ],
)
def test_wrong_coordinates_in_a_file_are_named(tmp_path, wrong, message):
    save(torus((2, 2)), tmp_path / "x.json")
    tree = json.loads((tmp_path / "x.json").read_text())
    if wrong is None:
        del tree["nodes"][1]["coordinates"]
    else:
        tree["nodes"][1]["coordinates"] = wrong
    (tmp_path / "x.json").write_text(json.dumps(tree, indent=1))
    with pytest.raises(InputError, match=message):
        read_network(tmp_path / "x.json")


def test_coordinates_that_do_not_divide_are_refused_in_an_archive(tmp_path):
    save(torus((2, 2)), tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as archive:
        arrays = dict(archive)
    write_arrays(tmp_path / "x.npz", arrays | {"coordinates": arrays["coordinates"][:-1]})
    with pytest.raises(InputError, match="coordinates must be as many for each of 4 nodes, got 7 numbers"):
        read_network(tmp_path / "x.npz")
