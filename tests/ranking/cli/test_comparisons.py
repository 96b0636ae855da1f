import csv
import itertools
import json

import pytest

import commsim as cs

LEAVES = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4"
ONE = ("-b", "1M", "-e", "1M")
STAR = "star:n_hosts=8"


def test_collectives_with_other_numbers_of_ranks_are_told_so(commsim):
    two = ("ring_all_reduce", "omnireduce:n_aggregators=1")
    out = commsim("run", "--overhead", "0us", "--topology", STAR, *two, *ONE, "-v").out
    said = "compared with different numbers of ranks, 8, 7: --ranks 7 gives all the same; omnireduce:colocated=true"
    table = out[out.index("the fastest first") :].splitlines()
    ranks = {line.split()[2]: line.split()[table[1].split().index("ranks")] for line in table[2:4]}
    assert ranks == {"ring_all_reduce": "8", two[1]: "7"}
    assert said in table[4]
    assert (
        "different numbers"
        not in commsim("run", "--overhead", "0us", "--topology", STAR, *two, *ONE, "--ranks", 7, "-v").out
    )


def test_rows_say_with_which_parameters_a_collective_was_asked_for(commsim, tmp_path):
    """All rows were called byteps, and nothing told two servers from none."""
    specs = [f"byteps:n_servers={n}" for n in (0, 2, 4)]
    run = ("run", *specs, "ring_all_reduce", "--topology", "star:n_hosts=16", "--ranks", 8, "--size", "1MB")
    rows = commsim.results(*run, "--csv", tmp_path / "r.csv")["results"]
    assert [row.get("asked") for row in rows] == [*specs, None]
    table = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))
    assert [row["asked"] for row in table] == [*specs, ""]
    assert {row["size_B"] for row in table} == {"1000000"}  # of every way of the engine
    one = cs.predict(specs[1], "star:n_hosts=16", "1MB", n_ranks=8, overhead="0us")
    frame = one.to_frame()
    assert (frame["collective"][0], frame["asked"][0]) == ("byteps", specs[1])
    assert "asked" not in cs.predict("ring_all_reduce", "star:n_hosts=16", "1MB", n_ranks=8, overhead="0us").to_frame()


def test_collectives_of_one_size_are_drawn_against_the_one_parameter_that_varies(commsim, tmp_path):
    specs = [f"byteps:n_servers={n}" for n in (0, 2, 4)]
    result = tmp_path / "r.json"
    rows = commsim(
        "run",
        "--overhead",
        "0us",
        *specs,
        "--topology",
        "star:n_hosts=16",
        "--ranks",
        8,
        "--size",
        "1MB",
        "--json",
        result,
    )
    assert rows.code == 0
    for kind, column in (("time", "time_s"), ("busbw", "busbw_Bps")):
        assert commsim("plot", kind, result, "-o", tmp_path / f"{kind}.svg").code == 0, commsim.err
        assert "median over" not in commsim.out
        drawn = list(csv.reader((tmp_path / f"{kind}.csv").read_text().splitlines()))
        assert drawn[0][0] == "n_servers"
        assert [row[0] for row in drawn[1:]] == ["0", "2", "4"]
        expected = [row[column] for row in json.loads(result.read_text())["results"]]
        assert [float(row[1]) for row in drawn[1:]] == pytest.approx(expected)


def test_the_sizes_between_which_another_collective_is_faster_are_named(commsim):
    two = ("run", "--topology", STAR, "ring_all_reduce", "recursive_doubling_all_reduce", "-b", "1K", "-f", "4")
    tree = commsim.results(*two, "-e", "4M", "-v")
    times = {name: {row["size_B"]: row["time_s"] for row in tree["results"] if row["collective"] == name}
             for name in two[3:5]}  # fmt: skip
    ring, doubling = times.values()
    sizes = sorted(ring)
    low, high = next((a, b) for a, b in itertools.pairwise(sizes) if ring[b] < doubling[b])
    assert doubling[low] < ring[low]
    told = f"fastest at these sizes: {two[4]} up to {low // 1024} KiB, {two[3]} from {high // 1024} KiB; more sizes"
    assert f"# {told} (-f) say it" in commsim.out
    assert "fastest at these sizes" not in commsim(*two, "-e", "4K", "-v").out
    assert "more sizes (-i) say it" in commsim(*two[:-2], "-i", "1M", "-e", "4M", "-v").out


def test_collectives_of_one_operation_are_ranked_in_one_table(commsim):
    named = ("ring_all_reduce", "nccl", "sharp")
    options = [word for name in named for word in ("--collective", name)]
    tree = commsim.results("run", "--topology", STAR, "--operation", "all_reduce", *options, *ONE)
    times = {row["collective"]: row["time_s"] for row in tree["results"]}
    table = commsim.out[commsim.out.index("# all_reduce: 3 collectives, the fastest first") :].splitlines()[2:5]
    assert [line.split()[2] for line in table] == sorted(times, key=times.get)
    assert (
        "the fastest first"
        not in commsim("run", "--overhead", "0us", "--topology", STAR, named[0], "pairwise_all_to_all", *ONE).out
    )


def test_collectives_beside_each_other_have_one_title_and_one_table(commsim):
    """Each had a title of its own and the table of nccl-tests, above a third table that had all of it."""
    words = ("run", "--topology", STAR, "ring_all_reduce", "double_tree_all_reduce", *ONE)
    brief, whole = commsim(*words).out, commsim(*words, "-v").out
    assert brief.count(", engine flow") == whole.count(", engine flow") == 1
    assert (brief.count("#wrong"), whole.count("#wrong")) == (0, 2)
    assert "limited_by" in brief


def test_too_few_hosts_for_helpers_are_refused_with_the_parameter_that_needs_none(commsim):
    said = commsim.refuses("run", "--topology", STAR, "omnireduce:n_aggregators=1", *ONE, "--ranks", 8)
    assert said.strip().endswith("omnireduce:colocated=true puts them on the ranks' own")
    assert (
        commsim("run", "--overhead", "0us", "--topology", STAR, "omnireduce:colocated=true", *ONE, "--ranks", 8).code
        == 0
    )


def test_what_a_dead_cable_costs_stands_beside_the_time_of_the_whole_network(commsim):
    words = ("run", "--topology", LEAVES, "ring_all_reduce", *ONE, "--placement", "spread")
    whole = commsim.results(*words)["results"][0]["time_s"]
    (failed,) = commsim.results(*words, "--fail", "link:leaf0:spine0")["results"]
    assert failed["whole_s"] == whole
    assert failed["faults_cost"] == failed["time_s"] / whole
    (header,) = [line for line in commsim.out.splitlines() if "busiest_link" in line]
    assert header.split()[-2:] == ["whole(us)", "faults_cost"]
    (one,) = commsim.results(*words, "--fail", "link:leaf0:spine0", "--hashes", "1")["results"]
    assert one["whole_s"] == commsim.results(*words, "--hashes", "1")["results"][0]["time_s"]


def test_several_collectives_have_the_times_of_a_ranking(commsim):
    """The same algorithms had other times, and another order, with --operation."""
    two = (
        "run",
        "ring_all_reduce",
        "halving_doubling_all_reduce",
        "--topology",
        "star:n_hosts=4",
        "-b",
        "1K",
        "-e",
        "1K",
    )
    times = {row["collective"]: row["time_s"] for row in commsim.results(*two)["results"]}
    assert times == {row["collective"]: row["time_s"] for row in commsim.results(*two, "--overhead", "1us")["results"]}
    ranked = commsim.results("run", "--operation", "all_reduce", *two[3:])["results"]
    assert times.items() <= {row["collective"]: row["time_s"] for row in ranked}.items()
