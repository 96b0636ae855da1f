"""Parts of a warm-up; all of it compiles for minutes where nothing is cached, so it is not run here."""

import json

import pytest

from commsim.cli import warmup
from commsim.cli.warmup import compile_part


def test_a_part_compiles_what_its_commands_need_and_says_what_failed():
    found = compile_part(("topo list", "run --topology no_such_network"))
    assert found["time_s"] > 0
    assert "unknown topology" in found["failed"]


def test_a_word_that_no_parser_knows_is_a_failure_that_is_said():
    assert "unrecognized arguments: --no-such-flag" in compile_part(("topo list --no-such-flag",))["failed"]


@pytest.mark.slow
@pytest.mark.parametrize("part", warmup.PARTS)
def test_the_commands_of_each_part_are_answered(commsim, part):
    for line in warmup.PARTS[part]:
        commsim(*line.split())
        assert commsim.code in (0, None), line


@pytest.mark.slow
def test_a_command_takes_the_way_with_one_rate_per_bottleneck(commsim):
    (line,) = (line for line in warmup.PARTS["flow engine"] if "byteps" in line)
    commsim.results(*line.split())
    tree = json.loads((commsim.folder / "results.json").read_text())
    assert '"method": "bottlenecks"' in json.dumps(tree)


def test_the_number_of_processes_is_checked(commsim):
    assert "--jobs must be at least 1, got 0" in commsim.refuses("warmup", "--jobs", "0")


def test_parts_are_printed_with_their_times(commsim, monkeypatch):
    monkeypatch.setattr(warmup, "PARTS", {"lists": ("topo list", "schedule list")})
    (lists, live) = commsim.results("warmup", "--jobs", "1")["results"]
    assert (lists["part"], lists["failed"], live["part"]) == ("lists", None, "a real switch")


def test_kernels_are_listed_with_their_own_times_and_what_was_compiled_again():
    parts = [
        {"compiled": [("inner", "int64", 1.0), ("outer", "int64", 2.0), ("inner", "float64", 4.0)]},
        {"compiled": [("inner", "int64", 1.5)]},
    ]
    table, said = warmup._kernels(parts)
    assert table.rows == [["inner", "6.5", "3"], ["outer", "2.0", "1"]]
    assert said.texts == ("8.5 s of CPU in all; 1 compiled again by another part: 1.5 s",)


def test_the_time_of_a_kernel_is_without_those_that_it_calls():
    numba = pytest.importorskip("numba")
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")

    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x) * 2

    compiled = []
    with warmup._timed(compiled):
        assert outer(3) == 8
    assert [name.rpartition(".")[2] for name, _, _ in compiled] == ["inner", "outer"]
    assert all(seconds > 0 for _, _, seconds in compiled)
