import itertools
import json
import math
import re
import sqlite3

import pytest

from commsim.core.limits import EXPECTED
from commsim.formats.msccl.to_schedule import schedule_of_algorithm
from commsim.formats.msccl.xml import read_msccl
from commsim.nccl.tuner_and_graph_files import read_tuner
from commsim.ranking.synthesis.trees import forest

pytest.importorskip("scipy")
STAR = "star:n_hosts=4,bandwidth=8Gbps,latency=0us"


def test_results_have_the_certificate(commsim):
    (row,) = commsim.results(
        "synthesize", "--topology", STAR, "--operation", "all_gather", "-b", "64M", "-e", "64M", "-v"
    )["results"]
    assert row["certificate"] == {
        "fraction": "3", "per": "size / n_ranks", "k": 1, "cut": row["certificate"]["cut"], "n_cuts": 1, "proved": True
    }  # fmt: skip
    assert len(row["certificate"]["cut"]) == 4  # three hosts and the switch
    assert row["bound_s"] == pytest.approx(2**26 / 4 * 3 / 1e9)
    assert row["bound_s"] * (1 - 1e-9) <= row["time_s"] <= 1.01 * row["bound_s"]
    assert row["chosen"] in {one["method"] for one in row["tried"]}
    assert "optimum: 3 s/GB times size / n_ranks" in commsim.out
    assert "attained; limited by the cut around" in commsim.out


def test_a_bound_names_one_cut_only_where_one_proves_it(commsim):
    """On a torus no one cut needs that long: the ways in and out of all ranks bound it together."""
    torus = ("--topology", "torus:dims=3x3,bandwidth=8Gbps", "-b", "1M", "-e", "1M")
    (row,) = commsim.results("synthesize", *torus, "--operation", "all_reduce", "-v")["results"]
    assert row["certificate"]["n_cuts"] == 18  # of each rank the way in and the way out
    assert "limited by 18 cuts together, the heaviest around h" in commsim.out
    (row,) = commsim.results("synthesize", *torus, "--operation", "all_to_all", "-v")["results"]
    assert row["certificate"]["n_cuts"] == 0
    assert "; limited by the links of h0, h1, h2, h3, h4, h5 and 3 others together" in commsim.out


def test_a_slow_link_is_repaired_around(commsim):
    argv = ("--topology", STAR, "--operation", "all_reduce", "-b", "64M", "-e", "64M", "--scale", "link:h3:*=0.5")
    (row,) = commsim.results("synthesize", "--overhead", "0us", *argv)["results"]
    assert row["chosen"] == "trees"
    assert row["certificate"]["fraction"] == "2"  # the slow host's own bytes
    ring = next(one for one in row["tried"] if one["method"] == "ring_all_reduce")
    assert ring["time_s"] / row["time_s"] == pytest.approx(1.5, rel=0.02)  # 2 (p-1)/p


def test_one_command_says_what_a_fault_costs_with_the_schedule_that_runs(commsim, tmp_path):
    """A ring sends 2 (p-1)/p of the data over every link, twice as long over the slow one; the bound is one times."""
    argv = ("--topology", STAR, "--operation", "all_reduce", "-b", "64M", "-e", "64M", "--scale", "link:h3:*=0.5")
    argv += ("--max-messages", "3000")
    tree = commsim.results("synthesize", "--overhead", "0us", *argv, "--running", "ring_all_reduce")
    (cost,) = tree["cost_of_faults"]
    assert cost["whole_s"] == pytest.approx(1.5 * 2**26 / 1e9, rel=1e-3)
    assert cost["faults_cost"] == pytest.approx(2, rel=1e-3)
    assert cost["repaired_s"] == tree["results"][0]["time_s"]
    assert cost["repaired_cost"] == pytest.approx(2 / 1.5, rel=0.05)
    assert "ring_all_reduce" in commsim.out
    path = tmp_path / "made.npz"
    ring = ("--topology", "ring:n_hosts=4", "--operation", "all_gather", "-b", "1M", "-e", "1M")
    ring += ("--max-messages", "500")
    assert commsim("synthesize", "--overhead", "0us", *ring, "-o", path).code == 0
    (failed,) = commsim.results("synthesize", "--overhead", "0us", *ring, "--fail", "link:h1:h2", "--running", path)[
        "cost_of_faults"
    ]
    assert failed["faults_cost"] is None  # its routes go over the cable that failed
    assert failed["repaired_cost"] > 1
    (unnamed,) = commsim.results("synthesize", "--overhead", "0us", *ring, "--fail", "link:h1:h2")["cost_of_faults"]
    assert unnamed["running"].endswith("all_gather")  # the fastest registered one


def test_a_schedule_in_use_that_is_not_the_best_is_said_beside_the_cost_of_the_faults(commsim):
    """Against a slow schedule in use the repaired one "gained" by the fault."""
    argv = ("--topology", STAR, "--operation", "all_reduce", "-b", "64M", "-e", "64M", "--scale", "link:h3:*=0.9")
    running = "recursive_doubling_all_reduce"
    tree = commsim.results(
        "synthesize", "--overhead", "0us", *argv, "--running", running, "--max-messages", "3000", "-v"
    )
    (cost,) = tree["cost_of_faults"]
    assert cost["repaired_cost"] < 1  # as if the fault had helped
    assert cost["whole_bound_s"] == pytest.approx(1.5 * 2**26 / 1e9, rel=1e-3)  # what a ring takes
    used, repaired = (cost[key] / cost["whole_bound_s"] for key in ("whole_s", "repaired_s"))
    assert 1 < repaired < used
    assert f"{running} takes {used:.3f} times that, and with the faults the repaired one {repaired:.3f}" in commsim.out


SLOW_LINK = ("--topology", STAR, "--operation", "all_reduce", "--scale", "link:h3:*=0.5", "-b", "64M", "-e", "64M")


def test_too_many_messages_for_msccl_are_refused_with_a_number_that_fits(commsim, tmp_path):
    path, argv = tmp_path / "made.npz", ("synthesize", *SLOW_LINK)
    assert commsim(*argv, "-o", path, "--max-messages", "20000").code == 0
    said = commsim.refuses("schedule", "export", path, "-o", tmp_path / "made.xml")
    (fewer,) = re.findall(r"synthesize --max-messages (\d+) makes one that fits", said)
    assert commsim(*argv, "-o", path, "--max-messages", fewer).code == 0
    assert commsim("schedule", "export", path, "-o", tmp_path / "made.xml").code == 0


def test_trees_that_are_written_in_one_piece_are_said_to_take_longer_here(commsim, tmp_path):
    folder = tmp_path / "msccl"
    assert (
        commsim("synthesize", "--overhead", "0us", *SLOW_LINK, "--max-messages", "20000", "--msccl", folder, "-v").code
        == 0
    )
    (times,) = re.findall(r"runtime repeats; imported here it runs once, and takes ([\d.]+) times as long", commsim.out)
    assert float(times) > 1.5
    (file,) = folder.glob("*.xml")
    assert commsim("schedule", "import", file, "-o", tmp_path / "back.npz", "-v").code == 0
    assert "here it runs once: what ranks pass on may be slower here" in commsim.out


def test_what_is_written_runs_as_it_was_predicted(commsim, tmp_path):
    path = tmp_path / "made.npz"
    argv = ("--topology", STAR, "--scale", "link:h3:*=0.5", "-b", "1M", "-e", "1M")
    (made,) = commsim.results("synthesize", *argv, "--operation", "all_reduce", "-o", path)["results"]
    assert "routes and weights" in commsim.out
    (run,) = commsim.results("run", *argv, "--collective", path)["results"]
    assert run["time_s"] == pytest.approx(made["time_s"], rel=1e-9)
    assert commsim("schedule", "check", path).code == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--operation", "barrier"), "barrier: nothing is synthesized, it carries no bytes"),
        (("--operation", "all_gather_v"), "it has blocks of unequal sizes"),
        (("--operation", "gossip"), "invalid choice: 'gossip'"),
        (("--operation", "all_gather", "--ranks", "9"), "ranks must be 1..4, since"),
        (("--operation", "all_gather", "--ranks", "1"), "it takes at least 2 ranks, got 1"),
        (("--operation", "broadcast", "--root", "4"), "root must be a rank 0..3, got 4"),
        (("--operation", "all_gather", "--running", "ring_all_gather"), "running goes with fail or scale"),
        (
            ("--operation", "all_gather", "--scale", "link:h3:*=0.5", "--running", "ring_all_reduce"),
            "ring_all_reduce implements all_reduce, not all_gather",
        ),
        (("--operation", "all_gather", "--max-messages", "0"), "--max-messages must be at least 1"),
        (("--operation", "all_gather", "-b", "1K", "-e", "1M", "-o", "x.npz"), "one size (-b equal to -e)"),
        (("--operation", "all_gather", "-o", "x.toml"), "-o takes a .npz file"),
        (("--operation", "all_gather", "--fail", "link:h0:switch0"), "h0 cannot be reached from every other rank"),
    ],
)
def test_what_cannot_be_is_refused_on_one_line(commsim, argv, message):
    assert message in commsim.refuses("synthesize", "--topology", STAR, *argv)


def test_every_range_of_sizes_gets_a_file_of_msccl_and_nccl_its_own_rules(commsim, tmp_path):
    """Ranges join without a gap, and each file holds a proved schedule for its sizes alone."""
    folder, rules = tmp_path / "msccl", tmp_path / "rules.csv"
    argv = ("--topology", STAR, "--operation", "all_reduce", "-b", "1K", "-e", "4M", "-f", "64", "--overhead", "1us")
    tree = commsim.results("synthesize", *argv, "--msccl", folder, "--tuner-csv", rules)
    ranges = tree["ranges"]
    assert (ranges[0]["low_B"], ranges[-1]["high_B"]) == (1 << 10, 4 << 20)
    assert all(a["high_B"] + 1 == b["low_B"] and a["chosen"] != b["chosen"] for a, b in itertools.pairwise(ranges))
    files = sorted(folder.glob("*.xml"))
    assert len(files) == len(ranges) > 1
    held = [read_msccl(file)[0] for file in files]
    assert {(one.min_bytes, one.max_bytes) for one in held} == {(r["low_B"], r["high_B"] + 1) for r in ranges}
    assert {schedule_of_algorithm(one).operation for one in held} == {"all_reduce"}
    assert {rule.algorithm for rule in read_tuner(rules)} <= {"ring", "tree"}


def test_what_is_made_is_ranked_beside_registered_algorithms(commsim):
    torus = ("--topology", "torus:dims=3x3,bandwidth=100Gbps", "--operation", "all_gather", "-b", "1K", "-e", "1M",
             "--overhead", "0us")  # fmt: skip
    ranking = commsim.results("run", *torus, "-f", "1024", "--synthesized", "-v")["ranking"]
    for row in ranking:
        (first, *others) = row["algorithms"]
        assert first["algorithm"] == "synthesized"
        assert others[0]["times_best"] > 1.5
    assert "optimum 4/25 s/GB" in commsim.out  # 8 blocks into a host over 4 links of 12.5 GB/s
    assert "--synthesized goes with --operation" in commsim.refuses("run", *torus[:2], "--synthesized")


def test_a_sweep_can_ask_for_what_is_made(commsim, tmp_path):
    sweep, out = tmp_path / "some.toml", tmp_path / "out"
    text = '[topology]\nname = "torus"\ndims = "3x3"\n[collective]\nname = ["ring_all_gather", "synthesized_{}"]\n'
    text += 'size = "1MiB"\n'
    sweep.write_text(text.format("all_gather"))
    assert commsim("sweep", "run", sweep, "-o", out, "--executor", "serial", "-v").code == 0
    with sqlite3.connect(out / "sweep.sqlite") as results:
        rows = results.execute("select row from points order by place")
        ring, made = (json.loads(row)["time_s"] for (row,) in rows)
    assert ring > 1.5 * made
    sweep.write_text(text.format("barrier"))
    assert "barrier: nothing is synthesized" in commsim.refuses("sweep", "plan", sweep)


@pytest.mark.parametrize(
    ("operation", "sizes", "said"),
    [
        (
            "all_gather",
            ("1M", "1M"),
            "# all_gather: optimal: the time equals the lower bound; as sizes grow, optimum: ",
        ),
        (
            "all_gather",
            ("1M", "4M"),
            "# all_gather: optimal: the time equals the lower bound at every size; as sizes grow, optimum: ",
        ),
        (
            "broadcast",
            ("1M", "1M"),
            "# broadcast: within {} % of the lower bound; not proven optimal at this size; as sizes grow, optimum: ",
        ),
    ],
)
def test_one_sentence_says_whether_the_schedule_is_optimal(commsim, operation, sizes, said):
    line = ("--topology", STAR, "--operation", operation, "-b", sizes[0], "-e", sizes[1], "-f", "4")
    rows = commsim.results("synthesize", "--overhead", "0us", *line, "-v")["results"]
    worst = max(row["times_bound"] for row in rows)
    assert said.format(f"{math.ceil((worst - 1) * 1000) / 10:g}") in commsim.out
    assert (worst == 1) == ("proven" not in commsim.out)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_trees_that_are_packed_are_named_for_the_line_of_progress(monkeypatch, commsim, is_terminal):
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    parts = []
    monkeypatch.setattr(forest, "pack", watched(forest.pack, parts))
    commsim("synthesize", "--topology", STAR, "--operation", "all_gather", "-b", "1M", "-e", "1M")
    assert "packing trees 1/4" in parts


def watched(pack, parts):
    def packed(graph, report):
        def told(done, of):
            report(done, of)
            parts.append(EXPECTED.part)

        return pack(graph, told)

    return packed
