"""Networks as graph libraries and other simulators write them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.files.network_file import node_link_of, read_network
from commsim.core.files.whole_files import write_json
from commsim.core.network import KINDS, Network
from commsim.core.placement import place
from commsim.formats import ns3
from commsim.formats.graphml import read_graphml, write_graphml
from commsim.formats.htsim import write_htsim
from commsim.formats.htsim_flows import write_flows
from commsim.formats.ns3 import read_ns3, write_ns3
from commsim.formats.simai import read_simai, write_simai
from commsim.nccl.choice import ranges
from commsim.nccl.of_network import NcclOptions, setting_of
from commsim.nccl.site import site_of
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import load_schedule
from commsim.prediction.inputs import load_network
from commsim.routing.routing import find_routes


@st.composite
def networks(draw: st.DrawFn) -> Network:
    n, m = draw(st.integers(2, 5)), draw(st.integers(0, 8))
    dims = draw(st.integers(0, 2))
    ends = [draw(st.tuples(st.integers(0, n - 1), st.integers(1, n - 1))) for _ in range(m)]

    def column(size: int, one: st.SearchStrategy[float]) -> list[float]:
        return draw(st.lists(one, min_size=size, max_size=size))

    return Network(
        draw(st.sampled_from(("a", "rack 7 <&>", "ä"))), tuple(f"n{i}" for i in range(n)),
        [0, *(draw(st.integers(0, len(KINDS) - 1)) for _ in range(n - 1))], [a for a, _ in ends],
        [(a + b) % n for a, b in ends], column(m, st.floats(1, 1e15)), column(m, st.floats(0, 1)),
        column(m, st.floats(1, 1e9) | st.just(float("inf"))), column(m, st.floats(0, 0.99)),
        column(n, st.booleans()), column(n, st.booleans()), column(n, st.floats(0, 1)), column(n, st.floats(0, 1)),
        column(n, st.floats(0, 1)), draw(st.sampled_from(("ecmp", "shortest", "spray"))),
        column(n, st.integers(-1, 3)), column(m, st.integers(1, 9)),
        np.array(column(n * dims, st.integers(-1, 5)), int).reshape(n, dims),
    )  # fmt: skip


@given(networks())
def test_node_link_json_and_graphml_give_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, network: Network
) -> None:
    path = tmp_path_factory.mktemp("n")
    write_json(path / "n.json", node_link_of(network))
    assert read_network(path / "n.json") == network
    write_graphml(network, path / "n.graphml")
    assert read_graphml(path / "n.graphml") == network


def test_networkx_reads_our_node_link_json() -> None:
    import networkx

    network = load_network("fat_tree:k=4")
    graph = networkx.node_link_graph(node_link_of(network), edges="edges")
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (network.n_nodes, network.n_links)
    assert graph.edges["h0", "edge0"]["rate_bps"] == network.bandwidth[0] * 8


def test_graphml_of_another_program_is_read_by_the_names_of_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "x.graphml"
    path.write_text("""<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
    <key id="k" for="node" attr.name="kind" attr.type="string"/>
    <key id="r" for="edge" attr.name="rate_bps" attr.type="double"/>
    <key id="d" for="edge" attr.name="delay_ns" attr.type="long"/><graph edgedefault="undirected">
    <node id="a"><data key="k">host</data></node><node id="b"><data key="k">host</data></node>
    <edge source="a" target="b"><data key="r">8e9</data><data key="d">500</data></edge></graph></graphml>""")
    network = read_graphml(path)
    assert (network.nodes, network.n_links, network.bandwidth[0], network.latency[1]) == (("a", "b"), 2, 1e9, 5e-7)


BILLION = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<graphml>&b;</graphml>"""


@pytest.mark.parametrize(
    "text",
    [BILLION, "<graphml>" * 100, "<graphml/>", "<graph/>", "", "<graphml><graph><node/></graph></graphml>",
     '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed"><node id="a"/></graph>'
     '</graphml>'],
)  # fmt: skip
def test_graphml_that_is_wrong_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.graphml"
    path.write_text(text)
    with pytest.raises(InputError):
        read_graphml(path)


@pytest.mark.jit
@pytest.mark.parametrize("name", ["fat_tree:k=4", "star:n_hosts=8,bandwidth=12.3Gbps,latency=1.7us", "torus:dims=4x4"])
def test_predicted_times_after_a_round_trip_are_unchanged(tmp_path: Path, name: str) -> None:
    before = load_network(name)
    write_graphml(before, tmp_path / "n.graphml")
    write_ns3(before, tmp_path / "n.txt")
    write_json(tmp_path / "n.json", node_link_of(before))
    ways = [read_graphml(tmp_path / "n.graphml"), read_network(tmp_path / "n.json")]
    if before.routing == "ecmp":  # ns-3's file says nothing of routing
        ways.append(read_ns3(tmp_path / "n.txt"))
    for collective in ("ring_all_reduce", "halving_doubling_all_reduce"):
        times = [prepare(collective, network, n_ranks=8).predict(1234567.0).time for network in (before, *ways)]
        assert times[1:] == pytest.approx([times[0]] * len(ways), rel=1e-12)


@given(st.floats(1, 1e15), st.floats(1e-12, 1.0), st.integers(2, 9))
def test_cables_keep_their_numbers_exactly(
    tmp_path_factory: pytest.TempPathFactory, bandwidth: float, latency: float, n: int
) -> None:
    network = load_network(f"star:n_hosts={n}")
    network = replace(network, bandwidth=np.full(2 * n, bandwidth), latency=np.full(2 * n, latency))
    path = tmp_path_factory.mktemp("c") / "n.txt"
    write_ns3(network, path)
    again = read_ns3(path)
    for name in ("kind", "src", "dst", "bandwidth", "latency", "loss"):
        np.testing.assert_array_equal(getattr(again, name), getattr(network, name))
    write_simai(network, path)
    gpus = read_simai(path)
    assert [gpus.nodes[i] for i in gpus.endpoints] == [f"gpu{i}" for i in range(n)]
    for name in ("src", "dst", "bandwidth", "latency"):
        np.testing.assert_array_equal(getattr(gpus, name), getattr(network, name))


def test_the_file_of_ns3_says_counts_switches_and_cables(tmp_path: Path) -> None:
    write_ns3(load_network("star:n_hosts=2,bandwidth=400Gbps,latency=500ns"), tmp_path / "n.txt")
    assert (tmp_path / "n.txt").read_text() == "3 1 2\n2\n0 2 400Gbps 0.0005ms 0\n1 2 400Gbps 0.0005ms 0\n"


def test_nvswitches_are_inside_of_the_servers_of_their_gpus(tmp_path: Path) -> None:
    lines = ["7 2 2 1 8 H100", "4 5 6", *(f"{g} {4 + g // 2} 2880Gbps 0.000025ms 0" for g in range(4)),
             *(f"{g} 6 400Gbps 0.0005ms 0" for g in range(4))]  # fmt: skip
    path = tmp_path / "s.txt"
    path.write_text("\n".join(lines))
    network = read_simai(path)
    assert network.machine.tolist() == [0, 0, 1, 1, 0, 1, -1]
    assert network.nodes == ("gpu0", "gpu1", "gpu2", "gpu3", "nvswitch0", "nvswitch1", "switch0")
    write_simai(network, tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_text().split() == path.read_text().split()


@pytest.mark.parametrize(
    "text",
    ["", "3 1 2", "3 1 2\n2\n0 2 400Gbps 0.0005ms 0\n", "3 1 1\n2\n0 2 400 0.0005ms 0\n", "3 1 1\n9\n0 2 4Gbps 1ms 0\n",
     "99999999999 1 1\n2\n0 2 4Gbps 1ms 0\n", "3 1 1\n2\n0 0 4Gbps 1ms 0\n", "3 1 1\n2\n0 2 4Gbps 1ms 1\n",
     "3 1 1\n2\n0 2 4e999Gbps 1ms 0\n", "3 1 1\n2\n0 2 nanGbps 1ms 0\n", "4000000 1 1\n2\n0 2 4Gbps 1ms 0\n",
     "3 1 1\n2\n0 2 4Gbps 1ms\n", "3 x 1\n2\n", "-3 1 1\n2\n0 2 4Gbps 1ms 0\n", "1e3 1 1\n2\n"],
)  # fmt: skip
def test_lists_of_cables_that_are_wrong_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "n.txt"
    path.write_text(text)
    for read in (read_ns3, read_simai):
        with pytest.raises(InputError, match=r"n\.txt"):
            read(path)


def test_networks_that_the_files_cannot_say_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a"):
        write_ns3(load_network("dgx-h100"), tmp_path / "n.txt")
    star = load_network("star:n_hosts=3")
    with pytest.raises(InputError, match="h0:switch0 has no way back"):
        write_ns3(replace(star, latency=np.arange(6.0)), tmp_path / "n.txt")
    assert not list(tmp_path.iterdir())


def test_hundreds_of_damaged_files_are_refused_or_read_and_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    star = load_network("star:n_hosts=3")
    for write, read, n in (
        (write_ns3, read_ns3, 300),
        (write_simai, read_simai, 300),
        (write_graphml, read_graphml, 300),
    ):
        path = tmp_path / "x.graphml"
        write(star, path)
        good, refused = path.read_bytes(), 0
        for _ in range(n):
            bad = bytearray(good)
            for at in rng.integers(0, len(bad), rng.integers(1, 4)):
                bad[at] = rng.integers(32, 127)
            path.write_bytes(bad)
            try:
                read(path)
            except InputError:
                refused += 1
        assert refused > n / 4


def test_trees_are_written_for_htsim(tmp_path: Path) -> None:
    path = tmp_path / "x.topo"
    write_htsim(load_network("leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=100Gbps,uplink_bandwidth=100Gbps,"
                             "latency=1us"), path)  # fmt: skip
    wanted = """Nodes 32 Tiers 2 Podsize 32
    Tier 0 Downlink_speed_Gbps 100 Radix_Down 8 Radix_Up 2 Downlink_Latency_ns 1000 Switch_Latency_ns 0 Oversubscribed 4
    Tier 1 Downlink_speed_Gbps 100 Radix_Down 4 Downlink_Latency_ns 1000 Switch_Latency_ns 0 Bundle 1"""
    assert path.read_text().split() == wanted.split()
    write_htsim(load_network("fat_tree:k=8"), path)
    words = path.read_text().split()
    assert words[:6] == ["Nodes", "128", "Tiers", "3", "Podsize", "16"]
    assert [words[i + 1] for i, word in enumerate(words) if word == "Radix_Down"] == ["4", "4", "8"]


@pytest.mark.parametrize("name", ["star:n_hosts=4", "torus:dims=4x4", "dragonfly:p=2,a=2,h=1", "dual_tor", "dgx-h100"])
def test_what_is_no_tree_is_not_written_for_htsim(tmp_path: Path, name: str) -> None:
    network = load_network(name if name != "dual_tor" else "bcube:n=4,k=1")
    with pytest.raises(InputError, match="no leaf-spine"):
        write_htsim(network, tmp_path / "x.topo")


@pytest.mark.parametrize(
    ("collective", "exact"),
    [
        ("ring_all_reduce", True),
        ("chain_broadcast:n_chunks=4", True),
        ("byteps", True),
        ("halving_doubling_all_reduce", False),
    ],
)
def test_flows_wait_for_what_messages_wait_for(tmp_path: Path, collective: str, exact: bool) -> None:
    schedule = load_schedule(collective, 4)
    path = tmp_path / "x.cm"
    notes = write_flows(schedule, 100.0 * schedule.expand()["count"] + 0.5, path, (3, 2, 1, 0), 8)
    assert (notes == ()) == exact
    lines = [line.split() for line in path.read_text().splitlines()]
    assert lines[0] == ["Nodes", "8"]
    flows = [line for line in lines if "->" in line[0]]
    triggers = {line[2]: line[3:] for line in lines if line[0] == "trigger"}
    assert lines[1] == ["Connections", str(len(flows))]
    assert lines[2] == ["Triggers", str(len(triggers))]
    assert len(flows) == schedule.n_transfers
    started = [dict(zip(line[1::2], line[2::2], strict=True)) for line in flows]
    for number, kind in triggers.items():
        waited = [one for one in started if one.get("recv_done_trigger") == number]
        assert kind == (["oneshot"] if len(waited) == 1 else ["barrier", "count", str(len(waited))])
        assert any(one.get("trigger") == number for one in started)
    assert all(("start" in one) != ("trigger" in one) and int(one["size"]) % 100 == 1 for one in started)
    if collective == "ring_all_reduce":
        first = next(line for line in flows if line[0] == "3->2")
        second = next(line for line in flows if line[0] == "2->1" and "trigger" in line)
        assert first[-1] == second[second.index("trigger") + 1]
    with pytest.raises(InputError, match="bytes"):
        write_flows(schedule, 1e12, path, (3, 2, 1, 0), 8)
    with pytest.raises(InputError, match="a host each"):
        write_flows(schedule, 1.0, path, (3, 2, 1, 1), 8)


def test_cables_are_the_same_however_many_are_read_at_once_and_the_wrong_line_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.txt"
    rows = [f"{i} 9 {400 + i % 2}Gbps 0.000{i}ms 0" for i in range(9)]
    path.write_text("\n".join(["10 1 9", "9", *rows, ""]))
    wanted = read_ns3(path)
    path.write_text("\r\n".join(["10 1 9", "9", "", *(row.replace(" ", "\t", 1) for row in rows)]))  # one by one
    assert read_ns3(path) == wanted
    monkeypatch.setattr(ns3, "_BLOCK", 4)
    assert read_ns3(path) == wanted
    for number, bad, why in ((5, "0 0 1Gbps 1ms 0", "joins two nodes"), (8, "0 9 1Gbps 1ms", "got 4 words"),
                             (9, "12 9 1Gbps 1ms 0", "word 1 must be"), (3, "0 9 0Gbps 1ms 0", "positive rate"),
                             (6, "\u0663 9 1Gbps 1ms 0", "word 1 must be")):  # fmt: skip
        path.write_text("\n".join(["10 1 9", "9", *rows[: number - 3], bad, *rows[number - 2 :]]))
        with pytest.raises(InputError, match=rf"line {number}: .*{why}"):
            read_ns3(path)
    path.write_text("\n".join(["10 1 9", "9", *rows]))
    monkeypatch.setattr(ns3, "MAX_DIFFERENT", 8)
    with pytest.raises(InputError, match="more than 8 different rates, delays and losses"):
        read_ns3(path)


def simai(tmp_path, gpu="H100", n=2, per=4):
    """Servers of SimAI: GPUs on an NVSwitch, each with a port to one switch."""
    gpus = n * per
    cables = [f"{i} {gpus + i // per} 2880Gbps 0.000025ms 0" for i in range(gpus)]
    cables += [f"{i} {gpus + n} 400Gbps 0.0005ms 0" for i in range(gpus)]
    ids = " ".join(str(gpus + k) for k in range(n + 1))
    path = tmp_path / "simai.txt"
    path.write_text("\n".join([f"{gpus + n + 1} {per} {n} 1 {len(cables)} {gpu}", ids, *cables]) + "\n")
    return path


@pytest.mark.parametrize(
    ("gpu", "hardware", "adds"),
    [
        ("H100", "gpu=hopper,net=roce", True), ("H800", "gpu=hopper,net=roce", True),
        ("H20", "gpu=hopper,net=roce", True),
        ("A100", "gpu=ampere,net=roce", False), ("A800", "gpu=ampere,net=roce", False), ("None", "", False),
    ],
)  # fmt: skip
def test_simai_says_which_gpus_there_are(tmp_path, gpu, hardware, adds):
    network = read_simai(simai(tmp_path, gpu))
    assert network.hardware == hardware
    assert network.aggregates[network.nodes.index("nvswitch1")] == adds
    assert not network.aggregates[network.nodes.index("switch0")]


def test_gpus_of_simai_reach_each_other_by_their_nvswitch_and_the_others_by_their_own_port(tmp_path):
    network = read_simai(simai(tmp_path))
    for a, b, via in ((0, 3, "nvswitch0"), (0, 4, "switch0"), (5, 6, "nvswitch1")):
        links = find_routes(network, a, b).link
        assert [network.nodes[network.dst[k]] for k in links] == [via, f"gpu{b}"]


def test_ports_of_gpus_are_nics_to_nccl(tmp_path):
    network = read_simai(simai(tmp_path))
    setting = setting_of(network, place(network, 8), 8, NcclOptions())
    ring = setting.channels["ring"]
    assert (ring.n * ring.inter, setting.one_nic_tree) == (4 * 48e9, True)  # no second GPU is near a port
    assert ranges(setting, "all_reduce", 2**28)[-1].cell.name == "nvls_tree/simple"  # as of dgx-h100:n_gpus=4
    assert site_of(network, place(network, 8), setting).nics == 4 * 50e9
