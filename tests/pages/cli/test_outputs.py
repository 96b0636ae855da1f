import xml.etree.ElementTree as ElementTree

import pytest

from commsim import predict
from commsim.core.files.store import save
from commsim.prediction.inputs import load_network

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps"


def titles(path):
    root = ElementTree.parse(path).getroot()
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]


def test_topo_show_draws_the_network_beside_its_numbers(commsim, tmp_path):
    row = commsim.results("topo", "show", NETWORK, "--draw", tmp_path / "net.svg")["results"][0]
    assert row["n_links"] == 2 * (8 + 4)
    assert "h7: host" in titles(tmp_path / "net.svg")
    assert f"# {tmp_path / 'net.svg'}: drawn" in commsim.out


def test_hosts_are_one_box_when_asked_or_when_there_are_many(commsim, tmp_path):
    path = tmp_path / "net.svg"
    assert commsim("topo", "show", NETWORK, "--draw", path, "--collapse").code == 0
    assert "4 hosts: h4 … h7" in titles(path)
    assert commsim("topo", "show", "fat_tree:k=8", "--draw", path).code == 0
    assert "collapsed, since there are more than 48 hosts" in commsim.out
    assert commsim("topo", "show", "fat_tree:k=8", "--draw", path, "--no-collapse").code == 0
    assert "collapsed" not in commsim.out
    assert "h127: host" in titles(path)


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_a_saved_result_colours_the_links(commsim, tmp_path, suffix):
    saved = tmp_path / f"result.{suffix}"
    save(predict("ring_all_reduce", load_network(NETWORK), 2**20, overhead="0us"), saved)
    assert commsim("topo", "show", NETWORK, "--draw", tmp_path / "net.svg", "--load", saved).code == 0
    assert any("of capacity" in title for title in titles(tmp_path / "net.svg"))
    assert (
        commsim(
            "run", "--overhead", "0us", "--topology", NETWORK, "-b", "1M", "-e", "1M", "--draw", tmp_path / "run.svg"
        ).code
        == 0
    )
    assert (tmp_path / "run.svg").read_text() == (tmp_path / "net.svg").read_text()


def test_run_draws_the_winner_of_a_ranking_too(commsim, tmp_path):
    commsim("run", "--operation", "broadcast", "--topology", NETWORK, "--draw", tmp_path / "net.svg")
    assert commsim.code == 0
    assert any("of capacity" in title for title in titles(tmp_path / "net.svg"))


def test_a_png_is_a_png(commsim, tmp_path):
    pytest.importorskip("matplotlib")
    assert commsim("topo", "show", NETWORK, "--draw", tmp_path / "net.png").code == 0
    assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")


def test_schedule_show_draws_small_schedules(commsim, tmp_path):
    assert commsim("schedule", "show", "ring_all_reduce", "--ranks", 4, "--draw", tmp_path / "ring.svg").code == 0
    said = titles(tmp_path / "ring.svg")
    assert "hop 0: rank 1 sends chunk 1 of input; it is added to the same of input at rank 2" in said
    message = commsim.refuses("schedule", "show", "ring_all_reduce", "--ranks", 64, "--draw", tmp_path / "large.svg")
    assert "8064 transfers" in message
    assert not (tmp_path / "large.svg").exists()


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["topo", "show", NETWORK, "--draw", "net.pdf"], ".svg or .png"),
        (["topo", "show", NETWORK, "--draw", "/nonexistent/net.svg"], "no such folder"),
        (["topo", "show", NETWORK, "--load", "x.json"], "--load changes nothing without --draw"),
        (["topo", "show", NETWORK, "--collapse"], "--collapse changes nothing without --draw"),
        (["topo", "show", NETWORK, "--draw", "net.svg", "--load", "gone.json"], "gone.json"),
        (["run", "--topology", NETWORK, "--draw", "net.gif"], ".svg or .png"),
        (["run", "--topology", NETWORK, "--draw", "x.svg", "--engine", "closed-form"], "no links"),
        (["schedule", "show", "ring_all_reduce", "--ranks", "4", "--draw", "ring"], ".svg or .png"),
    ],
)
def test_bad_input_gives_one_clear_line_and_no_file(commsim, tmp_path, monkeypatch, argv, what):
    monkeypatch.chdir(tmp_path)
    assert what in commsim.refuses(*argv)
    assert list(tmp_path.iterdir()) == []


def test_loads_of_another_network_are_refused(commsim, tmp_path):
    save(predict("ring_all_reduce", load_network("star:n_hosts=3"), 2**20, overhead="0us"), tmp_path / "result.json")
    message = commsim.refuses("topo", "show", NETWORK, "--draw", tmp_path / "x.svg", "--load", tmp_path / "result.json")
    assert "the result has loads of 6 links, but leaf_spine" in message
