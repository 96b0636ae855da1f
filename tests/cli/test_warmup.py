"""Parts of a warm-up; all of it compiles for minutes where nothing is cached."""

import os
import subprocess
import sys

import pytest

from commsim.cli import warmup
from commsim.cli.warmup import compile_part


def test_a_part_compiles_what_its_commands_need_and_says_what_failed():
    found = compile_part(("topo list", "run --topology no_such_network"))
    assert found["time_s"] > 0
    assert "unknown topology" in found["failed"]


def test_the_number_of_processes_is_checked(commsim):
    assert "--jobs must be at least 1, got 0" in commsim.refuses("warmup", "--jobs", "0")


def test_parts_are_printed_with_their_times(commsim, monkeypatch):
    monkeypatch.setattr(warmup, "PARTS", {"lists": ("topo list", "schedule list")})
    (lists, live) = commsim.results("warmup", "--jobs", "1")["results"]
    assert (lists["part"], lists["failed"], live["part"]) == ("lists", None, "a real switch")


@pytest.mark.slow
def test_no_command_of_the_readme_compiles_after_a_warm_up(tmp_path):
    environ = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "commsim", "warmup"], env=environ, check=True, capture_output=True)
    for line in warmup.PARTS["flow engine"]:
        words = [sys.executable, "-c", "from commsim.core.jit import compile_all; compile_all()\n"
                 f"from commsim.cli import main; main({line.split()!r})"]  # fmt: skip
        done = subprocess.run(words, env=environ, check=True, capture_output=True, text=True)
        assert "compiling kernels" not in done.stderr
