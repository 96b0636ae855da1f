import json

import pytest

from commsim.files.store import read_network
from commsim.placement.cluster import read_cluster
from commsim.placement.schedulers.slurm import read_slurm_conf

CLUSTER = """
[topology]
name = "leaf_spine"
n_leaves = 3
n_spines = 2
hosts_per_leaf = 4
[hosts]
gpus = 8
"""
CONF = "SwitchName=s0 Nodes=n[0-3] LinkSpeed=1\nSwitchName=s1 Nodes=n[4-7]\nSwitchName=top Switches=s[0-1]\n"
RATES = ("--tier-bandwidth", "1=100Gbps,2=2:1")
BOX = "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV4\tPIX\nGPU1\tNV4\t X \tSYS\nNIC0\tPIX\tSYS\t X \n"


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    return tmp_path / "cluster.toml"


@pytest.mark.parametrize("kind", ["slurm-conf", "slurm-yaml", "topograph-model", "topograph-graph"])
@pytest.mark.parametrize("plugin", ["tree", "block"])
def test_what_is_exported_is_imported_again(commsim, tmp_path, cluster, kind, plugin):
    if plugin == "block" and not kind.startswith("slurm"):
        assert "--plugin has no effect" in commsim.refuses("place", "export", cluster, "--to", kind, "--plugin", plugin)
        return
    out = tmp_path / "written"
    assert commsim("place", "export", cluster, "--to", kind, "--plugin", plugin, "-o", out).code == 0, commsim.err
    again = tmp_path / "again.toml"
    call = ("place", "import", out, "--from", kind, *RATES, "--gpus-per-host", 8, "-o", again)
    assert commsim(*call).code == 0, commsim.err
    found = read_cluster(again)
    assert set(found.network.nodes) >= {f"h{i}" for i in range(12)} | {f"leaf{i}" for i in range(3)}
    assert found.gpus.sum() == 12 * 8
    assert sorted(set(found.network.bandwidth.tolist())) == [12.5e9, 25e9]


def test_slurms_file_goes_to_standard_output_with_what_stands_for_what(commsim, cluster):
    assert commsim("place", "export", cluster, "--to", "slurm-conf").code == 0
    assert "# spine0 stands for 2 switches that are interchangeable: spine0, spine1\n" in commsim.out
    assert len(read_slurm_conf(commsim.out).switches) == 4


@pytest.mark.parametrize(("kind", "words"), [("volcano", "kind: HyperNode"), ("kueue", "kind: Topology")])
def test_kubernetes_gets_its_objects(commsim, cluster, kind, words):
    assert commsim("place", "export", cluster, "--to", kind).code == 0
    assert words in commsim.out


def test_a_placement_becomes_a_node_list(commsim, tmp_path, cluster):
    jobs = [{"job": "a", "gpus": 16, "iter_time_ms": 100, "phases": []}]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    placed = tmp_path / "placed.json"
    assert commsim("place", cluster, tmp_path / "jobs.json", "--generator", "packed", "--json", placed).code == 0, (
        commsim.err
    )
    assert commsim("place", "export", cluster, "--to", "nodelist", "--placements", placed).code == 0, commsim.err
    assert commsim.out == "--nodes=2 --nodelist=h[0-1] --switches=1\n"
    call = ("place", "export", cluster, "--to", "nodelist", "--placements", placed)
    assert "has no job 'b'; it has a" in commsim.refuses(*call, "--job", "b")
    assert ", got --candidate 99" in commsim.refuses(*call, "--candidate", 99)


def test_link_speeds_are_said_to_be_ignored(commsim, tmp_path):
    (tmp_path / "topology.conf").write_text(CONF)
    out = tmp_path / "net.toml"
    assert commsim("place", "import", tmp_path / "topology.conf", "--from", "slurm-conf", *RATES, "-o", out).code == 0
    assert "LinkSpeed has no unit" in commsim.err
    assert len(commsim.err.splitlines()) == 1
    network = read_network(out)
    assert (len(network.hosts), network.n_links) == (8, 20)
    assert sorted(set(network.bandwidth.tolist())) == [12.5e9, 25e9]


def test_machines_are_imported_as_networks(commsim, tmp_path):
    (tmp_path / "box.txt").write_text(BOX)
    out = tmp_path / "box.json"
    assert commsim("place", "import", tmp_path / "box.txt", "--from", "nvidia-smi", "-o", out).code == 0, commsim.err
    assert {"gpu0", "gpu1", "nic0"} <= set(read_network(out).nodes)
    call = ("place", "import", tmp_path / "box.txt", "--from", "nvidia-smi", "-o", out)
    assert "--tier-bandwidth has no effect on nvidia-smi" in commsim.refuses(*call, *RATES)
    assert "box.txt" in commsim.refuses("place", "import", tmp_path / "box.txt", "--from", "nccl-xml", "-o", out)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "--tier-bandwidth is needed: slurm-conf files contain no rates"),
        (("--tier-bandwidth", "1=100Gbps"), "does not give the rate of tier 2 (switch s0 to top)"),
        (("--tier-bandwidth", "1=1Gbps,2=1Gbps,3=1Gbps"), "has a tier 3, but there are 1..2"),
        ((*RATES, "--topology", "x"), "--topology has no effect on slurm-conf"),
        ((*RATES, "--latency", "1"), "--latency needs a unit"),
        ((*RATES, "--gpus-per-host", "0"), "--gpus-per-host is from 1 to 1024"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said(commsim, tmp_path, flags, message):
    (tmp_path / "topology.conf").write_text(CONF)
    out = tmp_path / "out.toml"
    assert message in commsim.refuses(
        "place", "import", tmp_path / "topology.conf", "--from", "slurm-conf", *flags, "-o", out
    )
    assert not out.exists()


def test_files_that_are_not_there_or_not_text_are_named(commsim, tmp_path):
    call = ("--from", "slurm-conf", *RATES, "-o", tmp_path / "out.toml")
    assert "missing: No such file" in commsim.refuses("place", "import", tmp_path / "missing", *call)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in commsim.refuses("place", "import", tmp_path / "binary", *call)
    (tmp_path / "t").write_text(CONF)
    assert "must end with one of" in commsim.refuses(
        "place", "import", tmp_path / "t", *call[:-1], tmp_path / "out.csv"
    )
