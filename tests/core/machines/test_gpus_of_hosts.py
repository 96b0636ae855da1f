"""GPUs of hosts: ranks of a host share its ports, and a cluster's file is one cluster for `place` and for runs."""

import json

import numpy as np
import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.files.placement_file import read_placement
from commsim.core.machines.gpus_of_hosts import with_gpus
from commsim.core.network import HOST
from commsim.prediction.inputs import load_network
from topologies.leaf_spine import leaf_spine

SIZE = 16_867_368
CLUSTER = """
[topology]
spec = "leaf_spine:n_leaves=8,n_spines=2,hosts_per_leaf=4,bandwidth=10Gbps,uplink_bandwidth=5Gbps"
[hosts]
gpus = 4
"""


def hosts_of(n_leaves: int, gpus: int):
    network = leaf_spine(n_leaves, 1, 2, bandwidth=1e9)
    return network, np.where(network.kind == HOST, gpus, 0)


def test_ranks_sit_on_the_gpus_of_each_host_in_turn_and_share_its_port() -> None:
    found = with_gpus(*hosts_of(2, 3))
    assert [found.nodes[i] for i in found.endpoints[:4]] == ["h0.gpu0", "h0.gpu1", "h0.gpu2", "h1.gpu0"]
    assert found.is_cabled
    assert found.machine[found.endpoints].tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    nodes = found.endpoints[[0, 1, 2, 6, 7, 8]]  # each sends a sixth to three ranks of the other host, by one port
    time = cs.predict("pairwise_all_to_all", found, 6_000_000, placement=cs.Placement(nodes)).time
    assert time == pytest.approx(9e6 / 1e9, rel=0.01)


def test_one_gpu_for_every_host_is_the_network_itself() -> None:
    network, gpus = hosts_of(2, 1)
    assert with_gpus(network, gpus) is network
    with pytest.raises(InputError, match="no host has a GPU"):
        with_gpus(network, 0 * gpus)


def test_the_inside_of_a_host_limits_its_ranks_where_it_is_slower_than_the_ports() -> None:
    fast, slow = with_gpus(*hosts_of(1, 2)), with_gpus(*hosts_of(1, 2), inside=1e8)
    times = [cs.predict("ring_all_reduce", one, 8_000_000).time for one in (fast, slow)]
    assert times[1] > 5 * times[0]


def test_a_cluster_file_has_a_place_for_each_free_gpu(tmp_path) -> None:
    """Ranks went to one host each: over two racks in 47.2 ms, while `place` put them on two hosts (23.6 ms)."""
    path = tmp_path / "c.toml"
    path.write_text(CLUSTER + "busy = { h1 = 3 }\n")
    network = load_network(str(path))
    assert [network.nodes[i] for i in network.endpoints[3:6]] == ["h0.gpu3", "h1.gpu0", "h2.gpu0"]
    path.write_text(CLUSTER)
    time = cs.predict("ring_all_reduce", str(path), SIZE, n_ranks=8).time
    assert time == pytest.approx(1.75 * SIZE * 8 / 10e9, rel=1e-3)


def test_the_placement_of_place_is_that_of_the_ranks(tmp_path) -> None:
    path, answer = tmp_path / "c.toml", tmp_path / "placed.json"
    path.write_text(CLUSTER)
    network = load_network(str(path))
    placement = {"a": ["h0"] * 4 + ["h5"] * 2, "b": ["h7"]}
    answer.write_text(json.dumps({"candidates": [{"placement": placement}]}))
    nodes = read_placement(answer, network, "a").nodes
    assert [network.nodes[i] for i in nodes] == [f"h0.gpu{i}" for i in range(4)] + ["h5.gpu0", "h5.gpu1"]
    with pytest.raises(InputError, match="has several jobs; name one after a colon"):
        read_placement(answer, network)
    answer.write_text(json.dumps({"placement": ["h3"] * 5}))
    with pytest.raises(InputError, match="h3 has no GPU left for rank 4"):
        read_placement(answer, network)
