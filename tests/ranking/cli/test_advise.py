import itertools
import json

import numpy as np
import pytest
from command_words import with_flags

from collectives import COLLECTIVES
from commsim.ranking.advice.crossovers import servers_sentence
from commsim.ranking.advice.server_gains import Servers

STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"
ASKED = ("advise", "--topology", STAR, "--workers", "8", "--size", "4MiB")


@pytest.mark.slow
def test_everything_is_ranked_with_time_bytes_and_what_bounds_it(commsim):
    tree = commsim.results(*ASKED, "--density", "0.01", "--programmable", "--lossy")
    known = {name for name in COLLECTIVES if COLLECTIVES[name].metadata["operation"] == "all_reduce"}
    fixed_point = {"switchml", "atp", "netreduce"}
    # of GPUs, the ring once more, and of switches inside machines
    libraries = {"nccl_all_reduce", "rccl_all_reduce", "gloo_ring_all_reduce", "nvls"}
    assert {row["collective"] for row in tree["results"]} == known - libraries
    assert {row["way"] for row in tree["results"]} == {"dense", "servers", "in-network", "sparse", "lossy"}
    times = [row["time_s"] for row in tree["results"]]
    assert all(b >= a * (1 - 1e-9) for a, b in itertools.pairwise(times))
    for row in tree["results"]:
        assert 0 < row["max_link_bytes"] <= row["bytes_on_wire"]
        assert row["bound_by"].split()[0].strip(":") in ("bandwidth", "rounds", "latency", "overhead", "reduction")
        assert sum(row["terms_s"].values()) == pytest.approx(row["time_s"])
        assert row["exact"] == (row["way"] != "lossy" and row["collective"] not in fixed_point)
        assert (row["limited_by"] or "-") in commsim.out
    assert tree["left_out"].keys() == libraries


@pytest.mark.slow
def test_a_row_is_what_run_says_of_the_same_text(commsim):
    data = ("--density", "0.01", "--block", "64", "--pattern", "zipf", "--seed", "3")
    tree = commsim.results(*ASKED, *data, "--overhead", "0us")
    for row in tree["results"]:
        (alone,) = commsim.results(
            "run",
            "--overhead",
            "0us",
            "--topology",
            STAR,
            "--ranks",
            "8",
            "--collective",
            row["spec"],
            "-b",
            "4M",
            "-e",
            "4M",
        )["results"]
        of_the_run = {"busiest_link", "method", "costs", "asked", "bytes_up"}
        assert {key: row[key] for key in alone if key not in of_the_run} == {
            key: value for key, value in alone.items() if key not in of_the_run
        }


def test_the_ranking_stands_before_the_search_for_crossovers_and_stays_when_that_is_interrupted(
    commsim, monkeypatch, tmp_path
):
    def interrupted(*_):
        print("the search begins")
        raise KeyboardInterrupt

    monkeypatch.setattr("commsim.ranking.advice.advise.Advice.crossover", interrupted)
    path = tmp_path / "advice.json"
    asked = ("advise", "--topology", "star:n_hosts=4", "--size", "64KiB")
    assert commsim.results(*asked)["crossovers"] == {"density": None, "servers": None}  # not asked for, not searched
    assert commsim(*asked, "--crossovers", "--json", path).code == 130
    tree = json.loads(path.read_text())
    before, _, after = commsim.out.partition("the search begins")
    assert "ring_all_reduce" in before
    assert "# interrupted: the ranking is complete, the search for crossovers is not" in after
    assert {row["collective"] for row in tree["results"]} >= {"ring_all_reduce"}
    assert tree["crossovers"] == {"density": None, "servers": None}


def test_several_sizes_are_refused_with_what_compares_several(commsim):
    said = commsim.refuses(*ASKED[:-1], "1MiB,4MiB")
    assert "--size is one size, got 1MiB,4MiB: run once for each" in said
    assert "commsim bound --operation all_reduce --best --size 1MiB,4MiB" in said


def test_the_flag_for_systems_of_switches_is_told_where_they_are_left_out(commsim):
    command = ("advise", "--topology", "star:n_hosts=4", "--operation", "all_reduce", "--size", "64KiB")
    assert commsim(*command, "-v").code == 0
    assert "aggregate in switches are left out: --programmable assumes such switches" in commsim.out
    assert commsim(*command, "--programmable", "-v").code == 0
    assert "--programmable assumes" not in commsim.out


@pytest.mark.slow
def test_what_is_left_out_is_said_with_the_reason(commsim):
    tree = commsim.results(*ASKED, "-v")
    assert {row["way"] for row in tree["results"]} == {"dense", "servers"}
    assert "a density or gradients" in tree["left_out"]["omnireduce"]
    assert "programmable assumes it" in tree["left_out"]["switchml"]
    assert "# skipped: omnireduce: needs a density or gradients" in commsim.out
    assert "switchml (programmable assumes it)" in commsim.out
    assert tree["crossovers"]["density"] is None
    tree = commsim.results(*ASKED, "--density", "0.01")
    assert "lossy ranks it too" in tree["left_out"]["ok_topk"]


@pytest.mark.deep
@pytest.mark.slow
def test_the_density_at_which_sparse_stops_paying_and_the_servers_that_suffice_are_found(commsim):
    tree = commsim.results(*ASKED, "--density", "0.01", "--crossovers")
    density, servers = tree["crossovers"]["density"], tree["crossovers"]["servers"]
    assert density["low"] < density["high"] <= density["low"] * 1.03
    within = f"between {density['low']:.4g} and {density['high']:.4g}"
    assert f"# sparse pays up to a density {within}: until then " in commsim.out
    assert "# BytePS gains by CPU servers up to 8 of 8 tried" in commsim.out
    for share, sparse_wins in ((density["low"], True), (density["high"], False)):
        ranked = commsim.results(*ASKED, "--density", repr(share))["results"]
        assert (ranked[0]["way"] == "sparse") == sparse_wins
    assert servers["enough"] == servers["enough_in_theory"] == 8
    assert list(servers["simulated_s"]) == [str(k) for k in range(9)]


def test_servers_that_could_not_be_simulated_are_not_said_to_be_useless():
    too_large = Servers({0: 1.0}, 0, 256, {0: 2.0}, 256)
    assert servers_sentence(too_large) == (
        "BytePS with CPU servers is too large to be simulated here in seconds; on equal links by theorem 1 up to 256"
    )
    useless = Servers({0: 1.0, 1: 1.0, 2: 1.5}, 0, 8, {}, 8)
    assert servers_sentence(useless).startswith("BytePS is not faster with up to 2 CPU servers here; ")


def test_gradients_are_ranked_as_they_are(commsim, tmp_path):
    rng = np.random.default_rng(0)
    gradients = rng.standard_normal((4, 5000)).astype(np.float32) * (rng.random((4, 5000)) < 0.02)
    path = tmp_path / "gradients.npy"
    np.save(path, gradients)
    tree = commsim.results("advise", "--topology", STAR, "--gradients", path)
    assert {row["size_B"] for row in tree["results"]} == {20000}
    assert {row["n_ranks"] for row in tree["results"]} == {4}
    lists = next(row for row in tree["results"] if row["collective"] == "agsparse")
    assert lists["bytes_on_wire"] == 3 * 8 * np.count_nonzero(gradients)
    blocks = next(row for row in tree["results"] if row["collective"] == "omnireduce")
    assert blocks["counters"]["density"] > lists["counters"]["density"]
    assert "gradients=" in lists["spec"]


@pytest.mark.slow
def test_several_densities_are_ranked_together(commsim):
    tree = commsim.results(*ASKED, "--density", "0.01,0.5")
    found = [row["spec"] for row in tree["results"] if row["collective"] == "sparcml_ssar"]
    assert ["density=0.01," in spec for spec in found] == [True, False]
    assert sum(row["collective"] == "ring_all_reduce" for row in tree["results"]) == 1


def test_one_worker_has_nothing_to_send(commsim):
    tree = commsim.results("advise", "--topology", STAR, "--workers", "1", "--size", "1MiB", "--density", "0.01")
    assert {row["bound_by"] for row in tree["results"]} == {"nothing to send"}


@pytest.mark.deep
@pytest.mark.slow
def test_what_was_made_smaller_for_many_workers_is_said(commsim):
    large = ("advise", "--topology", "star:n_hosts=256", "--workers", "128", "--size", "1MiB", "--density", "0.01")
    tree = commsim.results(*large, "--crossovers")
    assert "with more it is faster" in commsim.out
    assert {"byteps", "parameter_server", "omnireduce", "ring_all_reduce"} <= {r["collective"] for r in tree["results"]}


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["--density", "1.5"], "density must be above 0 and at most 1, got 1.5"),
        (["--density", "0"], "density must be above 0 and at most 1, got 0"),
        (["--density", "few"], "--density must be a share such as 1% or 0.01, got 'few'"),
        (["--density", "1e-9"], "an empty bitmap"),
        (["--servers", "9"], "servers must be 0..8, got 9"),
        (["--workers", "17"], "workers must be 1..16"),
        (["--topology", "sta:n_hosts=3"], "unknown topology 'sta'; did you mean star?"),
        (["--size", "0B"], "--size must be a whole number of bytes, at least 1"),
        (["--size", "4Mb"], "--size must be a size such as 64MiB"),
        (["--gradients", "nowhere.npy"], "nowhere.npy: No such file"),
        (["--pattern", "stripes"], "invalid choice: 'stripes'"),
        (["--lossy"], "need a density"),
    ],
)
def test_what_cannot_be_asked_is_refused_on_one_line(commsim, argv, what):
    assert what in commsim.refuses(*with_flags(ASKED, argv))


def test_a_size_is_needed_and_must_be_that_of_the_gradients(commsim, tmp_path):
    assert "needs a size or gradients" in commsim.refuses("advise", "--topology", STAR)
    gradients = np.ones((4, 100), np.float32)
    np.save(tmp_path / "g.npy", gradients)
    argv = ("advise", "--topology", STAR, "--gradients", tmp_path / "g.npy")
    assert "holds 400 bytes for each worker, got a size of 1048576" in commsim.refuses(*argv, "--size", "1MiB")
    assert "needs gradients of 8 ranks, got 4" in commsim.refuses(*argv, "--workers", "8")
    gradients[2, 3] = np.nan
    np.save(tmp_path / "g.npy", gradients)
    assert "rank 2" in commsim.refuses(*argv)


def test_messages_cost_what_a_ranking_assumes_unless_given(commsim):
    """A ring of 16 has 30 messages in turn, and the title says the cost; a switch's packets have its system's costs."""
    argv = ("advise", "--topology", STAR, "--size", "4KiB", "--programmable", "--servers", "0")
    assumed = {row["collective"]: row["time_s"] for row in commsim.results(*argv, "-v")["results"]}
    assert "1 us of overhead per message" in commsim.out
    free = {row["collective"]: row["time_s"] for row in commsim.results(*argv, "--overhead", "0us", "-v")["results"]}
    assert "no overhead per message" in commsim.out
    assert assumed["ring_all_reduce"] - free["ring_all_reduce"] == pytest.approx(30e-6)
    assert assumed["switchml"] == free["switchml"]


def test_libraries_of_other_gpus_are_left_out(commsim):
    tree = commsim.results("advise", "--topology", "dgx-h100", "--size", "1MiB")
    assert "nccl_all_reduce" in {row["collective"] for row in tree["results"]}
    assert tree["left_out"]["rccl_all_reduce"] == "a library's, for GPUs that the network does not have"


def test_faults_are_set_beside_the_network_without_them(commsim):
    star = "star:n_hosts=8,bandwidth=1GB/s,latency=0us"
    argv = ("advise", "--topology", star, "--size", "64MiB", "--overhead", "0us")
    rows = {row["collective"]: row for row in commsim.results(*argv, "--scale", "link:h3:*=0.5")["results"]}
    whole = {row["collective"]: row for row in commsim.results(*argv)["results"]}
    ring = rows["ring_all_reduce"]
    assert ring["whole_s"] == whole["ring_all_reduce"]["time_s"]
    assert ring["time_s"] == pytest.approx(2 * ring["whole_s"])
    assert "whole_s" not in whole["ring_all_reduce"]


def test_several_densities_are_ranked_one_by_one(commsim):
    small = ("advise", "--topology", "star:n_hosts=4", "--workers", "4", "--size", "256KiB")
    tree = commsim.results(*small, "--density", "1%,0.5")
    tables = commsim.out.split("# 256 KiB, density ")[1:]
    assert [table.split(",")[0] for table in tables] == ["0.01 in runs of 256", "0.5 in runs of 256"]
    for table, density in zip(tables, (0.01, 0.5), strict=True):
        rows = [line.split() for line in table.splitlines()[1:] if line.strip()[:1].isdecimal()]
        assert [row[0] for row in rows] == [f"{i}" for i in range(1, len(rows) + 1)]
        assert rows[0][5] == "1.00x"
        assert not any("density" in row[1] for row in rows)
        of_data = [row["collective"] for row in tree["results"] if row["density"] == density]
        assert sorted(row[1].split(":")[0] for row in rows if row[2] == "sparse") == sorted(of_data)
        assert "ring_all_reduce" in {row[1] for row in rows}
    assert {row["density"] for row in tree["results"]} == {0.01, 0.5, None}
    assert "--density must be a share such as 1% or 0.01, got 'some'" in commsim.refuses(*small, "--density", "some")


def test_that_elements_come_in_runs_is_said_beside_the_table(commsim):
    """Among the remarks above the table, which a terminal hides, the assumption that turns the ranking was not seen."""
    assert commsim(*ASKED, "--density", "0.01", "-v").code == 0
    assert "in runs of 256 (--block)" in commsim.out
    assert "density 0.01 in runs of 256, on " in commsim.out
    assert commsim(*ASKED, "--density", "0.01", "--block", "1", "-v").code == 0
    assert "(--block)" not in commsim.out
    assert "density 0.01 in runs of 1, on " in commsim.out


@pytest.mark.parametrize("flags", [("--against", "zen", "--density", "0.01"), ("--against", "ring_all_reduce")])
def test_a_way_that_has_no_crossover_is_refused_before_the_ranking_is_printed(commsim, flags):
    commsim.refuses("advise", "--topology", "star:n_hosts=4", "--size", "1MiB", *flags)
    assert not commsim.out
