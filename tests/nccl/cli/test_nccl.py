import contextlib
import io
import json

import pytest

from collectives.nccl.call import NEWEST, OLDEST
from commsim.cli import main
from commsim.nccl.cli.nccl_flags import OPERATIONS
from commsim.nccl.tuner_and_graph_files import read_tuner
from commsim.nccl.tuner_rules import Rule


def test_the_table_the_choices_and_what_was_assumed_are_printed_and_written(commsim, tmp_path):
    csv = tmp_path / "tuner.csv"
    tree = commsim.results(
        "nccl", "--topology", "dgx-h100", "--operation", "all_reduce", "--size", "1M", "--tuner-csv", csv, "-v"
    )
    found = tree["results"][0]
    assert len(found["cells"]) == 21
    assert any("12 channels of 30 GB/s" in line for line in tree["assumed"])
    for text in (
        "# assumed: ",
        "8 ranks on 1 node, hopper GPUs",
        "ll(us/GBps)  ll128(us/GBps)  simple(us/GBps)",
        "ring    15.0/",
        "not used: pat: no all_reduce with it",
        "all_reduce        1 B  1.092 MiB        1     1144835      ring/ll     100%      tree/ll 1.01x",
        "all_reduce  1048576      22.9",
    ):
        assert text in commsim.out
    assert found["at_size"][0]["time_s"]["ring/ll"] > 15e-6
    rules = read_tuner(csv)
    assert [(r.low, r.high) for r in rules] == [
        (0 if c["low_B"] == 1 else c["low_B"], c["high_B"]) for c in found["choices"]
    ]
    assert (rules[0].n_nodes, rules[0].n_ranks) == (1, 8)


def test_a_terminal_shows_the_times_at_a_size_of_every_operation(monkeypatch):
    """Three lines of remarks hid those of all operations but two; then they were eleven lines of text at 80 columns."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "200")
    with contextlib.redirect_stdout(Terminal()) as shown:
        assert main(["nccl", "--topology", "dgx-h100", "--size", "1M"]) == 0
    out = shown.getvalue()
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows if row[1:2] == ["1048576"]] == list(OPERATIONS)
    assert sum(line.startswith("#") for line in out.splitlines()) == 1


def test_sizes_are_asked_for_as_in_nccl_tests(commsim):
    network = ("nccl", "--topology", "dgx-h100@star:machines=2", "--operation", "all_reduce")
    whole, part, listed = (
        commsim.results(*network, *flags)["results"][0]
        for flags in (("-e", "1G"), ("-b", "1M", "-e", "1G", "-f", "32"), ("--size", "1M,32M", "--size", "1G"))
    )
    assert [row["low_B"] for row in part["choices"]] == [
        max(2**20, row["low_B"]) for row in whole["choices"] if row["high_B"] >= 2**20
    ]
    assert [row["size_B"] for row in part["predicted"]] == [2**20, 2**25, 2**30]
    assert part["predicted"] == listed["predicted"]
    assert ": choices from 1 MiB up to 1 GiB; " in commsim(*network, "-b", "1M", "-e", "1G").out
    assert "-e must not be smaller than -b" in commsim.refuses(*network, "-b", "1G", "-e", "1M")


def test_an_older_release_has_its_own_choices_and_no_symmetric_kernels(commsim):
    arguments = ("nccl", "--topology", "dgx-a100@star:machines=4", "--operation", "all_reduce", "--size", "1M")
    old, new = (commsim.results(*arguments, *more, "-v")["results"][0] for more in (("--nccl-version", "2.12"), ()))
    assert old["choices"] != new["choices"]
    assert old["symmetric"][0]["kernels"] == []
    one = commsim.results("nccl", "--topology", "dgx-h100", "--operation", "all_reduce", "--size", "1M", "-v")
    assert one["results"][0]["symmetric"][0]["kernels"][0]["kernel"] == "AllReduce_RSxLDMC_AGxSTMC"
    assert "registered as symmetric windows" in commsim.out


def test_every_operation_is_explained_unless_some_are_named(commsim):
    tree = commsim.results("nccl", "--topology", "dgx-a100@star:machines=2")
    assert [row["operation"] for row in tree["results"]] == [
        "broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce",
    ]  # fmt: skip


def test_given_channels_replace_what_would_be_assumed(commsim):
    commsim(
        "nccl", "--topology", "dgx-h100", "--operation", "all_reduce", "--channels", "24:15GB/s", "--nvls", "none", "-v"
    )
    assert "channels of" not in commsim.out
    assert "needs NVLink SHARP" in commsim.out


def test_results_become_rules_for_the_tuner(commsim, tmp_path):
    rows = tmp_path / "rows.json"
    topology = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"
    for name in ("ring_all_reduce", "double_tree_all_reduce"):
        commsim("run", "--overhead", "0us", "--topology", topology, "--collective", name, "-b", "1K", "-e", "1G",
            "-f", "16", "--json",
                tmp_path / f"{name}.json")  # fmt: skip
    both = [
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("ring_all_reduce", "double_tree_all_reduce")
    ]
    rows.write_text(json.dumps({"schema": 1, "results": both[0]["results"] + both[1]["results"]}))
    csv = tmp_path / "tuner.csv"
    assert commsim("nccl", "--from", rows, "--tuner-csv", csv, "--nodes", "8").code == 0, commsim.err
    rules = read_tuner(csv)
    assert (rules[0].algorithm, rules[-1].algorithm) == ("tree", "ring")
    assert rules[0] == Rule("all_reduce", 1024, rules[0].high, "tree", "simple", -1, 8, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --topology for NCCL's own choices, or --from FILE"),
        (["--topology", "dgx-h100", "--ranks", "1"], "fewer than 2 ranks, got 1"),
        (["--topology", "dgx-h100", "--channels", "24"], "such as 12:30GB/s, got '24'"),
        (["--topology", "dgx-h100", "--channels", "99:1GB/s"], "0..64 channels"),
        (["--topology", "dgx-h100", "--net-type", "USB"], "invalid choice: 'USB'"),
        (["--topology", "dgx-h100", "--graph", "/nowhere.xml"], "/nowhere.xml: No such file"),
        (["--topology", "dgx-h100", "--nodes", "2"], "--nodes is for --from"),
        (["--from", "/nowhere"], "give the output with --tuner-csv FILE"),
        (["--topology", "dgx-h100", "--nccl-version", "2.33"], "NCCL 2.33 are not known; version is 2.8 to 2.32"),
        (["--topology", "dgx-h100", "--nccl-version", "new"], "version must be MAJOR.MINOR of NCCL, 2.8 to 2.32"),
        (["--from", "/nowhere", "--nccl-version", "2.20"], "--nccl-version goes with --topology"),
        (["--topology", "hgx-b200", "--nccl-version", "2.24"], "2.24 does not know Blackwell GPUs; version is 2.25 or"),
        (["--topology", "hgx-h200", "--nccl-version", "2.16"], "2.16 does not know Hopper GPUs; version is 2.17 or"),
    ],
)
def test_what_makes_no_sense_is_refused(commsim, arguments, message):
    assert message in commsim.refuses("nccl", *arguments)


def test_a_choice_that_is_slower_by_more_than_the_error_is_said_by_both_commands(commsim):
    topology = "dgx-h100:sharp=on@star:machines=8"
    found = commsim.results("nccl", "--topology", topology, "--operation", "all_reduce", "--size", "1K", "-v")
    (one,) = found["results"][0]["predicted"]
    (said,) = [line for line in commsim.out.splitlines() if "takes at most" in line]
    assert said.endswith(f"NCCL's {one['how']} {one['uncontended_s'] * 1e6:.1f} us")
    assert len(said) <= 100
    where = ("--topology", topology, "-b", "1K", "-e", "1K")
    commsim.results("run", "--collective", "nccl_all_reduce", *where, "-v")
    assert said in commsim.out.splitlines()
    commsim.results("run", "--collective", f"nccl_all_reduce:algorithm={one['how'].split('/')[0]}", *where, "-v")
    assert "takes at most" not in commsim.out  # what is forced is no choice


@pytest.mark.parametrize("operation", ["all_reduce", "broadcast"])
@pytest.mark.parametrize(
    ("network", "flags"),
    [
        ("dgx-h100@leaf_spine:machines=4,n_leaves=4,n_spines=4,uplink_bandwidth=24.25GB/s", ()),
        (
            "dgx-h100@leaf_spine:machines=4,n_leaves=4,n_spines=4,oversubscription=1",
            ("--fail", "link:leaf0:spine0", "--fail", "link:leaf0:spine1", "--fail", "link:leaf0:spine2"),
        ),
    ],
)
def test_a_predicted_time_is_that_of_run_on_narrow_fabrics(commsim, network, flags, operation):
    """At 16:1 the predicted time was an eighth of that of `commsim run nccl`."""
    where = ("--topology", network, *flags)
    found = commsim.results("nccl", "--operation", operation, *where, "--size", "64M", "-v")["results"][0]["predicted"][
        0
    ]
    said = commsim.out
    run = commsim.results("run", f"nccl_{operation}", *where, "-b", "64M", "-e", "64M", "-v")["results"][0]
    assert [found[key] for key in ("time_s", "low_s", "high_s")] == [run[key] for key in ("time_s", "low_s", "high_s")]
    assert found["uncontended_s"] < 0.995 * found["time_s"]
    heads, cells = (
        line.split()
        for line in said.splitlines()
        if line.split()[:2] in (["operation", "size(B)"], [operation, "67108864"])
    )
    assert cells[heads.index("uncontended(us)")] == f"{found['uncontended_s'] * 1e6:.1f}"


def test_given_channels_are_those_of_the_predicted_time(commsim):
    few, many = (
        commsim.results(
            "nccl", "--operation", "all_reduce", "--topology", "dgx-h100@star:machines=2", "--size", "64M", "--nvls",
            "none", "--channels", given,
        )["results"][0]["predicted"][0]["time_s"] for given in ("2:40GB/s", "16:20GB/s")
    )  # fmt: skip
    assert many < few


def test_what_run_cannot_build_has_no_prediction(commsim):
    """With --collnet on a network without SHARP there was a time, where `commsim run` refuses the algorithm."""
    found = commsim.results(
        "nccl", "--operation", "all_reduce", "--topology", "dgx-h100@star:machines=4", "--collnet", "--size", "1K",
        "--size", "64M", "-v",
    )["results"][0]  # fmt: skip
    assert [row["size_B"] for row in found["predicted"]] == [1024]
    assert "67108864 B: no prediction: nccl_all_reduce: algorithm=nvls needs a switch in the network" in commsim.out


def test_the_help_names_the_releases_that_are_known(commsim):
    (oldest, newest) = (".".join(map(str, release)) for release in (OLDEST, NEWEST))
    assert f"{oldest}..{newest}" in commsim("nccl", "--help").out


def test_the_network_may_stand_without_its_flag(commsim):
    words = ("--operation", "all_reduce", "-e", "1M")
    assert commsim("nccl", "dgx-h100", "--machines", "2", *words).out == commsim(
        "nccl", "--topology", "dgx-h100@star:machines=2", *words
    ).out  # fmt: skip
    assert "two networks: dgx-h100 and --topology dgx-a100" in commsim.refuses(
        "nccl", "dgx-h100", "--topology", "dgx-a100"
    )
