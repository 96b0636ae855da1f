"""Files are recognised by what is in them, also our own exports; what is not read is named, with what reads it."""

from pathlib import Path

import pytest

from commsim.core.errors import InputError
from commsim.formats.context import Context
from commsim.formats.convert import convert
from commsim.formats.recognise import format_of_file
from commsim.prediction.inputs import load_network

NS3 = "4 1 3\n3\n0 3 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n2 3 100Gbps 1000ns 0\n"
HTSIM = """Nodes 8
Tiers 2
Podsize 8

Tier 0
Downlink_speed_Gbps 400
Radix_Down 4
Radix_Up 4
Downlink_Latency_ns 500
Switch_Latency_ns 100

Tier 1
Downlink_speed_Gbps 200
Radix_Down 4
Downlink_Latency_ns 700
Switch_Latency_ns 0
Bundle 2
"""


@pytest.mark.parametrize("form", ["ns3", "simai", "htsim", "graphml", "astra-network", "node-link", "infragraph"])
@pytest.mark.parametrize("name", ["net", "net.txt"])
def test_our_own_export_is_recognised_whatever_it_is_called(form: str, name: str, tmp_path: Path) -> None:
    if form in ("astra-network", "graphml", "node-link") and name == "net.txt":
        name = {"astra-network": "net.yml", "graphml": "net.graphml", "node-link": "net.json"}[form]
    source = "star:n_hosts=4" if form == "astra-network" else "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2"
    convert(source, str(tmp_path / name), Context(), to=form)
    assert format_of_file(str(tmp_path / name)) in (form, "commsim")
    assert len(load_network(str(tmp_path / name)).endpoints) == 4


def test_infragraph_in_flow_style_is_infragraph(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text("# made by hand\n{name: a, devices: [{name: b}], instances: [{name: c}]}\n")
    assert format_of_file(str(tmp_path / "net.yaml")) == "infragraph"


@pytest.mark.parametrize("name", ["star.txt", "star", "star.topo"])
def test_a_topology_of_ns3_runs_under_any_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(NS3)
    assert load_network(f"{tmp_path}/{name}").n_links == 6


def test_text_after_the_last_cable_is_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(f"{NS3}\n\nline 1: nodes, switches, links\nthen: source, target\n")
    network = load_network(str(tmp_path / "x.txt"))
    assert network.n_links == 6
    assert "line 8" in str(network.told[0])


def test_more_cables_than_are_counted_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(f"{NS3}0 1 100Gbps 1000ns 0\n")
    with pytest.raises(InputError, match="line 1 says 1 switches and 3 cables, got 1 and 4"):
        load_network(str(tmp_path / "x.txt"))


def test_a_tree_of_htsim_has_its_tiers_bundles_and_latencies(tmp_path: Path) -> None:
    (tmp_path / "t.topo").write_text(HTSIM)
    network = load_network(str(tmp_path / "t.topo"))
    names = [network.link_name(i) for i in range(network.n_links // 2)]
    assert names[:2] == ["h0:tor0", "h1:tor0"]
    assert sorted(names[8:]) == sorted(f"tor{a}:agg{b}{n}" for a in range(2) for b in range(2) for n in ("", "#1"))
    up, down = network.latency[0], network.latency[network.n_links // 2]
    assert (up, down) == pytest.approx((600e-9, 500e-9))
    assert network.bandwidth[8] == 200e9 / 8


@pytest.mark.parametrize(
    "spec", ["leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=4,oversubscription=2", "fat_tree:k=4"]
)
def test_what_is_written_for_htsim_is_read_back(spec: str, tmp_path: Path) -> None:
    convert(spec, str(tmp_path / "t.topo"), Context())
    network, back = load_network(spec), load_network(str(tmp_path / "t.topo"))
    assert (network.src == back.src).all()
    assert (network.dst == back.dst).all()
    assert (network.bandwidth == back.bandwidth).all()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SwitchName=s0 Nodes=n[01-04]\n", "Slurm's topology.conf; it is read by: commsim place import"),
        (
            "#       size  count  type  redop  time  algbw  busbw\n",
            "a log of nccl-tests; it is read by: commsim",
        ),
        ("# OSU MPI Allreduce Latency Test v7.4\n", "OSU's micro-benchmarks; it is read by: commsim compare"),
        ("Collective:  Allreduce\n Count  Size  Time, us\n", "a table of ucc_perftest; it is read by: commsim compare"),
        ("- topology: a\n  tree:\n    switches: []\n", "topology.yaml"),
        ("hello world\n", "text whose first line is 'hello world'"),
        ("", "an empty file"),
        ('{"traceEvents": []}', "a trace of PyTorch's profiler"),
        ('{"foo": 1}', "an object with foo"),
        ("<rack/>", "outermost element is <rack>"),
        ('<graphs version="1"><graph id="0"/></graphs>', "NCCL's graph file .*, which has channels and no machine"),
        ("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\n", "a file of Kueue's objects, which name labels"),
        ("\x00\x01", "binary data"),
    ],
)
def test_a_file_that_is_not_read_is_named_with_what_reads_it(text: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_text(text)
    with pytest.raises(InputError, match=wanted) as error:
        load_network(str(tmp_path / "x.dat"))
    assert "ibnetdiscover" in str(error.value)
    assert "\n" not in str(error.value)


def test_no_pattern_of_a_line_s_beginning_goes_on_over_blank_lines() -> None:
    """Behind ``^``, ``\\s*`` is tried from each of many blank lines over all that follow: minutes for a few KiB."""
    folder = Path(__file__).parents[2] / "commsim" / "formats"
    sources = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    assert [str(path) for path, text in sources.items() if r"^\s*" in text or r"|\s)*" in text] == []


def test_a_folder_is_called_one(tmp_path):
    with pytest.raises(InputError, match=r"is a folder, which is read only with outputs of lldpcli, NODE\.json"):
        format_of_file(str(tmp_path))
