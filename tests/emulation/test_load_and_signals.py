"""Emulations beside other load take the same virtual times, and an interrupted one leaves nothing behind."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commsim.cli import main

STAR = "star:n_hosts=4,bandwidth=25Gbps"
MPI = """
from mpi4py import MPI
import numpy as np
c = MPI.COMM_WORLD
for k in range(3):
    c.Allreduce(np.ones(1000 << k), np.empty(1000 << k))
    c.Sendrecv(np.ones(20000), (c.rank + 1) % c.size, 0, np.empty(20000), (c.rank - 1) % c.size, 0)
    c.recv(source=MPI.ANY_SOURCE) if c.rank == 0 else None
    c.send(c.rank, 0) if c.rank == 1 + k else None
"""
TORCH = """
import torch
from torch import distributed as d
d.init_process_group("nccl")
groups = [d.new_group([0, 2]), d.new_group([1, 3])]
x, w = torch.zeros(1 << 20, device="cuda"), torch.empty(1024, 1024, device="cuda")
for _ in range(3):
    works = [d.all_reduce(x, async_op=True), d.all_reduce(x, group=groups[d.get_rank() % 2], async_op=True)]
    w @ w
    for work in works:
        work.wait()
"""
ALIKE = ("--compute", "roofline:h100")
WAYS = {
    "threads": (MPI, ("--ranks-as", "threads")),
    "processes": (MPI, ("--ranks-as", "processes")),
    "alike": (TORCH, ALIKE),
    "stages": (TORCH.replace("groups[d.get_rank() % 2]", "d.group.WORLD"), (*ALIKE, "--stages", "2")),
}


@pytest.fixture
def load():
    """Processes that compute all the time, one for each processor."""
    spin = ["nice", "-n", "5", sys.executable, "-c", "while True: pass"]
    begun = [subprocess.Popen(spin) for _ in range(os.cpu_count() or 1)]
    yield
    for one in begun:
        one.kill()
        one.wait()


def command_of(path, way):
    text, flags = WAYS[way]
    path.write_text(text)
    return ["emulate", "-n", "4", "--topology", STAR, *flags, "--json", str(path.with_suffix(".json")), "--", str(path)]


@pytest.mark.slow
@pytest.mark.usefixtures("load")
@pytest.mark.parametrize(
    ("way", "n_runs"),
    [
        ("threads", 8), ("processes", 2),
        *(pytest.param(way, 20, marks=pytest.mark.deep) for way in ("threads", "processes", "alike", "stages")),
    ],
)  # fmt: skip
def test_virtual_times_do_not_depend_on_other_load(tmp_path, way, n_runs):
    if WAYS[way][0] is not MPI:
        pytest.importorskip("torch")
    argv, found = command_of(tmp_path / "prog.py", way), set()
    for _ in range(n_runs):
        assert main(argv) == 0
        tree = json.loads((tmp_path / "prog.json").read_text())
        found.add(json.dumps([tree["results"], tree["time_s"], tree["end_s"], tree["link_bytes_B"]]))
    assert len(found) == 1
    assert json.loads(found.pop())[1] > 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    "way", ["threads", "processes", *(pytest.param(way, marks=pytest.mark.deep) for way in ("stages", "alike"))]
)
def test_an_interrupted_emulation_leaves_nothing(tmp_path, way, number):
    if WAYS[way][0] is not MPI:
        pytest.importorskip("torch")
    folder, path = tmp_path / "temporary", tmp_path / "prog.py"
    folder.mkdir()
    argv = command_of(path, way)
    path.write_text(f"{path.read_text()}\nimport os\nos.write(1, b'under way\\n')\nwhile True: pass\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "commsim", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip
    assert process.stdout.readline() == "under way\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    (line,) = [one for one in err.splitlines() if "interrupted" in one]
    assert re.search(r": interrupted; ranks? 0[^:]*: \w", line)
    assert not list(folder.iterdir())
    assert not processes_of(str(folder))


def processes_of(folder):
    """Return the processes that were told a folder, which only this test has."""
    found = []
    for one in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"TMPDIR={folder}".encode() in one.read_bytes():
                found.append(one.parent.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "by_shell"),
    [("processes", False), ("stages", False), pytest.param("processes", True, marks=pytest.mark.deep)],
)
def test_programs_that_only_compute_end_when_their_emulation_is_killed(tmp_path, way, by_shell):
    program = tmp_path / "spin.py"
    program.write_text("print('begun', flush=True)\nwhile True:\n    pass\n")
    run = ["sh", "-c", f"{sys.executable} {program}; true"] if by_shell else [program]
    command = [sys.executable, "-m", "commsim", "emulate", "-n", "2", "--topology", STAR, *WAYS[way][1], "--", *run]
    begun = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert "begun" in begun.stdout.readline()
    children = Path(f"/proc/{begun.pid}/task/{begun.pid}/children").read_text().split()
    assert len(children) == 2
    begun.kill()
    begun.communicate()
    while any(_runs(child) for child in children):  # else the test is ended by its limit
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("other.close(); end_with_parent(own.fileno()); threading.Event().wait()", 1),  # it was killed before
        ("end_with_parent(own.fileno()); other.close(); threading.Event().wait()", 1),
        ("end_with_parent(own.fileno())(); other.close(); [one.join() for one in threading.enumerate()[1:]]", 0),
    ],
)
def test_a_process_ends_with_its_connection_until_it_goes_on_alone(how, code):
    text = "import socket, threading\nfrom commsim.emulation.parent_watch import end_with_parent\n"
    text += f"own, other = socket.socketpair()\n{how}"
    assert subprocess.run([sys.executable, "-c", text], check=False, timeout=300).returncode == code


def _runs(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
