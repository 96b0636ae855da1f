import json

import pytest

STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"
HALF = "     time   algbw   busbw #wrong"
HEADER = f"#       size         count      type   redop    root{HALF}{HALF}"


def table(path, times, program="all_reduce_perf", ranks=4):
    lines = [
        f"# Collective test starting: {program}",
        *(f"#  Rank {r:2} Group  0 Pid 1 on n" for r in range(ranks)),
        HEADER,
    ]
    for size, time in times.items():
        rate = size / time / 1e3
        half = f"  {time:.2f}  {rate:.2f}  {rate * 2 * (ranks - 1) / ranks:.2f}  0"
        lines.append(f"  {size}  {size // 4}  float  sum  -1{half}{half}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def predicted(commsim, tmp_path):
    path = tmp_path / "predicted.json"
    assert (
        commsim("run", "--overhead", "0us", "--topology", STAR, "-b", "1M", "-e", "16M", "-f", "4", "--json", path).code
        == 0
    )
    (tmp_path / "predicted.txt").write_text(commsim.out)
    return path


def test_a_prediction_against_itself_has_no_error(commsim, predicted):
    tree = commsim.results("compare", predicted, predicted)
    assert [row["error"] for row in tree["results"]] == [0.0] * 3
    assert tree["summary"]["worst"] == 0.0
    assert commsim("compare", predicted, predicted.with_suffix(".txt")).code == 0
    assert "error: median 0.0%" in commsim.out


def test_errors_by_size_and_in_all(commsim, predicted, tmp_path):
    times = {row["size_B"]: row["time_s"] for row in json.loads(predicted.read_text())["results"]}
    slower = {int(size): time * 1e6 * 2 for size, time in times.items()} | {1 << 30: 9e5}
    tree = commsim.results("compare", predicted, table(tmp_path / "log.txt", slower), "-v")
    assert [row["error"] for row in tree["results"]] == pytest.approx([-0.5] * 3, abs=1e-4)
    assert [row["line"] for row in tree["results"]] == [7, 8, 9]
    assert "error: median 50.0%, 90th percentile 50.0%, worst 50.0%" in commsim.out
    assert "median signed error -50.0%" in commsim.out
    assert "# without a prediction: all_reduce 1073741824 B" in commsim.out


def test_flags_of_run_predict_at_the_sizes_that_were_measured(commsim, predicted, tmp_path):
    measured = table(tmp_path / "log.txt", {1 << 20: 150.0, 3 << 20: 420.0})
    tree = commsim.results("compare", measured, "--topology", STAR, "--collective", "ring_all_reduce",
                           "--overhead", "0us")  # fmt: skip
    assert [row["size_B"] for row in tree["results"]] == [1 << 20, 3 << 20]
    first = json.loads(predicted.read_text())["results"][0]
    assert tree["results"][0]["predicted_s"] == pytest.approx(first["time_s"], rel=1e-12)
    picture = tmp_path / "c.svg"
    args = ("compare", measured, "--topology", STAR, "--collective", "ring_all_reduce", "--overhead", "5us")
    assert commsim(*args, "--plot", picture).code == 0
    assert "predicted" in picture.read_text()


def test_of_a_file_with_several_algorithms_one_is_chosen(commsim, predicted, tmp_path):
    both = tmp_path / "both.json"
    names = ("--collective", "ring_all_reduce", "--collective", "double_tree_all_reduce")
    assert (
        commsim(
            "run",
            "--overhead",
            "0us",
            "--topology",
            STAR,
            "-b",
            "1M",
            "-e",
            "16M",
            "-f",
            "4",
            *names,
            "--json",
            both,
            "-v",
        ).code
        == 0
    )
    assert "choose one, such as double_tree_all_reduce" in commsim.refuses("compare", both, predicted)
    tree = commsim.results("compare", both, predicted, "--collective", "ring_all_reduce", "-v")
    assert [row["error"] for row in tree["results"]] == [0.0, 0.0, 0.0]
    assert commsim("compare", predicted, both, "-v").code == 0
    assert "# measured times of all_reduce are medians over several algorithms: double_tree" in commsim.out


def test_an_algorithm_without_a_name_is_said_to_have_none(commsim, predicted, tmp_path):
    tree = json.loads(predicted.read_text())
    tree["results"] += [{**tree["results"][0], "collective": "", "algorithm": ""}]
    measured = tmp_path / "measured.json"
    measured.write_text(json.dumps(tree))
    assert commsim("compare", measured, "--topology", STAR, "--collective", "ring_all_reduce", "-v").code == 0
    assert "# measured times of all_reduce are medians over several algorithms: unnamed, ring" in commsim.out


def test_a_busbw_above_the_line_is_explained(commsim, tmp_path):
    above = table(tmp_path / "log.txt", {1 << 26: (1 << 26) * 1.5 / 100e9 * 1e6})  # 100 GB/s on links of 12.5
    assert commsim("compare", above, "--topology", STAR, "--collective", "ring_all_reduce").code == 0
    assert "is 8 times the 12.5 GB/s of link h0:switch0, the only one of a host; it is algbw" in commsim.out
    assert "the line's rate may be in Gb/s where GB/s were meant" in commsim.out


def test_without_a_collective_the_usual_one_of_the_measured_operation_is_predicted(commsim, tmp_path):
    measured = table(tmp_path / "log.txt", {1 << 20: 100.0, 1 << 24: 1400.0})
    named = commsim.results("compare", measured, "--topology", STAR, "--collective", "ring_all_reduce", "-v")
    usual = commsim.results("compare", measured, "--topology", STAR, "-v")
    assert [row["predicted_s"] for row in usual["results"]] == [row["predicted_s"] for row in named["results"]]
    assert "ring_all_reduce: another algorithm can be named" in commsim.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{m}"], "the prediction is a file, or --topology .and --collective.: give one of the two"),
        (["{m}", "{m}", "{m}"], "one file of measurements and at most one of predictions, got 3"),
        (["{m}", "{other}", "--topology", STAR], "o.txt: holds no|all_gather|nothing to compare"),
        (["--topology", STAR], "give a file of measurements, or --busbw"),
        (["--busbw", "fast", "--operation", "all_reduce", "--topology", STAR], "busbw"),
        (["--busbw", "3GB/s", "--topology", STAR], "needs its operation"),
        (
            ["{m}", "--topology", STAR, "--collective", "ring_all_gather"],
            "ring_all_gather is all_gather",
        ),
        (["{m}", "{m}", "--overhead", "1us"], "--overhead goes with --topology, not with a file of predictions"),
        (["{m}", "{other}"], "nothing to compare: .* has all_reduce, .* has all_gather"),
        (["{m}", "{m}", "--ranks", "8"], "was measured on 4 ranks, got 8"),
        (["/nowhere", "{m}"], "/nowhere: No such file"),
        (["{m}", "{m}", "--operation", "broadcast"], "holds no measurement of broadcast"),
        (["{m}", "--topology", STAR, "--collective", "ring_all_reduce", "--plot", "c.gif"], "c.gif"),
    ],
)
def test_what_cannot_be_compared_is_refused(commsim, tmp_path, arguments, message):
    import re

    files = {
        "m": table(tmp_path / "m.txt", {1 << 20: 150.0}),
        "other": table(tmp_path / "o.txt", {1 << 20: 150.0}, "all_gather_perf"),
    }
    error = commsim.refuses("compare", *(text.format(**files) for text in arguments))
    assert re.search(message, error)


def test_measured_times_stand_beside_the_interval_of_the_prediction(commsim, tmp_path):
    where = ("--topology", "dgx-h100@star:machines=2")
    row = commsim.results("run", "nccl", *where, "--size", "64M")["results"][0]
    measured = {1 << 26: row["high_s"] * 1.01e6}
    tree = commsim.results("compare", table(tmp_path / "slow.txt", measured, ranks=16), *where)["results"][0]
    assert (tree["predicted_low_s"], tree["predicted_high_s"]) == (row["low_s"], row["high_s"])
    assert tree["within_predicted"] is False
    assert "# 0 of 1 measured times lie in the intervals" in commsim.out
    measured = {1 << 26: row["high_s"] * 0.99e6}
    commsim("compare", table(tmp_path / "in.txt", measured, ranks=16), *where)
    assert "# 1 of 1 measured times lie in the intervals" in commsim.out


def test_nccl_off_by_one_factor_is_told_so_with_the_choice_to_check_first_and_no_untested_cause(commsim, tmp_path):
    where = ("--topology", "dgx-h100@star:machines=2")
    rows = commsim.results("run", "nccl", *where, "-b", "1M", "-e", "256M", "-f", "16", "-v")["results"]
    times = {int(row["size_B"]): row["time_s"] * 1e6 for row in rows}
    inside = table(tmp_path / "inside.txt", {size: 1.25 * time for size, time in times.items()}, ranks=16)
    assert commsim("compare", inside, *where, "-v").code == 0
    assert "# all sizes: 1.25 times as long as predicted, one common factor" in commsim.out
    assert "predicted for release 2." in commsim.out
    assert "check first that the log has these" in commsim.out
    assert "worst 20.0% at every size" in commsim.out
    assert "below 0 (<): predicted too short" in commsim.out
    assert "# cause" not in commsim.out
    slow = table(tmp_path / "slow.txt", {size: 1.9 * time for size, time in times.items()}, ranks=16)
    assert commsim("compare", slow, *where, "-v").code == 0
    assert "# all sizes: 1.9 times as long as predicted, one common factor" in commsim.out
    assert "times as likely as" in commsim.out or "nothing distinguishes" in commsim.out


def test_the_intervals_of_a_file_of_predictions_count_as_with_topology(commsim, tmp_path):
    file, where = tmp_path / "predicted.json", ("--topology", "dgx-h100@star:machines=2")
    assert commsim("run", "nccl", *where, "-b", "1M", "-e", "256M", "-f", "16", "--json", file).code == 0
    rows = json.loads(file.read_text())["results"]
    times = {int(row["size_B"]): 1.1e6 * row["time_s"] for row in rows}
    log = table(tmp_path / "log.txt", times, ranks=16)
    asked = commsim.results("compare", log, *where)["results"]
    read = commsim.results("compare", file, log)["results"]
    keys = ("predicted_low_s", "predicted_high_s", "within_predicted")
    assert [[row[key] for key in keys] for row in read] == [[row[key] for key in keys] for row in asked]
    assert f"# {len(rows)} of {len(rows)} measured times lie in the intervals of 80 %" in commsim.out
    for row in rows:
        del row["low_s"], row["high_s"]
    file.write_text(json.dumps({"schema": 1, "results": rows}))
    assert commsim("compare", file, log).code == 0
    assert "one common factor" in commsim.out
    assert "# slow:" not in commsim.out
