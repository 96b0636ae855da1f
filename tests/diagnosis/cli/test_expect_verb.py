"""``commsim expect``: its table, its exit codes, and what it refuses on one line."""

import re
import shlex

import pytest

import commsim as cs


def test_floors_by_operation_and_size(commsim):
    tree = commsim.results("expect", "dgx-h100", "--size", "1M,1G")
    assert [(row["operation"], row["size_B"]) for row in tree["results"][:2]] == [
        ("all_reduce", 2**20), ("all_reduce", 2**30),
    ]  # fmt: skip
    assert len(tree["results"]) == 8
    assert all(0 < row["floor_busbw_Bps"] < row["low_busbw_Bps"] < row["busbw_Bps"] for row in tree["results"])


def test_a_terminal_of_80_columns_shows_the_whole_table(commsim):
    assert commsim("expect", "dgx-h100", "--machines", "2", "--operation", "all_reduce").code == 0
    lines = commsim.out.splitlines()
    assert lines[0].startswith("# dgx-h100@star:machines=2, 16 ranks, limited by NVLink; floor: 1%")
    assert lines[1].split() == ["operation", "size", "time(us)", "busbw(GB/s)", "low", "high", "floor"]
    assert all(len(line) <= 80 for line in lines[1:] if not line.startswith("#"))


def test_a_log_below_the_floor_exits_1(commsim, tmp_path):
    path = tmp_path / "a.log"
    path.write_text(cs.fake_nccl_tests("hgx-h100@star:machines=2,bandwidth=50Gbps", sizes=["1GiB", "4GiB", "8GiB"]))
    assert commsim("expect", "hgx-h100", "--from", path).code == 1
    assert "# log: below the floor; 1% of healthy logs are below" in commsim.out
    assert re.search(r"# all_reduce, 3 large sizes: .* \(\d+ tables of \d+ operators\): below", commsim.out)
    command = next(line for line in commsim.out.splitlines() if line.startswith("# next: ")).removeprefix("# next: ")
    assert command == f"commsim compare {path} --topology hgx-h100@star:machines=2"
    assert commsim(*shlex.split(command)[1:]).code == 0
    assert commsim("expect", "hgx-h100", "--from", path, "--in-place", "--operation", "all_reduce").code == 1
    assert f"{command} --operation all_reduce --in-place\n" in commsim.out
    path.write_text(cs.fake_nccl_tests("hgx-h100@star:machines=2", sizes=["1GiB", "8GiB"]))
    assert commsim("expect", "hgx-h100", "--from", path).code == 0
    assert "# next: " not in commsim.out


def test_a_page_has_a_figure_for_each_operation(commsim, tmp_path):
    pytest.importorskip("vl_convert")
    path = tmp_path / "a.html"
    words = ("--operation", "all_reduce", "--operation", "all_gather", "--size", "1M,1G")
    assert commsim("expect", "dgx-h100", *words, "--report", path).code == 0
    text = path.read_text()
    assert all(f"Bus bandwidth of {name}" in text for name in ("all-reduce", "all-gather"))


def test_several_numbers_of_machines_are_a_table_each(commsim):
    words = ("--operation", "all_reduce", "--size", "1G")
    rows = commsim.results("expect", "dgx-h100", "--machines", "2,4", *words)["results"]
    assert [(row["n_machines"], row["n_ranks"]) for row in rows] == [(2, 16), (4, 32)]
    alone = commsim.results("expect", "dgx-h100", "--machines", "4", *words)["results"]
    assert rows[1]["floor_busbw_Bps"] == alone[0]["floor_busbw_Bps"]


def test_what_faults_leave_is_expected_to_reach_less(commsim):
    words = ("expect", "dgx-h100", "--machines", "2", "--operation", "all_reduce", "--size", "1G")
    slow = ("--scale", "link:m1.nic*:switch0=0.25")
    whole, less = (commsim.results(*words, *fault)["results"][0] for fault in ((), slow))
    assert less["busbw_Bps"] < 0.95 * whole["busbw_Bps"]
    assert less["floor_busbw_Bps"] < whole["floor_busbw_Bps"]


def test_what_the_machines_would_reach_without_the_faults_stands_beside(commsim):
    words = ("expect", "dgx-h100", "--machines", "2", "--operation", "all_reduce", "--size", "1G")
    slow = ("--scale", "link:m1.nic*:switch0=0.25")
    whole, less = (commsim.results(*words, *fault)["results"][0] for fault in ((), slow))
    assert less["healthy_busbw_Bps"] == whole["busbw_Bps"]
    assert "healthy_busbw_Bps" not in whole
    assert commsim(*words, *slow).code == 0
    assert "without faults" in commsim.out
    assert f"{whole['busbw_Bps'] / 1e9:.1f}" in commsim.out


def test_the_title_names_the_faults(commsim):
    words = ("expect", "dgx-h100", "--machines", "2", "--operation", "all_reduce", "--size", "1G")
    assert commsim(*words, "--fail", "link:m0.nic0:switch0").code == 0
    assert commsim.out.splitlines()[0].startswith("# dgx-h100@star:machines=2 without m0.nic0:switch0, 16 ranks")
    assert commsim(*words, "--scale", "link:m0.nic0:switch0=0.5").code == 0
    assert "at 0.5" in commsim.out.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nope",), "unknown topology 'nope'"),
        (("dgx-h100", "--false-alarms", "x"), "--false-alarms must be a share such as 1% or 0.01, got 'x'"),
        (("dgx-h100", "--false-alarms", "0"), "must be 0.01% to 50%, got 0%"),
        (("dgx-h100", "--machines", "0"), "at least 1 machine, got 0"),
        (("dgx-h100", "--machines", "100000"), "at most 16384 GPUs are joined to be predicted, got 100000"),
        (
            ("dgx-h100", "--machines", "2,2"),
            "--machines must be whole numbers such as 2 or 2,4, each once and of at most 9 digits, got '2,2'",
        ),
        (("dgx-h100", "--machines", "1000000000"), "of at most 9 digits, got '1000000000'"),
        (("dgx-h100", "--nodes", "2"), "unrecognized arguments: --nodes 2; --machines N is the number of machines"),
        (("dgx-h100", "--machines", "2,x"), "--machines must be whole numbers"),
        (("dgx-h100", "--machines", "2,4", "--for", "nccl-tests"), "--for takes one number of --machines"),
        (("dgx-h100", "--machines", "2", "--fail", "link:nope:a", "--size", "1M"), "nope"),
        (("dgx-h100", "--from", "a.log", "--fail", "links:1"), "--fail does not go with --from"),
        (("dgx-h100", "--from", "gone.log"), "gone.log"),
        (("dgx-h100", "--from", "a.log", "-b", "2M"), "--minbytes does not go with --from"),
        (("dgx-h100", "--in-place"), "--in-place goes with --from"),
        (("dgx-h100", "--machines", "2", "--operation", "all_reduce", "--for", "azure-nhc"), "inside of one machine"),
    ],
)
def test_wrong_input_is_refused_on_one_line(commsim, words, said):
    assert said in commsim.refuses("expect", *words)


def test_a_file_of_another_kind_is_no_log_and_its_beginning_is_named(commsim, tmp_path):
    """A TOML file was only "Expecting value: line 1 column 3"."""
    (tmp_path / "jobs.toml").write_text("[[job]]\nranks = '0-3'\n")
    said = commsim.refuses("expect", "dgx-h100", "--from", tmp_path / "jobs.toml")
    assert "holds no measurement, and is not JSON: " in said
    assert said.strip().endswith("it begins with '[[job]]'")
