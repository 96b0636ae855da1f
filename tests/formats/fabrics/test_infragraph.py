"""InfraGraph's files are read and written; its own package reads what is written."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import link_names
from commsim.formats.fabrics.infragraph import read_infragraph
from commsim.formats.fabrics.infragraph_writer import write_infragraph
from commsim.prediction.inputs import load_network

SERVER = {
    "name": "server",
    "components": [{"name": "xpu", "count": 2, "choice": "xpu"}, {"name": "nic", "count": 2, "choice": "nic"}],
    "links": [{"name": "pcie", "description": "PCIe x16"}],
    "edges": [{"ep1": {"component": "xpu"}, "ep2": {"component": "nic"}, "scheme": "one2one", "link": "pcie"}],
}
SWITCH = {"name": "switch", "components": [{"name": "port", "count": 8, "choice": "port"}]}


def infrastructure(edges: list[tuple[str, str, str, str, str]], rate: float = 100) -> dict[str, object]:
    return {
        "name": "two tiers",
        "devices": [SERVER, SWITCH],
        "instances": [
            {"name": "host", "device": "server", "count": 3},
            {"name": "tor", "device": "switch", "count": 2},
        ],
        "links": [{"name": "cable", "physical": {"bandwidth": {"gigabits_per_second": rate}, "latency": {"ns": 700}}}],
        "edges": [
            {
                "ep1": {"instance": a, "component": x},
                "ep2": {"instance": b, "component": y},
                "scheme": s,
                "link": "cable",
            }
            for a, x, b, y, s in edges
        ],
    }


def test_slices_name_ends_as_python_does(tmp_path: Path) -> None:
    edges = [
        ("host[0:3]", "nic[0]", "tor[0]", "port[0:3]", "one2one"),
        ("host[:]", "nic[-1]", "tor[1]", "port[0:3]", "one2one"),
    ]
    (tmp_path / "i.json").write_text(json.dumps(infrastructure(edges)))
    network = load_network(str(tmp_path / "i.json"))
    names = {network.link_name(i) for i in range(network.n_links // 2)}
    assert names == {f"host{i}.nic{k}:tor{k}" for i in range(3) for k in range(2)}
    assert set(network.bandwidth) == {100e9 / 8}
    assert set(network.latency) == {700e-9}
    assert network.machine[network.hosts].tolist() == [0, 0, 1, 1, 2, 2]


def test_every_end_meets_every_other_end_of_many_to_many(tmp_path: Path) -> None:
    edges = [("host", "nic[0]", "tor", "port[0]", "many2many")]
    (tmp_path / "i.json").write_text(json.dumps(infrastructure(edges)))
    assert read_infragraph(tmp_path / "i.json").n_links == 2 * 3 * 2


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_a_fabric_that_is_written_is_read_back(suffix: str, tmp_path: Path) -> None:
    network = load_network("leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=2,oversubscription=1")
    path = tmp_path / f"x.infragraph.{suffix}"
    write_infragraph(network, path)
    back = load_network(str(path))
    assert sorted(link_names(back)) == sorted(link_names(network))
    np.testing.assert_allclose(np.sort(back.bandwidth), np.sort(network.bandwidth), rtol=1e-12)


def test_machines_that_are_written_are_read_back_with_their_insides(tmp_path: Path) -> None:
    network = load_network("dgx-h100@star:machines=2")
    lost = write_infragraph(network, tmp_path / "x.infragraph.yaml")
    back = load_network(str(tmp_path / "x.infragraph.yaml"))
    assert set(back.nodes) == set(network.nodes)
    assert (np.sort(back.kind) == np.sort(network.kind)).all()
    assert any("metric" in one for one in lost)


def test_a_machine_takes_the_place_of_devices_whose_links_have_no_rate(tmp_path: Path) -> None:
    edges = [("host", "nic[0]", "tor[0]", "port", "one2one"), ("host", "nic[1]", "tor[1]", "port", "one2one")]
    (tmp_path / "i.json").write_text(json.dumps(infrastructure(edges)))
    machine = "nvswitch_host:n_gpus=2,n_nics=2,n_pcie_switches=2"
    network = load_network(f"{machine}@{tmp_path / 'i.json'}")
    assert network.nodes[0] == "host0.gpu0"
    assert len(network.endpoints) == 6


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"edges": []}, "no edge joins instances"),
        ({"instances": [{"name": "host", "device": "box", "count": 1}]}, "which is missing"),
        ({"links": []}, "has no bandwidth"),
        ({"devices": 3}, "must be a list"),
        ({"devices": [SERVER, SWITCH, SERVER]}, "devices has the name 'server' 2 times"),
        ({"instances": [{"name": "host", "device": "server", "count": n} for n in (1, 2)]}, "'host' 2 times"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], wanted: str, tmp_path: Path) -> None:
    tree = infrastructure([("host", "nic[0]", "tor[0]", "port", "one2one")]) | change
    (tmp_path / "i.json").write_text(json.dumps(tree))
    with pytest.raises(InputError, match=wanted):
        read_infragraph(tmp_path / "i.json")


def test_its_own_package_reads_what_is_written(tmp_path: Path) -> None:
    package = pytest.importorskip("infragraph")
    service = pytest.importorskip("infragraph.infragraph_service")
    network = dataclasses.replace(load_network("dgx-h100@star:machines=2"), name="x")
    write_infragraph(network, tmp_path / "x.infragraph.yaml")
    tree = package.Infrastructure()
    tree.deserialize((tmp_path / "x.infragraph.yaml").read_text())
    graph = service.InfraGraphService()
    graph.set_graph(tree)
    assert graph.get_networkx_graph().number_of_nodes() >= network.n_nodes
