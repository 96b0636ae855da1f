"""Causes on the command line: one log, two logs, a CSV, one number; what is refused."""

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("compare_tables", Path(__file__).with_name("test_compare.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
_TABLES = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_TABLES)
table = _TABLES.table

DGX = "dgx-h100@star:machines=2"
FIVE = [1 << k for k in (12, 18, 23, 27, 31)]


@pytest.fixture(scope="module")
def predicted():
    import commsim as cs

    return {size: cs.predict("nccl_all_reduce", DGX, size).time * 1e6 for size in FIVE}


def test_a_log_has_causes_with_the_labels_of_the_list_the_most_likely_first(commsim, tmp_path, predicted):
    log = table(tmp_path / "log.txt", {size: 1.05 * time for size, time in predicted.items()}, ranks=16)
    causes = commsim.results("compare", log, "--topology", DGX)["causes"]
    assert causes[0]["label"] == "healthy_expectation_wrong"
    assert [one["likelihood"] for one in causes] == sorted((one["likelihood"] for one in causes), reverse=True)
    assert sum(one["likelihood"] for one in causes) == pytest.approx(1)
    assert "# healthy: as expected, " in commsim.out


@pytest.mark.parametrize(("factor", "said"), [(1.0, "as expected"), (1.12, "the expectation was too high"),
                                              (0.9, "faster than expected")])  # fmt: skip
def test_what_is_healthy_is_said_beside_what_was_expected(commsim, tmp_path, predicted, factor, said):
    log = table(tmp_path / "log.txt", {size: factor * time for size, time in predicted.items()}, ranks=16)
    assert commsim.results("compare", log, "--topology", DGX)["causes"][0]["text"] == f"healthy: {said}"


def test_two_logs_are_measured_a_and_b_and_the_first_is_healthy(commsim, tmp_path, predicted):
    good = table(tmp_path / "good.txt", {size: 1.4 * time for size, time in predicted.items()}, ranks=16)
    late = table(tmp_path / "bad.txt", {size: 1.4 * time + 300 for size, time in predicted.items()}, ranks=16)
    tree = commsim.results("compare", good, late, "--topology", DGX)
    assert tree["causes"][0]["label"] == "straggler_host"
    assert "measured A(us)" in commsim.out.replace("_", " ")
    plain = commsim.results("compare", good, late)
    assert [row["time_ratio"] for row in plain["results"]][-1] == pytest.approx(1.02, abs=0.01)
    assert plain["causes"] == []
    assert "measured B(us)" in commsim.out
    assert commsim.results("diff", good, late)["results"] == plain["results"]
    assert "cannot be used with logs" in commsim.refuses("diff", good, late, "--detail")


def test_a_csv_may_hold_numbers_without_a_size_and_those_of_healthy_machines(commsim, tmp_path):
    file = tmp_path / "all_reduce.csv"
    file.write_text("bytes,time_us,busbw,which\n0,,370,measured\n0,,480,reference\n")
    tree = commsim.results("compare", file, "--operation", "all_reduce", "--topology", "hgx-h100")
    assert tree["causes"][0]["label"] == "nvls_off_or_unavailable"
    assert "busbw 370 GB/s, of healthy machines 480" in commsim.out


def test_a_page_shows_measured_against_expected_and_what_causes_predict(commsim, tmp_path, predicted):
    pytest.importorskip("vl_convert")
    log = table(tmp_path / "log.txt", {size: time + 300 for size, time in predicted.items()}, ranks=16)
    page = tmp_path / "page.html"
    tree = commsim.results("compare", log, "--topology", DGX, "--report", page)
    text = page.read_text()
    assert "Measured against expected" in text
    assert "What each cause predicts" in text
    assert tree["causes"][0]["text"] in text
    assert "--report goes with --topology" in commsim.refuses("compare", log, log, "--report", page)


@pytest.mark.parametrize(("flag", "name", "words"), [
    ("--report", "x.txt", "a report is a file that ends with .html"), ("--report", "no/x.html", "no such folder"),
    ("--plot", "x.txt", "a picture is a file that ends with"), ("--plot", "no/x.svg", "no such folder"),
])  # fmt: skip
def test_an_output_that_cannot_be_written_is_refused_before_the_log_is_read(commsim, tmp_path, flag, name, words):
    log = tmp_path / "none.txt"
    assert words in commsim.refuses("compare", log, "--topology", DGX, flag, tmp_path / name)
    if flag == "--report":
        assert words in commsim.refuses("expect", DGX, "--from", log, flag, tmp_path / name)


def test_one_number_lists_what_gives_it_and_what_to_measure_next(commsim):
    where = ("--operation", "all_reduce", "--topology", DGX)
    assert commsim("compare", "--busbw", "200GB/s", *where).code == 0
    assert "able to give this:" in commsim.out
    assert "measure next:" in commsim.out


def test_a_log_of_fewer_machines_than_the_topology_is_refused(commsim, tmp_path, predicted):
    log = table(tmp_path / "log.txt", predicted, ranks=16)
    three = ("--topology", "dgx-h100@star:machines=3")
    assert "16 ranks, which fill 2 of the 3 machines" in commsim.refuses("compare", log, *three)
    assert commsim("compare", log, *three, "--ranks", "16").code == 0


@pytest.mark.parametrize(("text", "message"), [
    ("bytes,busbw\nmany,3\n", "line 2: bytes must be a number of at least 0, got 'many'"),
    ("bytes,busbw,time_us\n1024,,\n", "line 2: has neither time_us nor busbw above 0"),
    ("bytes,busbw\n0,-3\n", "line 2: busbw must be a number of at least 0"),
    ("bytes,busbw,which\n0,3,reference\n", "has no bus bandwidth of the machines that are asked about"),
])  # fmt: skip
def test_a_broken_csv_is_refused_by_its_line(commsim, tmp_path, text, message):
    file = tmp_path / "all_reduce.csv"
    file.write_text(text)
    assert message in commsim.refuses("compare", file, "--operation", "all_reduce", "--topology", DGX)
