"""``commsim watch``: the example's table, its exit codes, and what it refuses on one line."""

import socket
from pathlib import Path

import pytest

from benchmarks.diagnosis.inspector_lines import MadeJob, lines_of

EXAMPLE = Path(__file__).parents[3] / "examples" / "inspector"


def test_the_example_is_normal_and_its_late_rank_is_named(commsim):
    tree = commsim.results("watch", EXAMPLE, "--topology", "hgx-h100")
    (row,) = tree["results"]
    assert (row["verdict"], row["late_rank"], row["n_calls"], tree["n_records"]) == ("normal", 5, 8, 64)
    assert row["ratio"] == pytest.approx(0.98, abs=0.01)


def test_a_job_below_its_floor_exits_1(commsim, tmp_path):
    for name, line in lines_of(MadeJob(1, 8, lambda *_: 0.02), [("world", "all_reduce", 2.0**30)] * 3):
        with (tmp_path / name).open("a") as file:
            file.write(line)
    assert commsim("watch", tmp_path, "--topology", "hgx-h100").code == 1
    assert "1 of 1 series below the floor, 24 records" in commsim.out
    assert commsim("watch", tmp_path, "--topology", "hgx-h100", "--port", "0", "--during", "10ms").code == 0
    assert "serving http://127.0.0.1:" in commsim.out


def test_nothing_is_served_on_a_port_that_another_program_has(commsim):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = (EXAMPLE, "--topology", "hgx-h100", "--port", f"{taken.getsockname()[1]}", "--during", "10ms")
        assert commsim("watch", *words).code == 2
    assert "cannot be had: Address already in use" in commsim.err
    assert "serving" not in commsim.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gone", "--topology", "hgx-h100"), "gone: no such file or folder"),
        ((EXAMPLE, "--topology", "nope"), "unknown topology 'nope'"),
        ((EXAMPLE, "--topology", "hgx-h100", "--during", "3s"), "--during goes with --port N"),
        ((EXAMPLE, "--topology", "hgx-h100", "--port", "70000"), "--port is a number from 0 to 65535, got 70000"),
        ((EXAMPLE, "--topology", "hgx-h100", "--false-alarms", "0"), "must be 0.01% to 50%, got 0%"),
        ((EXAMPLE,), "--topology"),
    ],
)
def test_wrong_input_is_refused_on_one_line(commsim, words, said):
    assert said in commsim.refuses("watch", *words)
