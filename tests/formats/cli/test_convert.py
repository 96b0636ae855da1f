"""``import`` and ``export`` of ``topo``, ``schedule`` and ``workload``, and their ``formats``."""

import json
import re

import pytest

from collectives import COLLECTIVES
from commsim.formats.catalogue import FORMATS, function
from topologies import TOPOLOGIES


@pytest.mark.nojit
def test_every_format_can_do_what_it_says():
    ways = [way for one in FORMATS.values() for way in (*one.reads.values(), *one.writes.values())]
    assert all(callable(function(way) if isinstance(way, str) else way) for way in ways)


@pytest.mark.nojit
def test_the_list_names_every_format(commsim):
    listed = "".join(commsim(verb, "formats").out for verb in ("topo", "schedule", "workload"))
    assert all(re.search(rf"^{name} ", listed, re.MULTILINE) for name in FORMATS)
    assert "graphml" not in commsim("schedule", "formats").out


def run(commsim, collective, size):
    where = ("--collective", str(collective), "--topology", "star:n_hosts=4")
    return commsim.results("run", "--overhead", "0us", *where, "-b", size, "-e", size)["results"][0]["time_s"]


@pytest.mark.parametrize("suffix", ["xml", "goal", "bin", "et"])
def test_a_schedule_that_goes_out_and_comes_in_takes_as_long(commsim, tmp_path, suffix):
    wanted = run(commsim, "ring_all_reduce", "1M")
    out, back = tmp_path / f"x.{suffix}", tmp_path / "x.npz"
    size = [] if suffix == "xml" else ["--size", "1M"]
    assert commsim("schedule", "export", "ring_all_reduce", "--ranks", 4, "-o", out, *size).code == 0
    assert commsim("schedule", "import", out, "-o", back).code == 0
    said = re.search(r"-b (\d+)", commsim.out)
    assert run(commsim, back, said[1] if said else "1M") == pytest.approx(wanted, rel=1e-12)


def test_an_exported_file_is_proved_and_shown_as_what_it_was_made_of(commsim, tmp_path):
    """`schedule check` and `show` refused files of MSCCL, which had to be imported first."""
    out = tmp_path / "x.xml"
    named = ("halving_doubling_all_reduce", "--ranks", 8)
    assert commsim("schedule", "export", *named, "-o", out).code == 0
    assert commsim.results("schedule", "show", out)["results"] == commsim.results("schedule", "show", *named)["results"]
    (row,) = commsim.results("schedule", "check", out)["results"]
    assert (row["collective"], row["n_ranks"]) == ("halving_doubling_all_reduce", 8)
    assert "halving_doubling_all_reduce on 8 ranks: correct, by " in commsim.out
    out.write_text(re.sub(r'<step s="\d+" type="rrc"', lambda step: step[0].replace("rrc", "r"), out.read_text()))
    assert "x.xml" in commsim.refuses("schedule", "check", out)
    assert "`commsim schedule import" in commsim.refuses("schedule", "save", out, "-o", tmp_path / "y.npz")
    out.write_text('<system version="1"/>')
    assert "x.xml (nccl-topology) holds no schedule" in commsim.refuses("schedule", "check", out)


@pytest.mark.parametrize(
    ("name", "to"),
    [("x.yml", None), ("x.graphml", None), ("x.json", "node-link"), ("x.txt", "ns3"), ("y.txt", "simai")],
)
def test_a_network_that_goes_out_and_comes_in_is_the_same(commsim, tmp_path, name, to):
    from commsim.prediction.inputs import load_network

    flags = ["--to", to] if to else []
    assert commsim("topo", "export", "star:n_hosts=4,bandwidth=30Gbps", "-o", tmp_path / name, *flags).code == 0
    flags = ["--from", to] if to else []
    assert commsim("topo", "import", tmp_path / name, "-o", tmp_path / "back.npz", *flags).code == 0
    back, star = load_network(str(tmp_path / "back.npz")), load_network("star:n_hosts=4,bandwidth=30Gbps")
    assert (back.bandwidth == star.bandwidth).all()
    assert (back.src == star.src).all()


def test_a_goal_file_with_computation_becomes_a_workload_and_that_becomes_traces(commsim, tmp_path):
    (tmp_path / "x.goal").write_text(
        "num_ranks 2\nrank 0 {\na: calc 1200\nb: send 4096b to 1\nb requires a\n}\nrank 1 {\nc: recv 4096b from 0\n}\n"
    )
    assert commsim("schedule", "import", tmp_path / "x.goal", "-o", tmp_path / "x.npz").code == 2
    assert "workload" in commsim.err
    assert commsim("workload", "import", tmp_path / "x.goal", "-o", tmp_path / "x.toml").code == 0
    assert commsim("workload", "export", tmp_path / "x.toml", "-o", tmp_path / "t.et").code == 0
    assert sorted(p.name for p in tmp_path.glob("t*")) == ["t.0.et", "t.1.et"]
    assert commsim("workload", "import", tmp_path / "t.et", "-o", tmp_path / "again.json").code == 0
    names = [task.get("operation", "") for task in json.loads((tmp_path / "again.json").read_text())["tasks"]]
    assert sorted(names) == ["", "send"]


def test_from_goal_to_goal_nothing_is_changed_and_to_chakra_times_and_sizes_are_kept(commsim, tmp_path):
    first = tmp_path / "a.goal"
    first.write_text(
        "num_ranks 2\nrank 0 {\nl0: calc 1500\nl1: send 4096b to 1 tag 7 cpu 1 nic 1\nl1 requires l0\n}\n"
        "rank 1 {\nl0: recv 4096b from 0 tag 7\nl1: calc 10\nl1 irequires l0\n}\n"
    )
    assert commsim("workload", "export", first, "-o", tmp_path / "a.bin").code == 0
    assert commsim("workload", "export", tmp_path / "a.bin", "-o", tmp_path / "b.goal").code == 0
    assert (tmp_path / "b.goal").read_text() == first.read_text()
    assert commsim("workload", "export", first, "-o", tmp_path / "t.et").code == 0
    assert commsim("workload", "export", tmp_path / "t.et", "-o", tmp_path / "c.goal").code == 0
    assert re.findall(r"\d+b|calc \d+", (tmp_path / "c.goal").read_text()) == ["calc 1500", "4096b", "4096b", "calc 10"]
    first.write_text(first.read_text().replace("recv 4096b", "recv 4095b"))
    assert "which takes 4095" in commsim.refuses("workload", "export", first, "-o", tmp_path / "d.bin")
    first.write_text(first.read_text().replace("recv 4095b", "recv 4096b").replace("l1 req", "l0 requires l1\nl1 req"))
    assert "a deadlock" in commsim.refuses("workload", "export", first, "-o", tmp_path / "d.bin")


def test_own_code_is_written_as_what_it_makes(commsim, tmp_path, forgets):
    forgets(COLLECTIVES, TOPOLOGIES)
    ring, rack = tmp_path / "own_ring.py", tmp_path / "own_rack.py"
    ring.write_text(
        "from collectives import COLLECTIVES, collective\nfrom commsim import Schedule\n\n@collective('all_gather')\n"
        "def own_ring(n_ranks: int) -> Schedule:\n    return COLLECTIVES['ring_all_gather'].build(n_ranks)\n"
    )
    rack.write_text(
        "from commsim import Network\nfrom topologies import TOPOLOGIES, topology\n\n@topology\n"
        "def own_rack(n_hosts: int) -> Network:\n    return TOPOLOGIES['star'].build(n_hosts)\n"
    )
    of_name = {"size": "4096", "ranks": "4"}
    flags = [word for key, value in of_name.items() for word in (f"--{key}", value)]
    assert commsim("schedule", "export", "ring_all_gather", *flags, "-o", tmp_path / "a.goal").code == 0
    assert commsim("schedule", "export", ring, *flags, "-o", tmp_path / "b.goal").code == 0
    assert (tmp_path / "a.goal").read_text() == (tmp_path / "b.goal").read_text()
    assert commsim("schedule", "export", f"{ring}:own_ring", "--ranks", 4, "-o", tmp_path / "own.npz").code == 0
    assert commsim("topo", "export", f"{rack}:n_hosts=4", "-o", tmp_path / "own.graphml").code == 0
    assert commsim("topo", "export", f"{rack}:n_hosts=4", "-o", tmp_path / "net.npz").code == 0
    assert commsim("topo", "show", tmp_path / "net.npz").code == 0
    assert "registers no topology" in commsim.refuses("topo", "export", ring, "-o", tmp_path / "x.npz")
    assert "is a network, and goal holds a" in commsim.refuses(
        "topo", "export", f"{rack}:n_hosts=4", "-o", tmp_path / "x.goal"
    )


def test_what_is_no_file_and_no_name_is_said_to_be_neither(commsim, tmp_path):
    assert "no such file, and no collective or topology" in commsim.refuses(
        "schedule", "export", "ring_all_redduce", "-o", "x.xml"
    )
    assert "--helpers must be 0 or more, got -1" in commsim.refuses(
        "schedule", "import", "x.goal", "-o", "x.npz", "--helpers", "-1"
    )


def test_a_system_layer_names_our_collective_for_its_network(commsim, tmp_path):
    assert commsim("topo", "export", "torus:dims=4x2", "-o", tmp_path / "n.yml").code == 0
    path = tmp_path / "s.json"
    given = ("--network", tmp_path / "n.yml")
    assert (
        commsim(
            "schedule", "export", "torus_all_reduce:dims=4x2", "-o", path, "--ranks", 8, "--to", "astra-system", *given
        ).code
        == 0
    )
    assert json.loads(path.read_text())["all-reduce-implementation"] == ["ring", "ring"]
    assert commsim("schedule", "import", path, "-o", tmp_path / "s.npz", *given).code == 0
    assert "torus_all_reduce:dims=4x2" in commsim.out
    assert commsim("schedule", "import", path, "-o", tmp_path / "t.npz").code == 2
    assert "--network" in commsim.err


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (["ring_all_reduce", "x.xml"], "number of ranks"),
        (["ring_all_reduce", "x.yml", "--ranks", "4"], "is a schedule, and astra-network"),
        (["star:n_hosts=4", "x.goal"], "is a network"), (["star:n_hosts=4", "x.what"], "suffix"),
        (["star:n_hosts=4", "x.yml", "--to", "what"], "unknown format"), (["missing.xml", "x.npz"], "missing"),
        (["ring_all_reduce", "x.goal", "--ranks", "4"], "give --size"),
        (["a.topo", "b.npz", "--from", "htsim-flows"], "unknown"),
        (["ring_all_reduce", "x.xml", "--ranks", "4", "--min-bytes", "2M", "--max-bytes", "1M"], "min_bytes <"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_refused_and_writes_nothing(commsim, tmp_path, monkeypatch, args, wanted):
    monkeypatch.chdir(tmp_path)
    source, target, *flags = args
    way = "import" if "--from" in flags or source == "missing.xml" else "export"
    assert commsim("schedule", way, source, "-o", target, *flags).code == 2
    assert wanted in commsim.err
    assert not list(tmp_path.iterdir())
