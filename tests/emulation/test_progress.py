"""On a terminal the lines of an emulated program are its progress: no line of ours is among them."""

import os
import pty
import sys

PROGRAM = """
import time
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 0:
    print("begun", flush=True)
time.sleep(0.5)
if MPI.COMM_WORLD.rank == 0:
    print("half", end="", flush=True)
    time.sleep(0.3)
    print(" done", flush=True)
"""
# The first line of progress comes at once, and others follow soon.
COMMAND = """
from commsim.cli import progress
from commsim.cli.process import run
progress.SILENT, progress.BETWEEN = 0.0, 0.05
run()
"""


def test_no_progress_is_glued_to_what_a_program_prints(tmp_path):
    program = tmp_path / "slow.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-c", COMMAND, "emulate", "-n", "2", "--topology", "star:n_hosts=2", "--",
               sys.executable, str(program)]  # fmt: skip
    shown = bytearray()

    def keep(fd):
        data = os.read(fd, 4096)
        shown.extend(data)
        return data

    status = pty.spawn(command, keep, lambda _: b"")
    assert os.waitstatus_to_exitcode(status) == 0
    before, _, after = shown.partition(b"begun")
    assert b"so far" not in before.rpartition(b"\x1b[K")[2]  # a line that was there is cleared
    assert b"half done" in after
    assert b"so far" not in after
