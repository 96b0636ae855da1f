"""A driver and a worker that are killed in the middle; benchmarks.attacks.kill_sweep does this twenty times."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.attacks.kill_sweep import kill_in_turn, n_rows
from commsim.core.files.whole_files import write_tree
from commsim.sweep.table import read_table

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.mark.slow
def test_what_was_killed_and_gone_on_with_is_what_was_let_alone(small, tmp_path):
    small["collective"]["size"]["steps"] = 600  # 4800 points
    write_tree(tmp_path / "sweep.toml", small)
    kills = kill_in_turn(2, 0, tmp_path / "sweep.toml", tmp_path)
    assert [kill.whom for kill in kills] == ["driver", "worker"]
    assert all(kill.is_same and not kill.n_left for kill in kills), kills
    assert all(0 < kill.n_before < kill.n_rows for kill in kills), kills


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_there_ends_all_processes_and_is_one_line(small, tmp_path):
    small["collective"]["size"]["steps"] = 600
    write_tree(tmp_path / "sweep.toml", small)
    files = [str(tmp_path / "sweep.toml"), "-o", str(tmp_path / "r")]
    command = [sys.executable, "-m", "commsim", "sweep", *files, "--jobs", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not n_rows(tmp_path / "r") and process.poll() is None:
        time.sleep(0.01)
    for _ in range(2):  # the second one comes while the first is heard
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        time.sleep(0.05)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 130, said
    assert said.splitlines()[-1] == f"commsim sweep: interrupted; run the same command to resume {tmp_path / 'r'}"
    assert all(line.startswith("commsim sweep: ") for line in said.splitlines()), said
    assert 0 < read_table(tmp_path / "r").num_rows < 4800
    until = time.monotonic() + 60  # the one that watches over shared memory hears of it when all others have ended
    while left := [pid for pid, state in of_group(process.pid).items() if state != "Z"]:
        assert time.monotonic() < until, left
        time.sleep(0.01)


def of_group(group):
    """Processes of a group and their states."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            state, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(of) == group:
                found[int(entry.name)] = state
    return found
