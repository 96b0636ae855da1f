"""Logs of runs that went wrong are not healthy, however fast their rows are; what is left out of a log is said."""

import json

import pytest

import commsim as cs

MACHINES = "hgx-h100@star:machines=2"
ERROR = "node1: Test NCCL failure common.cu:1005 'remote process exited or there was a network error / '"


@pytest.fixture(scope="module")
def lines():
    return cs.fake_nccl_tests(MACHINES, sizes=["1MiB", "64MiB", "1GiB", "4GiB", "8GiB"]).splitlines()


def first_row(lines):
    return next(i for i, line in enumerate(lines) if line.split()[0].isdecimal())


def with_cells(lines, cells, rows=1):
    """Return the lines with other cells in the first rows."""
    changed, first = list(lines), first_row(lines)
    for i in range(first, first + rows):
        own = changed[i].split()
        for k, cell in cells.items():
            own[k] = cell
        changed[i] = "  ".join(own)
    return changed


def slower(lines, factor):
    """Return the lines with times that are longer by a factor."""
    changed = list(lines)
    for i in range(first_row(lines), first_row(lines) + 5):
        own = changed[i].split()
        for k in (5, 9):
            own[k] = f"{float(own[k]) * factor:.2f}"
            own[k + 1 : k + 3] = [f"{float(rate) / factor:.3f}" for rate in own[k + 1 : k + 3]]
        changed[i] = "  ".join(own)
    return changed


def broken(lines, how):
    """Return the lines of a log of a run that went wrong, and what is said of it."""
    first = first_row(lines)
    if how in ("out", "in"):
        text = f"wrong results in 1 row, the first in line {first + 1}"
        return with_cells(lines, {8 if how == "out" else 12: "17"}), text
    if how == "error":
        return [*lines[: first + 4], ERROR], f"the run ended in an error in line {first + 5}"
    if how == "cut":
        return [*lines[: first + 4], lines[first + 4][:60]], f"the log ends within the row in line {first + 5}"
    footer = next(i for i, line in enumerate(lines) if "Out of bounds" in line)
    changed = [*lines[:footer], "# Out of bounds values : 5 FAILED", *lines[footer + 1 :]]
    return changed, f"out of bounds values: 5 FAILED, in line {footer + 1}"


@pytest.mark.parametrize("how", ["out", "in", "error", "cut", "footer"])
def test_a_run_that_went_wrong_is_not_healthy(commsim, tmp_path, lines, how):
    path = tmp_path / "a.log"
    changed, said = broken(lines, how)
    path.write_text("\n".join(changed))
    found = cs.check_log(path, MACHINES)
    assert (found.faults, found.is_healthy, found.verdict) == ((said,), False, f"not healthy: {said}")
    assert not any(one.is_below for one in found.classes)
    assert commsim("expect", MACHINES, "--from", path, "--json", tmp_path / "a.json").code == 1
    assert f"# log: not healthy: {said}\n" in commsim.out
    tree = json.loads((tmp_path / "a.json").read_text())
    assert (tree["healthy"], tree["faults"]) == (False, [said])
    tree = commsim.results("compare", path, "--topology", MACHINES)
    assert tree["faults"] == [said]
    assert f"# not healthy: {said}\n" in commsim.out


def test_a_log_whose_rows_all_lack_the_half_in_place_is_not_cut(tmp_path, lines):
    first, path = first_row(lines), tmp_path / "a.log"
    rows = [line for line in lines[first:] if not line.startswith("#")]
    path.write_text("\n".join([*lines[:first], *(" ".join(row.split()[:9]) for row in rows)]))
    assert cs.check_log(path, MACHINES).faults == ()


def test_of_two_logs_the_one_whose_run_went_wrong_is_named(commsim, tmp_path, lines):
    good, path = tmp_path / "good.log", tmp_path / "a.log"
    good.write_text("\n".join(lines) + "\n")
    changed, said = broken(lines, "error")
    path.write_text("\n".join(changed))
    named = [f"{path}: {said}"]
    assert commsim.results("compare", good, path)["faults"] == named
    assert commsim.results("compare", path, good, "--topology", MACHINES)["faults"] == named


def test_a_run_that_went_well_has_no_fault(commsim, tmp_path, lines):
    path = tmp_path / "a.log"
    path.write_text("\n".join(lines))
    assert cs.check_log(path, MACHINES).faults == ()
    assert commsim.results("compare", path, "--topology", MACHINES)["faults"] == []


def test_json_of_nccl_tests_says_wrong_results_and_its_footer(tmp_path):
    timing = {"time": 2785.0, "alg_bw": 385.5, "bus_bw": 722.9, "nwrong": "0"}
    result = {"size": 2**30, "out_of_place": timing, "in_place": timing}
    tree = {
        "args": ["all_reduce_perf"], "config": {"devices": [{"group": 0}] * 16}, "results": [result],
        "out_of_bounds": {"count": 0, "okay": "true"},
    }  # fmt: skip
    path = tmp_path / "a.json"
    path.write_text(json.dumps(tree))
    assert cs.check_log(path, MACHINES).faults == ()
    path.write_text(json.dumps(tree | {"out_of_bounds": {"count": 5, "okay": "false"}}))
    assert cs.check_log(path, MACHINES).faults == ("out of bounds values: 5 FAILED, in its footer",)
    wrong = result | {"in_place": timing | {"nwrong": "3"}}
    path.write_text(json.dumps(tree | {"results": [result, wrong]}))
    assert cs.check_log(path, MACHINES).faults == ("wrong results in 1 row, the first in result 2",)


@pytest.mark.parametrize("cell", ["nan", "0.00"])
def test_rows_without_a_time_and_a_switch_to_the_other_half_are_said(commsim, tmp_path, lines, cell):
    path = tmp_path / "a.log"
    lost = dict.fromkeys((5, 6, 7), cell)
    path.write_text("\n".join(with_cells(lines, lost)))
    said = f"left out: 1 row without a time out of place, the first in line {first_row(lines) + 1}"
    for words in (("expect", MACHINES, "--from", path), ("compare", path, "--topology", MACHINES)):
        assert commsim(*words).code == 0
        assert said in commsim.out
        assert commsim(*words, "--in-place").code == 0
        assert "left out" not in commsim.out
    path.write_text("\n".join(with_cells(lines, lost, rows=5)))
    assert commsim("expect", MACHINES, "--from", path).code == 0
    assert "no row has a time out of place: the times in place are taken" in commsim.out


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_of_two_runs_in_a_file_the_slower_is_judged(commsim, tmp_path, lines, order):
    path = tmp_path / "two.log"
    path.write_text("\n".join(line for factor in order for line in slower(lines, factor)) + "\n")
    said = "2 runs in the file: the slower is judged"
    found = cs.check_log(path, MACHINES)
    assert (found.n_runs, found.is_healthy) == (2, False)
    assert [row.ratio for row in found.rows] == pytest.approx([0.5] * 5, rel=0.01)
    assert commsim("expect", MACHINES, "--from", path).code == 1
    assert said in commsim.out
    tree = commsim.results("compare", path, "--topology", MACHINES)
    assert tree["n_runs"] == 2
    assert [row["error"] for row in tree["results"]] == pytest.approx([-0.5] * 5, rel=0.01)
    assert said in commsim.out


def test_of_two_logs_the_slowest_run_of_each_is_taken(commsim, tmp_path, lines):
    good, bad = tmp_path / "good.log", tmp_path / "bad.log"
    for path, factors in ((good, (1.1, 1.0, 1.0)), (bad, (1.0, 3.0, 1.0))):
        path.write_text("\n".join(line for factor in factors for line in slower(lines, factor)) + "\n")
    for words in (("compare", good, bad, "--topology", MACHINES), ("compare", good, bad), ("diff", good, bad)):
        tree = commsim.results(*words, "-v")
        for name in ("good.log", "bad.log"):
            assert f"{name} (slowest of 3 runs)" in commsim.out
        if "--topology" in words:  # errors stand beside the prediction, and ratios in the table of both
            assert [row["error"] for row in tree["results"]] == pytest.approx([1 / 3 - 1] * 5, rel=0.01)
        else:
            assert [row["time_ratio"] for row in tree["results"]] == pytest.approx([3 / 1.1] * 5, rel=0.01)


def test_tables_of_other_sizes_are_one_run_and_sizes_that_begin_anew_are_another(tmp_path, lines):
    path = tmp_path / "a.log"
    first = first_row(lines)
    path.write_text("\n".join([*lines[: first + 2], *lines[:first], *lines[first + 2 :]]) + "\n")
    found = cs.check_log(path, MACHINES)
    assert (found.n_runs, len(found.rows)) == (1, 5)
    again = slower(lines, 3)[first : first + 5]
    path.write_text("\n".join([*lines[: first + 5], *again, *lines[first + 5 :]]) + "\n")
    found = cs.check_log(path, MACHINES)
    assert (found.n_runs, found.is_healthy) == (2, False)


def test_rows_of_a_csv_are_repetitions_of_one_run(tmp_path):
    path = tmp_path / "all_reduce.csv"
    time = cs.predict("nccl_all_reduce", MACHINES, "1GiB").time * 1e6
    path.write_text("bytes,time_us\n" + "".join(f"{2**30},{time * factor}\n" for factor in (0.9, 1.0, 3.0)))
    found = cs.check_log(path, MACHINES)
    assert (found.n_runs, len(found.rows)) == (1, 1)
    assert found.rows[0].ratio == pytest.approx(1, rel=1e-3)
