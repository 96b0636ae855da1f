"""One cluster as each tool prints it is one network; what is down or slow in it is found."""

import dataclasses
import json
from pathlib import Path

import fabric_of_nodes as made
import pytest

import commsim as cs
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.formats.recognise import network_of_file
from commsim.prediction.inputs import load_network

FORMS = ("csv", "ibnetdiscover", "ports", "iblinkinfo", "lldp", "netbox", "netq")


def written(fabric: made.Fabric, form: str, folder: Path) -> str:
    if form == "lldp":
        return str(made.lldp(fabric, folder / "outputs"))
    name, text = {
        "csv": ("cables.csv", made.csv), "ibnetdiscover": ("fabric.txt", made.ibnetdiscover),
        "ports": ("ports.out", made.port_report), "iblinkinfo": ("links.out", made.iblinkinfo),
        "netbox": ("cables.json", made.netbox_json), "netq": ("neighbours.json", made.netq_json),
    }[form]  # fmt: skip
    (folder / name).write_text(text(fabric))
    return str(folder / name) + (":rate=400Gbps" if form in ("netbox", "netq") else "")


def read(fabric: made.Fabric, form: str, folder: Path) -> Network:
    network = network_of_file(written(fabric, form, folder))
    assert network is not None
    return network


def said(network: Network) -> str:
    return "; ".join(str(remark) for remark in network.told)


def plain(network: Network) -> Network:
    return dataclasses.replace(network, name="fabric")


@pytest.mark.parametrize("form", FORMS[1:])
def test_sixty_four_nodes_are_one_network_in_every_form(form: str, tmp_path: Path) -> None:
    fabric = made.rails(64)
    as_csv = read(fabric, "csv", tmp_path)
    assert as_csv.n_nodes == 512 + 16 + 4
    assert plain(read(fabric, form, tmp_path)) == plain(as_csv)


@pytest.mark.parametrize("names", [("hostname", "ifname", "peerHostname", "peerIfname"),
                                   ("Hostname", "Interface", "Peer Hostname", "Peer Interface")])  # fmt: skip
def test_rows_of_neighbours_may_have_other_names(names: tuple[str, ...], tmp_path: Path) -> None:
    rows = [dict(zip(names, ("leaf1", f"swp{i}", f"node{i}", "eth0"), strict=True)) for i in range(4)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    network = network_of_file(f"{tmp_path / 'rows.json'}:rate=100Gbps")
    assert network is not None
    assert (network.n_nodes, network.n_links) == (5, 8)
    rows[2].pop(names[3])
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    with pytest.raises(InputError, match="row 3: lacks far_port"):
        network_of_file(f"{tmp_path / 'rows.json'}:rate=100Gbps")


def test_one_cluster_in_two_forms_takes_the_same_time(tmp_path: Path) -> None:
    fabric = made.rails(4, per_leaf=4, n_spines=2)
    times = [
        cs.predict("nccl", f"dgx-h100@{written(fabric, form, tmp_path)}", "64MiB").time
        for form in ("csv", "ibnetdiscover")
    ]
    assert times[0] == times[1]


@pytest.mark.parametrize("form", ["csv", "ibnetdiscover", "ports", "iblinkinfo", "lldp"])
def test_a_port_at_one_lane_is_found_and_named(form: str, tmp_path: Path) -> None:
    network = read(made.changed(made.rails(8, 4), "node03", "mlx5_2", 1), form, tmp_path)
    slow = network.bandwidth.argmin()
    assert network.link_name(int(slow)) == "node03.mlx5_2:leaf02"
    assert network.bandwidth[slow] == pytest.approx(100e9 / 8)
    assert "1 cable slower than the others: node03.mlx5_2:leaf02 at 0.25 of its rate" in said(network)


@pytest.mark.parametrize("form", ["csv", "ibnetdiscover", "ports", "iblinkinfo", "lldp"])
def test_a_port_that_is_down_has_no_cable_and_is_named(form: str, tmp_path: Path) -> None:
    network = read(made.changed(made.rails(8, 4), "node03", "mlx5_2", 0), form, tmp_path)
    nic = network.nodes.index("node03.mlx5_2")
    assert nic not in network.src
    assert "node03.mlx5_2" in said(network)
    assert "leaf02 has 11, others 12" in said(network)


def test_a_list_of_cables_that_are_all_down_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("device,port,device,port,rate,state\nnode0,mlx5_0,leaf0,1,400G,down\n")
    with pytest.raises(InputError, match="no cable is up of 1"):
        load_network(str(path))
    assert load_network(f"{path}:healthy=true").n_links == 2


def test_healthy_gives_a_slow_port_the_rate_of_the_others(tmp_path: Path) -> None:
    source = written(made.changed(made.rails(4, 2), "node03", "mlx5_1", 1), "ibnetdiscover", tmp_path)
    mended = load_network(f"{source}:healthy=true")
    assert set(mended.bandwidth) == {400e9 / 8}
    assert "healthy=true" in said(mended)


def test_a_slow_rail_of_a_machine_slows_its_collective(tmp_path: Path) -> None:
    source = written(made.changed(made.rails(4, per_leaf=4), "node02", "mlx5_3", 1), "ibnetdiscover", tmp_path)
    slow, mended = (cs.predict("nccl", f"dgx-h100@{text}", "256MiB") for text in (source, f"{source}:healthy=true"))
    assert slow.time > 2 * mended.time


def test_machines_are_named_by_the_nodes_of_the_file(tmp_path: Path) -> None:
    network = load_network(f"dgx-h100@{written(made.rails(4, per_leaf=4), 'iblinkinfo', tmp_path)}")
    assert network.nodes[0] == "node00.gpu0"
    assert "node03.nic7:leaf07" in {network.link_name(i) for i in range(network.n_links)}
    assert "nic0 to nic7 are mlx5_0 to mlx5_7" in said(network)


@pytest.mark.parametrize(
    "header",
    [
        "a_device,a_port,b_device,b_port,speed,state", "device,port,device,port,rate,status",
        "Device A,Termination A,Device B,Termination B,Speed,Status", "src,src_port,dst,dst_port,bw,link_state",
        "side_a_device,side_a_name,side_b_device,side_b_name,speed,status",
        "local host,local interface,remote host,remote interface,capacity,oper status",
        "SourceNode,SourcePort,TargetNode,TargetPort,LinkSpeed,State", "server,nic,switch,switch port,gbps,state",
        "from,from_port,to,to_port,speed,state",
    ],
)  # fmt: skip
def test_header_names_are_guessed_and_said(header: str, tmp_path: Path) -> None:
    fabric = made.rails(4, 2)
    (tmp_path / "c.csv").write_text(made.csv(fabric, header))
    network = load_network(str(tmp_path / "c.csv"))
    assert plain(network) == plain(read(fabric, "ibnetdiscover", tmp_path))
    assert "columns: " in said(network)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_list_without_header_is_taken_in_its_order(separator: str, tmp_path: Path) -> None:
    rows = [("node0", "mlx5_0", "leaf0", "1", "400G"), ("node1", "mlx5_0", "leaf0", "2", "400 Gb/s")]
    (tmp_path / "c.txt").write_text("\n".join(separator.join(row) for row in rows))
    network = load_network(str(tmp_path / "c.txt"))
    assert network.nodes == ("node0", "node1", "leaf0")
    assert "no header" in said(network)


@pytest.mark.parametrize(
    ("number", "gbps"), [("400", 400), ("400000", 400), ("100000000", 100), ("4xEDR", 100), ("HDR100", 100)]
)
def test_rates_without_a_unit_are_taken_by_their_size(number: str, gbps: float, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(f"device,port,device,port,speed\nnode0,mlx5_0,leaf0,1,{number}\n")
    assert load_network(str(tmp_path / "c.csv")).bandwidth[0] == gbps * 1e9 / 8


def test_adapters_of_switches_that_reduce_data_are_no_hosts(tmp_path: Path) -> None:
    text = made.ibnetdiscover(made.rails(2, 1))
    first = text.index("Switch")
    line = '[65]\t"H-00000000000000ff"[1](ff) \t\t# "Mellanox Technologies Aggregation Node" lid 99 4xNDR\n'
    end = text.index("\n", first) + 1
    (tmp_path / "f.txt").write_text(text[:end] + line + text[end:])
    network = load_network(str(tmp_path / "f.txt"))
    assert len(network.hosts) == 2
    assert "SHARP" in said(network)


def test_a_node_of_no_known_kind_is_a_line_that_cannot_be_read(tmp_path: Path) -> None:
    before, _, behind = made.ibnetdiscover(made.rails(2, 1)).rpartition('"S-')  # of a host's port
    (tmp_path / "f.txt").write_text(f'{before}"s-{behind}')  # one flipped bit
    with pytest.raises(InputError, match=r"line [0-9]+: a port is"):
        load_network(str(tmp_path / "f.txt"))


def test_both_ports_of_one_adapter_are_two_nics(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("device,port,device,port,rate\nnode0,p1,leaf0,1,100G\nnode0,p2,leaf1,1,100G\n"
                                    "node1,p1,leaf0,2,100G\nnode1,p2,leaf1,2,100G\n")  # fmt: skip
    network = load_network(str(tmp_path / "c.csv"))
    assert network.nodes[:4] == ("node0.p1", "node0.p2", "node1.p1", "node1.p2")
    assert network.machine[:4].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("device,port,device,port\nnode0,mlx5_0,leaf0,1\n", "has no rate; give one"),
        ("device,port,device,port,rate\nnode0,mlx5_0,leaf0,1,fast\n", "line 2: a rate is written as in 400G"),
        ("device,port,device,port,rate\nnode0,mlx5_0,node0,mlx5_0,1G\n", "a cable joins two ports"),
        ("device,port,device,port,rate\nleaf0,1,spine0,1,1G\n", "all taken for switches"),
        ("device,port,device,port,rate\n,mlx5_0,leaf0,1,1G\n", "a device at both ends"),
        ("device,port,device,port,rate\n", "lists no cable"),
        (
            "termination_a_type,termination_a_id,termination_b_type,termination_b_id,type,status\n1,2,3,4,5,6\n",
            "numbers of ports, no names",
        ),
    ],
)
def test_a_list_that_is_wrong_is_refused_in_one_line(text: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(InputError, match=wanted) as error:
        load_network(str(tmp_path / "c.csv"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('Switch\t4 "S-01"\t# "leaf"\n[1] nonsense\n', "line 2: a port is"),
        ("CA: node0 mlx5_0:\n 1 1[ ] ==( cut\n 1 1[ ] ==( 4X 25.78125 Gbps Active/ LinkUp)==> 2 1[ ] \"s\" ( )\n",
         "line 2: a port is"),
    ],
)  # fmt: skip
def test_an_output_that_is_cut_is_refused_with_its_line(text: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text(text)
    with pytest.raises(InputError, match=wanted):
        load_network(str(tmp_path / "f.txt"))
