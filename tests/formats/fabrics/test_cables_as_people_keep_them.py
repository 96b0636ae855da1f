"""Lists of cables with other headers and in other tables, and what other tools wrap LLDP's and NetBox's JSON into."""

import json
from pathlib import Path

import pytest

from commsim.core.errors import InputError
from commsim.formats.recognise import network_of_file

CABLES = [
    (host, f"mlx5_{nic}", f"leaf{nic}", str(i + 1), 100 if (i, nic) == (2, 1) else 400)
    for i, host in enumerate(("node0", "node1", "node2")) for nic in (0, 1)
]  # fmt: skip


def found(path: Path, options: str = "") -> tuple[tuple[str, ...], list[float]]:
    network = network_of_file(f"{path}{options}")
    assert network is not None
    assert len(set(network.machine[network.machine >= 0].tolist())) == 3
    return network.nodes, sorted(set((network.bandwidth * 8e-9).round(1).tolist()))


NODES = (*(f"node{i}.mlx5_{nic}" for i in range(3) for nic in range(2)), "leaf0", "leaf1")


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Cabling plan, third floor\n\ndevice,port,device,port,rate", "{0},{1},{2},{3},{4}G"),
        ("Cabling plan\ndevice;port;device;port;rate", "{0};{1};{2};{3};{4},0"),
        ("| a_device | a_port | b_device | b_port | rate |\n|---|:-:|---|---|--:|", "| {0} | {1} | {2} | {3} | {4}G |"),
        ("Host;HCA;Leaf;Leaf Port;Rate", "{0};{1};{2};{3};{4} Gb/s"),
        ("Hostname,NIC,Switch,Switchport,LinkSpeed", "{0},{1},{2},{3},{4}000"),
        ("node_a,port_a,node_b,port_b,speed_bps", "{0},{1},{2},{3},{4}000000000"),
        ("Link,Source Node Name,Source Port,Destination Node Name,Destination Port,Speed", "{5},{0},{1},{2},{3},{4}"),
        ("Device A,Termination A Type,Termination A,Device B,Termination B Type,Termination B,Speed",
         "{0},interface,{1},{2},interface,{3},{4}"),
        ("from,to,bandwidth", "{0}:{1},{2}:{3},{4}Gbps"),
        ("from,to,bandwidth", "{0}[{1}],{2}[{3}],{4}Gbps"),
        ("from,to,bandwidth", "{0} {1},{2} Ethernet1/{3},{4}Gbps"),
    ],
)  # fmt: skip
def test_a_list_of_cables_is_the_same_network_under_any_header(tmp_path: Path, header: str, row: str) -> None:
    path = tmp_path / "c.csv"
    rows = [row.format(*cable, i + 1) for i, cable in enumerate(CABLES)]
    path.write_text("\n".join([header, *rows, ""]))
    assert found(path) == (NODES, [100.0, 400.0])


def test_numbers_of_links_are_no_state(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    rows = [f"{i},node{i},mlx5_0,leaf0,{i},400" for i in range(12)]
    path.write_text("\n".join(["link,a_device,a_port,b_device,b_port,rate", *rows, ""]))
    network = network_of_file(str(path))
    assert network is not None
    assert network.n_links == 24


def test_a_cable_that_is_listed_again_or_by_its_other_end_is_one(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    rows = [f"{a},{p},{b},{q},400" for a, p, b, q, _ in CABLES]
    again = [rows[0], *(f"{b},{q},{a},{p},400" for a, p, b, q, _ in CABLES)]
    path.write_text("\n".join(["device,port,device,port,rate", *rows, *again, ""]))
    network = network_of_file(str(path))
    assert network is not None
    assert network.n_links == 2 * len(CABLES)
    assert "7 rows of cables that are listed already, left out" in "; ".join(map(str, network.told))


def test_a_device_behind_a_rack_is_no_port(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("from,to,rate\nrack1:node0,rack1:leaf0,400G\nrack1:node1,rack1:leaf0,400G\n")
    network = network_of_file(str(path))
    assert network is not None
    assert network.nodes == ("rack1:node0", "rack1:node1", "rack1:leaf0")


def lldp_of(host: str) -> dict[str, object]:
    ports = {
        nic: {
            "chassis": {leaf: {"capability": [{"type": "Bridge", "enabled": True}]}},
            "port": {"id": {"type": "ifname", "value": port}, "auto-negotiation": {"current": f"{rate}GBase-CR4"}},
        }
        for own, nic, leaf, port, rate in CABLES if own == host
    }  # fmt: skip
    return {"lldp": {"interface": [{nic: said} for nic, said in ports.items()]}}


HOSTS = ("node0", "node1", "node2")


@pytest.mark.parametrize(
    "tree",
    [
        {host: lldp_of(host) for host in HOSTS},
        {host: {"rc": 0, "stdout": json.dumps(lldp_of(host)), "stderr": ""} for host in HOSTS},
        [{"host": host, **lldp_of(host)} for host in HOSTS],
        [{"hostname": host, "output": lldp_of(host)} for host in HOSTS],
    ],
)
def test_outputs_of_lldpcli_of_several_boxes_in_one_file(tmp_path: Path, tree: object) -> None:
    path = tmp_path / "all.json"
    path.write_text(json.dumps(tree))
    assert found(path) == (NODES, [100.0, 400.0])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("LLDP neighbors:\n---\nInterface: eth0, via: LLDP\n", "LLDP's neighbours as text"),
        ("lldp.eth0.chassis.name=leaf0\n", "LLDP's neighbours as text"),
        ('Ca\t : 0x02 ports 1 devid 0x1 vendid 0x2 "node0 mlx5_0"\n', "list of nodes, without cables"),
    ],
)
def test_what_has_the_cables_in_another_form_says_which_is_read(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(InputError, match=what):
        network_of_file(str(tmp_path / "a.txt"))


def netbox(shape: str) -> object:
    rows = []
    for host, nic, leaf, port, _ in CABLES:
        ends = [{"name": name, "device": {"name": device}} for device, name in ((host, nic), (leaf, port))]
        if shape == "old":
            rows.append({"termination_a": ends[0], "termination_a_type": "dcim.interface", "termination_b": ends[1],
                         "termination_b_type": "dcim.interface", "status": {"value": "connected"}})  # fmt: skip
        elif shape == "graphql":
            rows.append({"a_terminations": [ends[0]], "b_terminations": [ends[1]], "status": "STATUS_CONNECTED"})
        else:
            a, b = ([{"object_type": "dcim.interface", "object": end}] for end in ends)
            rows.append({"a_terminations": a, "b_terminations": b, "status": {"value": "connected"}})
    others = {"termination_a": {"cid": "1"}, "termination_a_type": "circuits.circuittermination"}
    every = [*rows, others] if shape == "old" else rows
    return {"data": {"cable_list": rows}} if shape == "graphql" else {"count": 1, "results": every} if shape else rows


@pytest.mark.parametrize("shape", ["", "rest", "old", "graphql"])
def test_netbox_s_cables_in_all_its_forms(tmp_path: Path, shape: str) -> None:
    path = tmp_path / "cables.json"
    path.write_text(json.dumps(netbox(shape)))
    assert found(path, ":rate=400Gbps") == (NODES, [400.0])


def cables_with(path: Path, header: str, *cells: str) -> tuple[list[float], str]:
    """Latencies of the cables of a list that has one more column, in ns, and what is said of its columns."""
    rows = [f"h{i},s0,400G,{cell}" for i, cell in enumerate(cells)]
    path.write_text("\n".join([f"from,to,rate,{header}", *rows, ""]))
    network = network_of_file(str(path))
    assert network is not None
    half = network.n_links // 2
    assert (network.latency[:half] == network.latency[half:]).all()
    said = next(one.text for one in network.told if one.text.startswith("columns: "))
    return (network.latency[:half] * 1e9).round(6).tolist(), said.removeprefix("columns: from to to, rate rate")


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("latency", ("50us", "1.5 us", "500ns")),
        ("Latency (us)", ("50", "1.5", "500ns")),
        ("delay_ns", ("50000", "1500", "500")),
        ("link latency", ("50us", "1.5us", "")),  # one that is not known is a cable's usual one
    ],
)
def test_a_column_of_latencies_is_each_cable_s_latency(tmp_path: Path, header: str, cells: tuple[str, ...]) -> None:
    """The column was dropped without a word: cables of 50 us and of 500 ns had the same times."""
    assert cables_with(tmp_path / "c.csv", header, *cells) == ([50000, 1500, 500], f", latency {header}")


def test_a_latency_without_a_unit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"c.csv, line 3: latency needs a unit: a time such as 1.5us, got '50'"):
        cables_with(tmp_path / "c.csv", "latency", "1us", "50")


def test_columns_that_are_not_read_are_named(tmp_path: Path) -> None:
    latencies, said = cables_with(tmp_path / "c.csv", "Length (m),Colour,Rack,Vendor", "1,red,A,x", "2,red,B,x")
    assert latencies == [500, 500]
    assert said == "; not read: Length (m), Colour, Rack and 1 more"


@pytest.mark.parametrize("rest", ["100Gbps,2us", "100Gbps", "", "100Gbps,2us,red"])
@pytest.mark.parametrize("names", [("node0", "node1"), ("h0", "h1")])
def test_the_first_cable_of_a_list_without_a_header_is_no_header(
    tmp_path: Path, rest: str, names: tuple[str, str]
) -> None:
    """A cable to leaf0 was taken for the header: node0, or all hosts and a cable of leaf0, were dropped."""
    path = tmp_path / "c.csv"
    ends = [
        f"{names[0]},p0,leaf0,p1",
        f"{names[1]},p0,leaf1,p1",
        *(f"leaf{i},u{j},spine{j},p{i}" for i in (0, 1) for j in (0, 1)),
    ]
    path.write_text("\n".join([*(f"{end},{rest}".rstrip(",") for end in ends), ""]))
    if rest in ("100Gbps,2us", "100Gbps"):
        network = network_of_file(str(path))
        assert network is not None
        assert (len(network.hosts), network.n_links) == (2, 12)
        assert network.latency.max() == (2e-6 if "us" in rest else 500e-9)
    else:
        with pytest.raises(
            InputError, match=r"c.csv, line [13]: leaf0 is a device, not the name of a column: write a header"
        ):
            network_of_file(str(path))


def test_one_page_of_netbox_s_cables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps({"count": 900, "next": "http://n/?offset=6", "results": netbox("")}))
    with pytest.raises(InputError, match="is one page, 6 of 900 cables; ask for all"):
        network_of_file(f"{tmp_path / 'c.json'}:rate=400Gbps")
