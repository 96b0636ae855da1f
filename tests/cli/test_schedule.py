import re
from pathlib import Path

import pytest

import commsim as cs
from commsim.core.names.nodes_and_links import find_link


def test_show_prints_steps_bytes_and_volume_per_rank(commsim):
    tree = commsim.results("schedule", "show", "ring_all_reduce", "--ranks", 8, "--size", "1M")
    assert tree["config"]["n_hops"] == tree["config"]["n_steps"] == 14
    assert "14, the longest chain of transfers" in commsim.out
    assert len(tree["results"]) == 8
    for row in tree["results"]:
        assert row["messages"] == 14
        assert row["sent_B"] == row["received_B"] == pytest.approx(2 * 7 / 8 * 2**20)


def test_list_names_every_collective_with_its_operation(commsim):
    from collectives import COLLECTIVES

    rows = commsim.results("schedule", "list")["results"]
    assert [r["collective"] for r in rows] == list(COLLECTIVES)
    assert {r["collective"]: r["operation"] for r in rows}["pairwise_all_to_all"] == "all_to_all"


def test_list_and_show_tell_parameters_defaults_and_meanings(commsim):
    from collectives import COLLECTIVES

    rows = {row["collective"]: row for row in commsim.results("schedule", "list")["results"]}
    silent = [(name, key) for name, row in rows.items() for key in row["defaults"] if not row["meanings"][key]]
    assert silent == []
    assert rows["multi_ring_all_reduce"]["defaults"]["n_channels"] is None
    assert rows["binomial_broadcast"]["defaults"] == {"root": 0}
    assert "groups" not in rows["multi_ring_all_reduce"]["defaults"]  # the network says
    assert set(rows) >= set(COLLECTIVES)
    shown = commsim("schedule", "show", "chain_broadcast", "--ranks", 4, "--size", "64M").out
    assert "n_chunks = 91, by default: k. The best is" in shown
    assert (
        "root = 1: Rank that has the data." in commsim("schedule", "show", "chain_broadcast:root=1", "--ranks", 4).out
    )


def test_check_says_how_it_was_proved(commsim):
    assert commsim.results("schedule", "check", "ring_all_reduce", "--ranks", 8)["results"][0]["method"] == "exact"
    row = commsim.results("schedule", "check", "ring_all_reduce", "--ranks", 100)["results"][0]
    assert row["method"] == "fingerprint"
    assert 0 < row["failure_probability"] < 1e-12


def test_several_schedules_are_checked_at_once(commsim, tmp_path):
    names = ["ring_all_gather", "bruck_all_gather"]
    for name in names:
        commsim("schedule", "save", name, "--ranks", 5, "-o", tmp_path / f"{name}.npz")
    answer = commsim.results("schedule", "check", *(tmp_path / f"{name}.npz" for name in names))
    assert [row["collective"] for row in answer["results"]] == names
    assert [line.split(" on ")[0] for line in commsim.out.splitlines()] == names
    (tmp_path / "bad.npz").write_text("x")
    assert "bad.npz: not a readable" in commsim.refuses(
        "schedule", "check", names[0], tmp_path / "bad.npz", "--ranks", 5
    )


def test_a_saved_schedule_is_shown_like_the_built_one(commsim, tmp_path):
    commsim("schedule", "save", "ring_all_gather", "--ranks", 5, "-o", tmp_path / "ring.npz")
    saved = commsim.results("schedule", "show", tmp_path / "ring.npz")["results"]
    assert saved == commsim.results("schedule", "show", "ring_all_gather", "--ranks", 5)["results"]


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["show", "ring_all_reduce"], "--ranks"),
        (["show", "ring_all_reduce", "--ranks", "0"], "at least 1 rank"),
        (["show", "ring_all_reduce:x=1", "--ranks", "2"], "no parameter"),
        (["show", "gone.npz"], "gone.npz"),
        (["show", "ring_all_reduce", "--ranks", "4", "--size", "0"], "--size"),
        (["save", "ring_all_reduce", "--ranks", "4", "-o", "ring.txt"], ".npz"),
    ],
)
def test_bad_input_gives_one_clear_line(commsim, argv, what):
    assert what in commsim.refuses("schedule", *argv)


def test_show_says_what_a_file_pins_and_weighs(commsim, tmp_path):
    network, path = cs.load_network("star:n_hosts=2"), str(tmp_path / "x.npz")
    program = cs.Program(2, 4)
    program.copy([0, 3], src=0, dst=1, count=[3, 1], channel=[0, 1])
    there = [network.link_name(0), "switch0:h1"]
    links = [find_link(network, name) for name in there]
    routes = cs.PinnedRoutes.of([(0, 1, 0, links), (0, 1, 1, links)])
    cs.save(program.build(weights=[3.0, 1.0]), path, network=network, placement=cs.Placement([0, 1], routes))
    out = commsim("schedule", "show", path).out
    assert "1 to 3 of 2 channels" in out
    assert "pinned, on the network that the file was made for" in out
    assert "weights" not in commsim("schedule", "show", "ring_all_reduce", "--ranks", "4").out


def test_trees_are_drawn_on_the_network(commsim, tmp_path):
    """Every tree of a rank reaches the three others. A slow link makes trees the best: without it greedy sending is."""
    pytest.importorskip("scipy")
    made, picture = tmp_path / "made.npz", tmp_path / "trees.svg"
    ring = "ring:n_hosts=4"
    argv = ("--operation", "all_gather", "-b", "64M", "-e", "64M", "--max-messages", "200", "--no-textbook")
    assert (
        commsim(
            "synthesize", "--overhead", "0us", "--topology", ring, *argv, "--scale", "link:h0:h1=0.5", "-o", made
        ).code
        == 0
    )
    assert commsim("schedule", "show", made, "--draw", picture, "--topology", ring, "--rank", "2").code == 0
    assert "trees of rank 2" in commsim.out
    titles = re.findall(r"tree \d+: copy from rank (\d) to rank (\d)", picture.read_text(encoding="utf-8"))
    assert {receiver for _, receiver in titles} == {"0", "1", "3"}  # the root only sends
    assert "--rank goes with --draw FILE --topology T" in commsim.refuses("schedule", "show", made, "--rank", "1")
    drawn = ("--draw", picture, "--topology", ring)
    assert "--rank must be 0..3, got 4" in commsim.refuses("schedule", "show", made, *drawn, "--rank", "4")
    assert "pins no routes" in commsim.refuses("schedule", "show", "ring_all_gather", "--ranks", "4", *drawn)


def test_a_list_has_names_and_no_roles_of_docstrings(commsim):
    assert "as for chain_broadcast" in " ".join(commsim("schedule", "list").out.split())
    assert ":func:" not in commsim.out


def test_one_collective_is_listed_by_its_name(commsim):
    rows = commsim.results("schedule", "list", "ring_all_reduce")["results"]
    assert [row["collective"] for row in rows] == ["ring_all_reduce"]
    assert "unknown" in commsim.refuses("schedule", "list", "ring_all_reduced")


def test_two_files_of_schedules_are_compared(commsim, tmp_path):
    names = [f"{tmp_path}/{name}.npz" for name in ("ring_all_reduce", "halving_doubling_all_reduce")]
    for name in names:
        commsim("schedule", "save", Path(name).stem, "--ranks", "4", "-o", name)
    assert commsim("diff", names[0], names[0]).out.endswith("# the schedules are equal\n")
    found = commsim.results("diff", *names)["differs"]
    assert found["sent 0:1"] == {"a": 1.5, "b": 1.0}
    assert "-o" in commsim.refuses("diff", *names, "-o", "x.html")
