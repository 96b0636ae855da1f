"""The warm-up: what ordinary commands need is compiled by it, and its parts are counted."""

import gc
import os
import subprocess
import sys

import pytest
from help_examples import ROOT, commands, in_shell, verbs

from commsim.cli import parser_of, warmup
from commsim.cli.parsing.examples import examples_of
from commsim.cli.warmup import compile_line
from commsim.core.jit import _is_disabled
from commsim.extensions import house
from commsim.pages import interval_kernel

# Runs the commands of the warm-up, then examples of all verbs; prints what these ask the cache for.
AFTERWARDS = """
import contextlib, io, pathlib, shlex, sys
from commsim.cli import main, warmup
from commsim.core.compiling import kernel_cache
from commsim.core.jit import compile_all

asked = []
load = kernel_cache.KernelCache.load_overload
kernel_cache.KernelCache.load_overload = lambda self, *of: (asked.append(self.name), load(self, *of))[1]
compile_all()
done = [one for lines in warmup.parts_to_compile().values() for one in warmup.compile_part(lines)]
failed = [one for one in done if one["failed"]]
assert not failed, failed
for line in sys.stdin.read().splitlines():
    asked.clear()
    line, _, file = line.partition(" > ")
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            code = main(shlex.split(line))
        except SystemExit as stop:
            code = stop.code
    assert not code, (line, told.getvalue())
    if file:
        pathlib.Path(file).write_text(out.getvalue())
    if asked:
        print(line, asked)
"""


def test_a_part_compiles_what_its_commands_need_and_says_what_failed():
    assert compile_line("topo list")["time_s"] > 0
    assert "unknown topology" in compile_line("run --topology no_such_network")["failed"]


def test_kernels_of_timelines_are_compiled_without_the_library_of_pages(monkeypatch):
    """`trace` needs them and no library; to put that together took as long as all other commands of the warm-up."""
    called = []
    monkeypatch.setattr(interval_kernel, "fill_lanes", lambda *_: called.append("lanes"))
    monkeypatch.setattr(interval_kernel, "add_to_bins", lambda *_: called.append("bins"))
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    done = [compile_line(line) for line in warmup.parts_to_compile()["pages"]]
    assert [(one["failed"], one["left_out"]) for one in done] == [(None, None)]
    assert called == ["lanes", "bins"]


def test_a_word_that_no_parser_knows_is_a_failure_that_is_said():
    assert "unrecognized arguments: --no-such-flag" in compile_line("topo list --no-such-flag")["failed"]


def test_every_line_of_the_warm_up_is_of_words_that_there_are(capsys):
    """A flag that was renamed would leave kernels to the first command; only `make test-all` runs all lines."""
    lines = [line for of_part in warmup.parts_to_compile().values() for line in of_part if " " in line]
    assert len(lines) >= 25
    for line in lines:
        verb, *words = line.split()
        parser_of(verb)[0].parse_args(words)  # ends the test with what argparse says
    with pytest.raises(SystemExit):
        parser_of("run")[0].parse_args(["--topologee", "star:n_hosts=4"])


@pytest.mark.deep
@pytest.mark.slow
def test_after_the_commands_of_the_warm_up_no_example_needs_another_kernel(tmp_path):
    """Each process asks the cache for every kernel that it calls, once for each kind of arguments."""
    if _is_disabled():
        pytest.skip("nothing is compiled")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    lines = commands()
    assert len(lines) >= 60
    environ, command = os.environ | {"PYTHONPATH": str(ROOT)}, [sys.executable, "-c", AFTERWARDS]
    options = {"input": "\n".join(lines), "cwd": tmp_path, "env": environ, "capture_output": True, "text": True}
    done = subprocess.run(command, **options, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.deep
@pytest.mark.slow
def test_after_a_warm_up_in_an_empty_cache_no_example_compiles_anything(tmp_path):
    if _is_disabled():
        pytest.skip("nothing is compiled")
    cache, folder = tmp_path / "cache", tmp_path / "work"
    folder.mkdir()
    (folder / "examples").symlink_to(ROOT / "examples")
    in_shell("commsim warmup", folder, NUMBA_CACHE_DIR=str(cache))
    compiled, later = {one.name for one in cache.glob("*.nbc")}, {}
    for verb in verbs():
        for line in examples_of(f"commsim {verb}".strip()):
            if "NUMBA_CACHE_DIR" in line or "mpirun" in line:
                continue
            in_shell(line, folder, NUMBA_CACHE_DIR=str(cache))
            if new := {one.name for one in cache.glob("*.nbc")} - compiled:
                later[line] = new
                compiled |= new
    assert later == {}


def test_the_largest_part_and_those_with_kernels_of_their_own_begin():
    """Two parts that begin together and share kernels compile these twice, such as routes."""
    parts, own = warmup.parts_to_compile(), house().own_kernels
    assert {"proofs of switches", "a real switch"} <= own < set(parts)
    first, *others = parts
    assert first == max(parts, key=lambda name: len(parts[name])) == "flow engine"
    assert set(others[: len(own)]) == own
    sizes = [len(parts[name]) for name in others[len(own) :]]
    assert sizes == sorted(sizes, reverse=True)


def test_garbage_is_not_collected_while_a_part_is_compiled(monkeypatch):
    found = []
    monkeypatch.setattr(warmup, "compile_line", lambda *_: found.append(gc.isenabled()))
    warmup.compile_part(("a", "b"))
    assert found == [False, False]
    assert gc.isenabled()


def test_the_number_of_processes_is_checked(commsim):
    assert "--jobs must be at least 1, got 0" in commsim.refuses("warmup", "--jobs", "0")


def test_parts_are_printed_with_their_times(commsim, monkeypatch):
    live = "commsim.live.cli.this_machine:compile_live"
    monkeypatch.setattr(warmup, "parts_to_compile", lambda: {"lists": ("topo list", "schedule list"), "live": (live,)})
    (lists, live) = commsim.results("warmup", "--jobs", "1")["results"]
    assert [(one["part"], one["failed"]) for one in (lists, live)] == [("lists", None), ("live", None)]


def test_kernels_are_listed_with_their_own_times_and_what_was_compiled_again():
    parts = [
        {"compiled": [("inner", "int64", 1.0), ("outer", "int64", 2.0), ("inner", "float64", 4.0)]},
        {"compiled": [("inner", "int64", 1.5)]},
    ]
    table, said = warmup._kernels(parts)
    assert table.rows == [["inner", "6.5", "3"], ["outer", "2.0", "1"]]
    assert said.texts == ["# 8.5 s of CPU in all; 1 compiled again by another part: 1.5 s"]


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


def test_commands_of_a_part_run_in_one_process_one_after_the_other(monkeypatch):
    """Two that need the packet engine at once compiled it twice, which is a tenth of all."""
    running = []
    monkeypatch.setattr(
        warmup, "compile_line", lambda line, _: {"line": line, "before": running.copy()} | {"x": running.append(line)}
    )
    first, second = warmup.compile_part(("a", "b"))
    assert (first["before"], second["before"]) == ([], ["a"])
