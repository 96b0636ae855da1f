import fcntl
import json
import os
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest

from commsim.cli import main
from commsim.engine.flow_paths import METHODS

STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"


def test_the_contract_of_json(commsim):
    tree = commsim.results("run", "--overhead", "0us", "--topology", STAR, "-b", "1M", "-e", "4M", "-f", "2")
    assert tree["schema"] == 1
    assert tree["config"]["topology"] == STAR
    assert [r["size_B"] for r in tree["results"]] == [2**20, 2**21, 2**22]
    for r in tree["results"]:
        assert r["collective"] == "ring_all_reduce"
        np.testing.assert_allclose(r["time_s"], 6 * (2e-6 + r["size_B"] / 4 / 12.5e9), rtol=1e-9)
        np.testing.assert_allclose(r["algbw_Bps"], r["size_B"] / r["time_s"], rtol=1e-12)
        np.testing.assert_allclose(r["busbw_Bps"], r["algbw_Bps"] * 1.5, rtol=1e-12)
        np.testing.assert_allclose(r["max_link_bytes"], 1.5 * r["size_B"], rtol=1e-12)


def test_the_table_has_the_columns_of_nccl_tests_and_our_own(commsim):
    commsim("run", "--overhead", "0us", "--topology", STAR, "-b", "1M", "-e", "1M")
    header = next(line for line in commsim.out.splitlines() if "size(B)" in line).split()
    assert header[:5] == ["size(B)", "count", "type", "redop", "root"]
    assert "busiest_link" in header
    row = commsim.out.splitlines()[2].split()
    assert row[:5] == ["1048576", "262144", "float", "sum", "-1"]
    assert len(row) == len(header)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_a_terminal_of_any_width_shows_whole_numbers(width):
    """In a real pseudo-terminal, since a pipe hides what a terminal cuts."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    words = [sys.executable, "-m", "commsim", "run", "--topology", STAR, "-b", "1M", "-e", "1M"]
    environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    subprocess.run(words, stdout=slave, stderr=subprocess.PIPE, check=True, env=environ | {"NO_COLOR": "1"})
    lines = os.read(master, 65536).decode().splitlines()
    os.close(master), os.close(slave)
    (at,) = (i for i, line in enumerate(lines) if "size(B)" in line)
    head, row = lines[at].split(), lines[at + 1].split()
    assert len(head) == len(row)
    assert max(len(lines[at]), len(lines[at + 1])) <= width
    cells = dict(zip(head, row, strict=True))
    assert float(cells["time(us)"]) == pytest.approx(6 * (1 + 2 + 2**20 / 4 / 12.5e3), abs=0.01)
    assert {"size(B)", "busbw(GB/s)"} <= cells.keys()
    if len(head) < 13:
        assert "# -v also shows " in "".join(lines)


def test_json_says_all_that_the_table_shows_and_what_the_names_have_become(commsim):
    tree = commsim.results("run", "--topology", STAR, "-n", "3", "--overhead", "2us", "-v")
    (row,), network = tree["results"], tree["network"]
    busiest = row["busiest_link"]
    assert (busiest["name"], busiest["bytes"]) == ("h0:switch0", 1.5 * row["size_B"])
    assert busiest["Bps"] == busiest["bytes"] / row["time_s"]
    assert row["method"] in METHODS
    assert (network["n_nodes"], network["n_links"], network["bandwidth_Bps"]) == (5, 8, [12.5e9, 12.5e9])
    assert network["overhead_s"] == 2e-6
    assert "option-unused" in [remark["code"] for remark in tree["remarks"]]


@pytest.mark.parametrize(
    ("collective", "words"),
    [
        ("ring_all_reduce", "a recurrence, since messages have their links to themselves or share them in step"),
        ("nccl_all_reduce", "NCCL's closed form, since no link can be in the way of its messages"),
    ],
)
def test_v_says_which_way_the_flow_engine_computed(commsim, collective, words):
    network = "dgx-h100" if collective.startswith("nccl") else STAR
    answer = commsim("run", "--overhead", "0us", "--topology", network, "--collective", collective, "-v")
    assert f"# flow engine: {words}" in answer.out.splitlines()


def test_the_busiest_link_is_the_slow_one_and_another_has_the_most_bytes(commsim):
    words = ("--topology", STAR, "--collective", "binomial_broadcast", "-b", "1M", "-e", "1M")
    tree = commsim.results("run", "--overhead", "0us", *words, "--scale", "link:switch0:h3=0.01")
    (row,) = tree["results"]
    assert row["max_link_bytes"] == 2 * row["busiest_link"]["bytes"] == 2**21
    (at,) = (i for i, line in enumerate(commsim.out.splitlines()) if "size(B)" in line)
    head, cells = (line.split() for line in commsim.out.splitlines()[at : at + 2])
    shown = dict(zip(head, cells, strict=True))
    assert (shown["busiest_link"], shown["busiest(B)"]) == (row["busiest_link"]["name"], "1048576")


def test_json_on_standard_output_is_alone_there(commsim):
    assert commsim("run", "--overhead", "0us", "--topology", STAR, "-n", "3", "--json", "-").code == 0
    tree = json.loads(commsim.out)
    assert tree["results"][0]["collective"] == "ring_all_reduce"
    other = json.loads(commsim("run", "--overhead", "0us", "--topology", STAR, "--json", "-").out)
    assert "option-unused" not in [remark["code"] for remark in other["remarks"]]  # remarks are those of one command


def test_collectives_need_no_flag_and_stand_anywhere(commsim):
    words = ("run", "ring_all_gather", "--topology", STAR, "ring_all_reduce", "-b", "1M", "-e", "1M")
    tree = commsim.results(*words, "--collective", "chain_broadcast")
    assert [r["collective"] for r in tree["results"]] == ["ring_all_gather", "ring_all_reduce", "chain_broadcast"]
    assert tree["config"]["collective"] == ["ring_all_gather", "ring_all_reduce", "chain_broadcast"]


def test_a_part_of_a_name_is_told_the_whole_names(commsim):
    assert "did you mean binomial_tree_all_reduce or double_tree_all_reduce?" in commsim.refuses(
        "run", "tree", "--topology", STAR
    )
    assert {row["collective"] for row in commsim.results("run", "ring", "--topology", STAR)["results"]} == {
        "ring_all_reduce"
    }


def test_the_other_flags_of_nccl_tests(commsim):
    words = ("run", "--topology", STAR, "-b", "1K", "-e", "3K", "-i", "1K", "-g", "3", "-d", "half")
    tree = commsim.results(*words)
    assert [r["size_B"] for r in tree["results"]] == [1024, 2048, 3072]
    assert {r["n_ranks"] for r in tree["results"]} == {3}
    rows = [line.split() for line in commsim.out.splitlines() if line.split()[1:3] == ["1024", "half"]]
    assert [row[0] for row in rows] == ["2048"]  # 1,024 elements of two bytes
    assert commsim("run", "--overhead", "0us", "--topology", STAR, "-J", commsim.folder / "j.json").code == 0
    assert json.loads((commsim.folder / "j.json").read_text())["results"]
    assert "-i must be at least 1 byte" in commsim.refuses("run", "--topology", STAR, "-b", "1", "-e", "1G", "-i", "1")
    assert "no 'int4'; did you mean int64?" in commsim.refuses("run", "--topology", STAR, "-d", "int4")


def test_flags_of_the_packet_engine_are_in_the_help_of_all_flags(commsim):
    plain = commsim("run", "--overhead", "0us", "--help").out
    assert "--ecn" not in plain
    assert "more flags: commsim run --help all" in plain
    assert "--ecn" in commsim("run", "--overhead", "0us", "--help", "all").out


def test_collective_repeats_and_takes_parameters(commsim):
    tree = commsim.results(
        "run",
        "--overhead",
        "0us",
        "--topology",
        STAR,
        "--collective",
        "ring_all_gather",
        "--collective",
        "chain_broadcast:n_chunks=4",
    )
    assert [r["collective"] for r in tree["results"]] == ["ring_all_gather", "chain_broadcast"]
    np.testing.assert_allclose(tree["results"][1]["time_s"], 3 * 2e-6 + 6 * 2**25 / 4 / 12.5e9, rtol=1e-9)


def test_flags_without_effect_are_said_so(commsim):
    assert (
        "-n and -w: no effect"
        in commsim("run", "--overhead", "0us", "--topology", STAR, "-n", "20", "-w", "5", "-v").out
    )
    assert (
        "seed: no effect"
        in commsim("run", "--overhead", "0us", "--topology", STAR, "--routing", "spray", "--seed", "3", "-v").out
    )
    assert (
        "no effect"
        not in commsim("run", "--overhead", "0us", "--topology", STAR, "-n", "3", "--start-jitter", "1ms", "-v").out
    )


def test_a_barrier_carries_no_bytes_whatever_the_sizes(commsim):
    tree = commsim.results(
        "run",
        "--overhead",
        "0us",
        "--topology",
        STAR,
        "--collective",
        "dissemination_barrier",
        "-b",
        "1M",
        "-e",
        "4M",
        "-v",
    )
    (row,) = tree["results"]
    assert "no effect, a barrier carries no bytes" in commsim.out
    assert row["size_B"] == row["bytes_on_wire"] == 0
    np.testing.assert_allclose(row["time_s"], 2 * 2e-6, rtol=1e-9)


@pytest.mark.parametrize("line", ["run dissemination_barrier", "bound --operation barrier", "run ep_dispatch"])
def test_that_sizes_have_no_effect_is_said_where_one_was_asked_for(line, commsim):
    verb, *words = line.split()
    commsim.results(verb, *words, "--topology", "star:n_hosts=4", "-v")
    assert "sizes have no effect" not in commsim.out
    commsim.results(verb, *words, "--topology", "star:n_hosts=4", "-v", "--size", "1M")
    assert "sizes have no effect" in commsim.out


def test_late_starters_are_seeded_and_reported_both_ways(commsim):
    late = ("run", "--topology", STAR, "--start-jitter", "1ms", "--seed")
    one, same, other = (commsim.results(*late, seed)["results"][0] for seed in (1, 1, 2))
    assert one == same
    assert one["time_s"] != other["time_s"]
    assert 0 < one["time_from_last_start_s"] < one["time_s"]


def test_iterations_with_jitter_give_a_median_and_percentiles(commsim):
    row = commsim.results("run", "--overhead", "0us", "--topology", STAR, "--start-jitter", "1ms", "-n", "21")[
        "results"
    ][0]
    assert row["n_samples"] == 21
    assert row["p5_s"] <= row["time_s"] <= row["p95_s"]


def test_overheads_of_messages_and_packets_are_paid(commsim):
    base = ("run", "--topology", STAR, "-b", "4M", "-e", "4M", "--collective", "ring_reduce_scatter")
    free = ("--overhead", "0us")
    plain, o, gamma, header = (
        commsim.results(*base, *more)["results"][0]["time_s"]
        for more in (
            free,
            ("--overhead", "5us"),
            (*free, "--reduce-rate", "1GB/s"),
            (*free, "--payload", "1KiB", "--header", "64B"),
        )
    )
    np.testing.assert_allclose(o - plain, 3 * 5e-6, rtol=1e-9)
    np.testing.assert_allclose(gamma - plain, 3 * 2**20 / 1e9, rtol=1e-9)
    np.testing.assert_allclose(header - plain, 3 * 2**20 / 1024 * 64 / 12.5e9, rtol=1e-9)


def test_alpha_beta_warns_where_contention_decides(commsim):
    network = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=100Gbps,oversubscription=4"
    commsim("run", "--overhead", "0us", "--topology", network, "--placement", "spread", "--engine", "alpha-beta", "-v")
    assert "no contention in this engine" in commsim.out


def test_derived_groups_are_printed(commsim):
    network = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps"
    commsim("run", "--overhead", "0us", "--topology", network, "--collective", "hierarchical_all_reduce", "-v")
    assert "groups are the 2 racks, of 4 ranks each" in commsim.out


def test_a_placement_file_and_a_network_file_are_read(commsim, tmp_path):
    commsim("topo", "save", STAR, "-o", tmp_path / "net.toml")
    (tmp_path / "where.json").write_text('{"placement": ["h3", "h1"]}')
    row = commsim.results("run", "--overhead", "0us", "--topology", tmp_path / "net.toml", "--placement",
                          tmp_path / "where.json", "--ranks", 2)["results"][0]  # fmt: skip
    assert row["n_ranks"] == 2


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["--topology", "stra:n_hosts=4"], "did you mean star"),
        (["--topology", "fat_tree:k=3"], "fat_tree needs an even k of at least 2, got k=3"),
        (["--topology", "star:n_hosts=4,bandwidth=100Gb"], "100Gb"),
        (["--topology", "star:n_hosts=4,bandwidth=100"], "unit"),
        (["--topology", "star:n_hosts=x"], "n_hosts"),
        (["--topology", "star:n_hosts=4,n_hosts=5"], "twice"),
        (["--topology", "star"], "needs n_hosts"),
        (["--topology", "nothing.toml"], "nothing.toml"),
        (["--topology", STAR, "-b", "0"], "-b must be a whole number of bytes, at least 1"),
        (["--topology", STAR, "-b=-1M"], "-b must not be negative or infinite, got '-1M'"),
        (["--topology", STAR, "-b", "-1M"], "-b/--minbytes: must not be negative, got -1M"),
        (["--topology", STAR, "-b", "x1M"], "x1M"),
        (["--topology", STAR, "--size", "1e30G"], "--size must be below 8 EiB, got '1e30G'"),
        (["--topology", STAR, "--size", "1.5Gb"], "got '1.5Gb'; b is a bit, B is a byte"),
        (["--topolgy", STAR], "unrecognized arguments: --topolgy; did you mean --topology? (see"),
        (["--collective", "nccl"], "the following arguments are required: --topology"),
        (
            ["--topology", STAR, "--nccl-version", "2.28"],
            "arguments: --nccl-version; of NCCL it is a parameter of the collective: nccl:version=2.28",
        ),
        (["--topology", STAR, "--net-type", "PIX"], "the collective: nccl:net_type=VALUE"),
        (["--topology", STAR, "-b"], "-b/--minbytes: expected one argument"),
        (["--topology", STAR, "--seed", "1,2"], "whole number, got '1,2': one seed at a time; `repeats` in the file"),
        (["--topology", STAR, "--seed", "x"], "--seed: must be a whole number, got 'x' (see commsim run --help)"),
        (["--topology", STAR, "-c", "all_reduce"], "unrecognized arguments: -c: --operation NAME, such as"),
        (["--topology", STAR, "--plot", "x.png"], "arguments: --plot: --json FILE.json keeps the result, and commsim"),
        (["--topology", STAR, "--no-such"], "commsim run: error: unrecognized arguments: --no-such (see"),
        (["--topology", STAR, "-b", "2M", "-e", "1M"], "-e must not be smaller"),
        (["--topology", STAR, "-f", "1"], "-f must be"),
        (["--topology", STAR, "--ranks", "0"], "ranks must be"),
        (["--topology", STAR, "--ranks", "-3"], "ranks must be"),
        (["--topology", STAR, "--ranks", "5"], "4 hosts"),
        (["--topology", STAR, "--ranks", "many"], "--ranks"),
        (["--topology", STAR, "--collective", "rign_all_reduce"], "did you mean ring_all_reduce"),
        (["--topology", STAR, "--collective", "chain_broadcast:root=4"], "root must be a rank 0..3"),
        (["--topology", STAR, "--collective", "chain_broadcast:n_chunks=0"], "at least 1 chunk"),
        (["--topology", STAR, "--engine", "magic"], "unknown engine"),
        (["--topology", STAR, "--placement", "everywhere"], "unknown placement"),
        (["--topology", STAR, "--start-jitter", "5"], "unit"),
        (["--topology", STAR, "--iters", "0"], "-n must be at least 1"),
        (["--topology", STAR, "--json", "/nonexistent/x.json"], "cannot write"),
        ([], "--topology"),
    ],
)
def test_bad_input_gives_one_clear_line_and_exit_code_2(commsim, argv, what):
    assert what in commsim.refuses("run", *argv)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"schema": 1, "schema": 1}', "appears twice"),
        ("{", "net.json"),
        ("[1]", "JSON: a list"),
        ('{"schema": 1, "nodes": [{"name": "a", "kind": "host"}], "links": [{"from": "a", "to": "b"}]}', "b"),
        ("[" * 100_000, "net.json"),
    ],
)
def test_a_bad_network_file_is_named(commsim, tmp_path, text, what):
    path = tmp_path / "net.json"
    path.write_text(text)
    message = commsim.refuses("run", "--topology", path)
    assert "net.json" in message
    assert what in message


def test_a_disconnected_network_names_the_pair(commsim, tmp_path):
    nodes = [{"name": f"h{i}", "kind": "host"} for i in range(4)] + [
        {"name": f"s{i}", "kind": "switch"} for i in (0, 1)
    ]
    links = [{"from": f"h{i}", "to": f"s{i // 2}", "bandwidth": "1Gbps", "latency": "1us", "both_ways": True}
             for i in range(4)]  # fmt: skip
    path = tmp_path / "net.json"
    path.write_text(json.dumps({"schema": 1, "nodes": nodes, "links": links}))
    message = commsim.refuses("run", "--topology", path)
    assert "no path from h" in message
    assert ("h0" in message or "h1" in message) == ("h2" in message or "h3" in message)


def test_a_rank_on_a_switch_is_refused(commsim, tmp_path):
    (tmp_path / "where.json").write_text('{"placement": ["h0", "switch0"]}')
    commsim("topo", "save", STAR, "-o", tmp_path / "net.json")
    switch = next(n["name"] for n in json.loads((tmp_path / "net.json").read_text())["nodes"] if n["kind"] == "switch")
    (tmp_path / "where.json").write_text(json.dumps({"placement": ["h0", switch]}))
    message = commsim.refuses("run", "--topology", STAR, "--placement", tmp_path / "where.json", "--ranks", 2)
    assert "a switch; ranks are placed on hosts" in message


def test_a_refused_run_leaves_no_file(commsim, tmp_path):
    commsim.refuses(
        "run", "--topology", STAR, "--collective", "chain_broadcast:root=9", "--json", tmp_path / "out.json"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_npz_is_refused(commsim, tmp_path):
    path = tmp_path / "net.npz"
    commsim("topo", "save", STAR, "-o", path)
    path.write_bytes(path.read_bytes()[:-30])
    assert "net.npz" in commsim.refuses("run", "--topology", path)


def test_more_workers_than_a_switch_takes_are_told(commsim):
    command = ("run", "--collective", "switchml", "-b", "1M", "-e", "1M", "--topology")
    assert commsim(*command, "star:n_hosts=64,bandwidth=100Gbps").code == 0
    assert "# switchml: 64 workers at a switch, and a Tofino takes 16: commsim switch budget" in commsim.out
    assert commsim(*command, "star:n_hosts=16,bandwidth=100Gbps").code == 0
    assert "and a Tofino takes" not in commsim.out


def test_a_flag_of_one_letter_leads_to_operation_and_collective(commsim):
    assert "-c: --operation NAME" in commsim.refuses("run", "--topology", STAR, "-c", "all_gather")


def test_in_network_aggregation_just_runs_and_says_where(commsim):
    (row,) = commsim.results(
        "run", "--overhead", "0us", "--collective", "switchml", "--topology", STAR, "-b", "64M", "-e", "64M", "-v"
    )["results"]
    assert row["max_link_bytes"] == 2**26 * 1111 / 1024
    assert "# switchml: aggregators on switch0, assumed to be programmable" in commsim.out
    assert "# switchml: busbw is above the" in commsim.out
    assert "# switchml: as switchml_rdma (packets of 1024 + 87 bytes of headers, 512 under way)" in commsim.out
    plain = ("--collective", "switchml:system=none", "--topology", STAR, "-b", "64M", "-e", "64M")
    assert commsim.results("run", "--overhead", "0us", *plain, "-v")["results"][0]["max_link_bytes"] == 2**26
    assert "# switchml: headers are not counted" in commsim.out
    (more,) = commsim.results("run", "--overhead", "0us", *plain, "--payload", "1024B", "--header", "76B", "-v")[
        "results"
    ]
    assert more["max_link_bytes"] == 2**26 * 1100 / 1024
    assert "headers are not counted" not in commsim.out


def test_a_busbw_below_the_rate_of_the_links_needs_no_remark(commsim):
    commsim("run", "--overhead", "0us", "--collective", "switchml", "--topology", STAR, "-b", "1K", "-e", "1K")
    assert "busbw is above" not in commsim.out


STAR_8 = "star:n_hosts=8,bandwidth=100Gbps,latency=1us"


def test_each_group_has_a_row(commsim):
    flags = ("run", "--topology", STAR_8, "-b", "1M", "-e", "1M", "--group", "0,2,4,6", "--group", "1,3")
    tree = commsim.results(*flags)
    assert [r["n_ranks"] for r in tree["results"]] == [4, 2]
    rows = [line.split() for line in commsim.out.splitlines() if line.split()[1:2] == ["1048576"]]
    assert [row[0] for row in rows] == ["0,2,4,6", "1,3"]


def test_bad_groups_get_one_line(commsim):
    run = ("run", "--topology", STAR_8)
    assert "--group must be ranks such as 0,2,4,6, got '0,x'" in commsim.refuses(*run, "--group", "0,x")
    assert "different ranks 0..7, got [0, 9]" in commsim.refuses(*run, "--group", "0,9")
    assert "goes with --collective" in commsim.refuses(*run, "--group", "0,1", "--operation", "all_reduce")
    assert "start jitter is not modelled" in commsim.refuses(*run, "--group", "0,1", "--start-jitter", "1ms")


PLAIN_8 = "star:n_hosts=8"


def test_it_runs_the_engine_that_it_chose_and_says_why(commsim):
    rows = commsim.results(
        "run",
        "--overhead",
        "0us",
        "--topology",
        PLAIN_8,
        "--engine",
        "auto",
        "--tolerance",
        "10%",
        "-b",
        "1M",
        "-e",
        "1M",
        "-v",
    )
    assert [row["engine"] for row in rows["results"]] == ["closed-form"]
    assert "# 1 MiB: engine closed-form" in commsim.out
    assert "1 comparison with the packet engine" in commsim.out
    assert "the packet engine is a model, not a measurement" in commsim.out
    chosen = rows["results"][0]["time_s"]
    flow = commsim.results("run", "--overhead", "0us", "--topology", PLAIN_8, "-b", "1M", "-e", "1M", "-v")["results"][
        0
    ]["time_s"]
    assert chosen == pytest.approx(flow, rel=1e-9)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--engine", "auto"], "needs a tolerance"),
        (["--tolerance", "10%"], "tolerance goes with engine auto, got engine flow"),
        (["--engine", "auto", "--tolerance", "much"], "--tolerance must be a share such as 1% or 0.01, got 'much'"),
        (["--engine", "auto", "--tolerance", "0"], "a tolerance is a relative error above 0"),
        (["--engine", "auto", "--tolerance", "1", "--ecn", "0B"], "--ecn needs engine packet, got engine auto"),
        (
            ["--engine", "auto", "--tolerance", "1", "--operation", "all_reduce"],
            "a ranking: errors of engines are not known",
        ),
        (
            ["--engine", "auto", "--tolerance", "1", "--start-jitter", "1ms"],
            "--start-jitter: errors of engines are not known",
        ),
        (
            ["--engine", "auto", "--tolerance", "1", "--group", "0,1"],
            "groups: errors of engines are not known",
        ),
        (
            ["--engine", "auto", "--tolerance", "1", "ring_all_gather", "--compressor", "top_k:density=0.01"],
            "compressed gradients: errors of engines are not known",
        ),
        (
            ["--engine", "auto", "--tolerance", "1", "--operation", "all_reduce", "--algorithm", "ring_all_reduce"],
            "a ranking: errors of engines are not known",
        ),
        (["--engine", "auto", "--tolerance", "10%", "-b", "4T", "-e", "4T"], "4 TiB: compared were 64 KiB to"),
    ],
)
def test_what_is_not_known_is_refused(commsim, flags, message):
    assert message in commsim.refuses("run", "--topology", PLAIN_8, *flags)


def test_the_transport_that_it_is_compared_with_is_the_one_that_runs(commsim):
    spec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,oversubscription=2,bandwidth=10Gbps,latency=0s"
    flags = ["--collective", "direct_all_to_all", "--engine", "auto", "--tolerance", "1%", "-b", "1M", "-e", "1M"]
    slow = commsim.results("run", "--overhead", "0us", "--topology", spec, *flags, "--transport", "dcqcn")["results"][0]
    assert "it is the packet engine, DCQCN" in commsim.out
    same = commsim.results(
        "run", "--overhead", "0us", "--topology", spec, *flags[:3], "packet", *flags[6:], "--transport", "dcqcn"
    )
    assert slow["time_s"] == same["results"][0]["time_s"]


def test_a_bound_beside_it_is_not_forgotten(commsim):
    commsim.results("run", "--overhead", "0us", "--topology", PLAIN_8, "--engine", "auto", "--tolerance", "10%",
                    "-b", "1M", "-e", "1M", "--bound")  # fmt: skip
    assert "# bound: 1 MiB: at least" in commsim.out


STAR_16 = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"


@pytest.mark.parametrize(
    "spec",
    [
        "omnireduce:density=0.1,block=256,n_aggregators=8,pattern=random",
        "sparcml_ssar:density=0.01",
        "agsparse:density=0.01",
    ],
)
def test_the_contract_for_scripts_holds_for_sparse_data(spec, tmp_path, capsys):
    path = tmp_path / "result.json"
    flags = ["--topology", STAR_16, "--ranks", "8", "-b", "1M", "-e", "1M", "--json", str(path)]
    assert main(["run", "--collective", spec, *flags, "-v"]) == 0
    (row,) = json.loads(path.read_text())["results"]
    assert row["bytes_on_wire"] > row["max_link_bytes"] > 0
    out = capsys.readouterr().out
    assert "are drawn: pattern random" in out
    assert "times denser" in out


def test_gradients_from_a_file_set_the_size_which_is_said(tmp_path, capsys):
    np.save(tmp_path / "g.npy", np.eye(4, 100, dtype=np.float32))
    spec = f"agsparse:gradients={tmp_path / 'g.npy'}"
    asked = ["run", "--collective", spec, "--topology", STAR_16, "--ranks", "4", "-v"]
    assert main([*asked, "--size", "1M"]) == 0
    assert "no effect, the size is that of the gradients" in capsys.readouterr().out
    assert main(asked) == 0
    out = capsys.readouterr().out
    assert "no effect" not in out
    assert "400 B: density 0.01, of the sum 0.04, 4 times denser" in out


@pytest.mark.parametrize("spec", ["omnireduce:density=1.5", "omnireduce:density=0.1,n_aggregators=9", "zen:density=0"])
def test_what_makes_no_sense_ends_with_one_line_and_code_2(spec, capsys):
    assert main(["run", "--collective", spec, "--topology", STAR_16, "--ranks", "8"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_missing_flag_is_told_before_a_collective_that_is_misspelt(commsim):
    assert "required: --topology" in commsim.refuses("run", "rign_all_reduce")
    assert "ring_all_reduce" in commsim.refuses("run", "rign_all_reduce", "--topology", "star:n_hosts=4")


@pytest.mark.parametrize("engine", ["flow", "packet"])
@pytest.mark.parametrize("collective", ["ring_all_reduce", "direct_all_to_all", "chain_broadcast"])
def test_one_rank_has_no_rate_and_is_told_so(commsim, engine, collective):
    commsim(
        "run",
        "--overhead",
        "0us",
        "--topology",
        "ring:n_hosts=1",
        "--collective",
        collective,
        "--engine",
        engine,
        "-b",
        "1K",
        "-e",
        "1K",
    )
    assert f"# {collective}: one rank has nothing to send, so there is no rate" in commsim.out
    header, row = (line.split() for line in commsim.out.splitlines() if not line.startswith("#"))
    assert row[header.index("algbw(GB/s)")] == "-"
    assert row[header.index("busbw(GB/s)")] in ("-", "0.000", "N/A")  # the factor is 0, 1 or unknown


@pytest.mark.parametrize(
    "words",
    [
        ("ring_all_reduce", "--ranks", "1", "--fail", "link:h1:switch0"),
        ("ring_all_reduce", "--group", "0", "--group", "2,3", "--engine", "alpha-beta"),
    ],
)
def test_one_rank_is_no_traceback_beside_a_fault_or_another_group(commsim, words):
    commsim("run", *words, "--topology", "star:n_hosts=8", "-b", "1M", "-e", "1M")
    assert "# ring_all_reduce: one rank has nothing to send, so there is no rate" in commsim.out


@pytest.mark.parametrize("operation", ["all_gather", "broadcast"])
def test_a_ranking_of_one_rank_has_no_rates_and_no_best_algorithm(commsim, operation):
    commsim("run", "--topology", "star:n_hosts=1", "--operation", operation, "-b", "1K", "-e", "4K", "-v")
    assert "# one rank has nothing to send" in commsim.out
    assert "# best: " not in commsim.out
    header, *rows = (line.split() for line in commsim.out.splitlines() if line[0] != "#")
    assert {row[header.index("algbw(GB/s)")] for row in rows} == {"-"}
    assert {row[header.index("busbw(GB/s)")] for row in rows} == {"-" if operation == "broadcast" else "0.000"}


def test_verbose_lists_the_links_that_need_longest(commsim):
    fabric = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=100Gbps,latency=0us"
    run = ("run", "direct_all_to_all", "--topology", fabric, "-b", "4M", "-e", "4M", "--overhead", "0us")
    assert commsim(*run, "-v").code == 0
    rows = [line.split() for line in commsim.out.splitlines() if line.endswith("%")]
    assert [row[0] for row in rows[:2]] == ["leaf0:spine0", "leaf1:spine0"]
    # two hosts send half of what they have, a quarter of 4 MiB each, to the other rack: 4 messages of 1 MiB
    assert rows[0][1:] == ["4194304", "12.500", "100.0%"]
    assert len(rows) == 10
    assert commsim(*run).code == 0
    assert "busy" not in commsim.out


def test_one_size_may_be_asked_for_by_name(commsim):
    one = commsim.results("run", "--overhead", "0us", "--topology", "star:n_hosts=4", "--size", "1M")["results"]
    both = commsim.results("run", "--overhead", "0us", "--topology", "star:n_hosts=4", "-b", "1M", "-e", "1M")[
        "results"
    ]
    assert one == both
    assert "give one of them" in commsim.refuses("run", "--topology", "star:n_hosts=4", "--size", "1M", "-b", "4K")


def test_a_collective_without_a_closed_form_does_not_stop_the_others(commsim):
    """It printed neither."""
    none, has = "double_tree_all_reduce", "ring_all_reduce"
    line = ("--topology", "star:n_hosts=4", "-b", "64K", "-e", "64K", "--engine", "closed-form")
    tree = commsim.results("run", "--overhead", "0us", none, has, *line, "-v")
    assert [row["collective"] for row in tree["results"]] == [has]
    assert tree["config"]["collective"] == [has]
    assert f"# skipped: {none}: " in commsim.out
    assert "has no closed form" in commsim.refuses("run", none, *line)


def test_packets_of_a_payload_have_the_headers_of_roce(commsim):
    """By hand: a ring of 4 sends 6 messages of a quarter, 256 packets of 1,024 bytes and 82 more each."""
    words = ("run", "ring_all_reduce", "--topology", STAR, "--overhead", "0us", "-b", "1M", "-e", "1M")
    for packets in (("--mtu", "1024B"), ("--payload", "1KiB", "--header", "82B")):
        (row,) = commsim.results(*words, *packets)["results"]
        assert row["time_s"] == pytest.approx(6 * (256 * (1024 + 82) / 12.5e9 + 2e-6), rel=1e-9)


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("nccl", "--algorithm", "tree"), ("nccl:algorithm=tree",)),
        (("nccl", "--operation", "AllGather", "--algorithm", "ring"), ("nccl_all_gather:algorithm=ring",)),
        (("nccl_all_reduce:version=2.20", "--algorithm", "ring"), ("nccl:version=2.20,algorithm=ring",)),
        (("broadcast",), ("--operation", "broadcast")),
        (("MPI_Bcast",), ("--operation", "broadcast")),
        (("barrier", "--algorithm", "all"), ("--operation", "barrier", "--algorithm", "all")),
    ],
)
def test_an_operation_in_place_of_a_collective_and_an_algorithm_of_a_library_are_what_they_say(commsim, words, same):
    network = ("--topology", "dgx-h100", "-b", "1M", "-e", "1M")
    assert commsim("run", *words, *network).out == commsim("run", *same, *network).out


@pytest.mark.parametrize(
    ("word", "library"),
    [("mpi", "mpich"), ("mpich", "mpich"), ("open-mpi", "open-mpi"), ("OpenMPI", "open-mpi"), ("gloo", "gloo")],
)
def test_a_library_of_programs_runs_what_it_chooses(commsim, word, library):
    assert f"# {library}_all_reduce on {STAR}" in commsim("run", word, "--topology", STAR).out


def test_bytes_that_leave_the_leaves_are_added_up(commsim):
    """By hand: each of 8 ranks sends 4 blocks of 1 MiB to the other leaf; a ring leaves each leaf once, 14/8 MiB."""
    network = ("--topology", "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4", "--size", "8M")
    for collective, carried in (("direct_all_to_all", 8 * 4 * 2**20), ("ring_all_reduce", 2 * 14 * 2**20)):
        (row,) = commsim.results("run", collective, *network)["results"]
        assert row["bytes_up"] == [{"name": "leaf-spine cables", "bytes": carried}]
        assert f"# up over leaf-spine cables: {carried} B, " in commsim("run", collective, *network, "-v").out
    (row,) = commsim.results("run", "ring_all_reduce", "--topology", STAR)["results"]
    assert row["bytes_up"] == []
