"""Clusters are read strictly: every fault names the file, the line and the field."""

import re
from pathlib import Path

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.files.store import save
from commsim.placement.cluster import Cluster, read_cluster
from topologies.leaf_spine import leaf_spine

NETWORK = leaf_spine(2, 1, 2)
TOPOLOGY = '[topology]\nname = "leaf_spine"\nn_leaves = 2\nn_spines = 1\nhosts_per_leaf = 2\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "cluster.toml"
    path.write_text(text)
    return path


def test_a_topology_can_be_named_written_as_a_specification_or_read_from_a_file(tmp_path: Path) -> None:
    save(NETWORK, tmp_path / "network.toml")
    hosts = "[hosts]\ngpus = 8\n"
    named = read_cluster(write(tmp_path, TOPOLOGY + hosts))
    spec = '[topology]\nspec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2"\n'
    assert named == read_cluster(write(tmp_path, spec + hosts))
    assert named == read_cluster(write(tmp_path, '[topology]\nfile = "network.toml"\n' + hosts))
    assert named.gpus.tolist() == [8] * 4 + [0] * 3


def test_a_file_of_another_tool_is_a_network_as_in_a_specification(tmp_path: Path) -> None:
    """A list of cables was refused: ``cables.csv: Expecting value: line 1 column 1``."""
    rows = ["device,port,device,port,rate,latency"]
    rows += [f"n{i},eth0,leaf{i // 2},p{i},100Gbps,500ns" for i in range(4)]
    rows += [f"leaf{i},up,spine,p{i},200Gbps,500ns" for i in range(2)]
    (tmp_path / "cables.csv").write_text("\n".join(rows) + "\n")
    cluster = read_cluster(write(tmp_path, '[topology]\nfile = "cables.csv"\n[hosts]\ngpus = 8\n'))
    assert (cluster.gpus.sum(), cluster.network.n_links) == (32, 12)
    (tmp_path / "words.csv").write_text("no cables\n")
    for name, message in (("words.csv", "unknown format"), ("absent.csv", "absent.csv: No such file")):
        with pytest.raises(InputError, match=re.escape(message)):
            read_cluster(write(tmp_path, f'[topology]\nfile = "{name}"\n[hosts]\ngpus = 8\n'))


def test_a_network_in_place_of_a_cluster_is_told_its_tables(tmp_path: Path) -> None:
    """It was ``No such file or directory``, or ``Expecting value: line 1 column 1``."""
    spec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2"
    for name in (spec, "dgx-h100@star:machines=2"):
        with pytest.raises(InputError, match=re.escape(f'a cluster is a .toml file: spec = "{name}" under [topology]')):
            read_cluster(name)
    (tmp_path / "cables.csv").write_text("a,b\n")
    with pytest.raises(InputError, match=r'cables.csv: not JSON: .*; a cluster is a .toml file: file = ".*cables.csv"'):
        read_cluster(tmp_path / "cables.csv")
    with pytest.raises(InputError, match=r"absent: No such file or directory$"):
        read_cluster(tmp_path / "absent")


def test_jobs_in_place_of_a_cluster_and_an_empty_file_are_told(tmp_path: Path) -> None:
    jobs, empty = tmp_path / "jobs.json", tmp_path / "empty.log"
    jobs.write_text("[]")
    empty.write_text("\n")
    with pytest.raises(InputError, match=r"jobs\.json: a list, as of jobs, .*; the order is CLUSTER JOBS"):
        read_cluster(jobs)
    with pytest.raises(InputError, match=r"empty\.log: is empty$"):
        read_cluster(empty)


def test_parameters_with_units_lists_and_truth_values_are_taken(tmp_path: Path) -> None:
    torus = '[topology]\nname = "torus"\ndims = [2, 3]\nbandwidth = "50Gbps"\n[hosts]\ngpus = 1\n'
    network = read_cluster(write(tmp_path, torus)).network
    assert len(network.hosts) == 6
    assert network.bandwidth.max() == 50e9 / 8


def test_hosts_can_differ_and_be_busy(tmp_path: Path) -> None:
    text = TOPOLOGY + "[hosts]\ngpus = 8\nbusy = {h0 = 2}\n[hosts.per_host]\nh3 = 4\n"
    cluster = read_cluster(write(tmp_path, text))
    assert cluster.gpus[:4].tolist() == [8, 8, 8, 4]
    assert cluster.free[:4].tolist() == [6, 8, 8, 4]


def test_with_per_host_alone_the_other_hosts_have_none(tmp_path: Path) -> None:
    cluster = read_cluster(write(tmp_path, TOPOLOGY + "[hosts.per_host]\nh1 = 4\n"))
    assert cluster.gpus[:4].tolist() == [0, 4, 0, 0]


def test_gpus_that_are_nodes_count_as_one_each(tmp_path: Path) -> None:
    text = '[topology]\nspec = "dgx-h100@star:machines=2"\n'
    cluster = read_cluster(write(tmp_path, text))
    assert cluster.gpus.sum() == len(cluster.network.endpoints) == 16
    with pytest.raises(InputError, match=r"gpus has no effect: the GPUs of .* are nodes"):
        read_cluster(write(tmp_path, text + "[hosts]\ngpus = 8\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[hosts]\ngpus = 8\n", 'needs one of name, spec and file, as in spec = "star:n_hosts=8", got none'),
        ("[cluster]\nx = 1\n", "cluster.toml, line 1: cluster is not a field here; known: hosts, topology"),
        (TOPOLOGY + 'file = "x.toml"\n', "got name and file"),
        (TOPOLOGY, "hosts.gpus is missing: a whole number 0..1024"),
        (TOPOLOGY + "[hosts]\ngpus = -1\n", "line 7: hosts.gpus must be a whole number 0..1024, got -1"),
        (TOPOLOGY + "[hosts]\ngpus = 8\ngpu = 7\n", "hosts.gpu is not a field here; did you mean gpus"),
        (TOPOLOGY + "[hosts]\ngpus = 8\nbusy = {h9 = 2}\n", "hosts.busy.h9 is not a host of .*; the first is h0"),
        (TOPOLOGY + "[hosts]\ngpus = 8\nbusy = {h0 = 9}\n", "h0 cannot have more busy GPUs than GPUs, got 8 GPUs, 9"),
        (TOPOLOGY + "n_leafs = 2\n[hosts]\ngpus = 8\n", "leaf_spine has no parameter 'n_leafs'"),
        (TOPOLOGY + 'x = "1,n_leaves=3"\n', "topology.x must be a number, text without a comma"),
        ('[topology]\nname = "leafspine"\n[hosts]\ngpus = 8\n', "leaf_spine"),
        ('[topology]\nfile = "absent.toml"\n', "absent.toml: No such file"),
        ("[topology", "cluster.toml"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_cluster(write(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_gpus_sit_only_where_ranks_can() -> None:
    with pytest.raises(InputError, match=re.escape("node leaf0 can have 0..1024 GPUs on a host, got 8 GPUs")):
        Cluster(NETWORK, np.full(NETWORK.n_nodes, 8))


def test_nics_of_hosts_are_said_to_be_of_the_topology():
    tables = {
        "topology": {"spec": "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2"},
        "hosts": {"gpus": 4, "nics": 2},
    }
    with pytest.raises(InputError, match=r'hosts.nics is of the topology: .* spec = "pcie_host:n_gpus=4,n_nics=2@'):
        read_cluster(tables)
