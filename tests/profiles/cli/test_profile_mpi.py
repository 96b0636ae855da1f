# ruff: noqa: N802, ARG002  (names and arguments of mpi4py)
"""What an unmodified mpi4py program sends, recorded and read as a job."""

import json
import subprocess
import sys

import numpy as np
import pytest
from under_mpiexec import under_mpiexec

from commsim.profile_mpi import Recorder, n_bytes, recording
from commsim.profiles.profiles import flight_recorder_calls

PROGRAM = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
x, y = np.ones(1000, np.float32), np.empty(1000, np.float32)
half = comm.Split(comm.rank % 2)
for _ in range(3):
    comm.Allreduce(x, y)
    assert y[0] == comm.size
    half.Bcast(y, root=0)
"""


class Type:
    def Get_size(self):
        return 8


class Comm:
    """Stands for ``MPI.Intracomm``."""

    def __init__(self, other=None):
        self.n_ranks = 4 if other is None else other.n_ranks

    def Get_size(self):
        return self.n_ranks

    def py2f(self):
        return self.n_ranks

    def Allreduce(self, sendbuf, recvbuf, op=None):
        return "sum"

    def Iallgather(self, sendbuf, recvbuf):
        return "request"

    def allreduce(self, sendobj, op=None):
        return sendobj

    def Bcast(self, buf, root=0):
        return None

    def Get_rank(self):
        return 1

    def Split(self, color):
        made = Comm()
        made.n_ranks = 2
        return made


@pytest.mark.parametrize(
    ("message", "n"),
    [
        (np.zeros(10, np.float32), 40), ([np.zeros(10, np.float32), object()], 40), ([np.zeros(10), 5, Type()], 40),
        (None, 0), (-1, 0), (bytearray(3), 3), ("text", 0),
    ],
)  # fmt: skip
def test_bytes_of_a_message_are_those_of_its_buffer(message, n):
    assert n_bytes(message) == n


def test_calls_are_recorded_with_size_group_and_answer(tmp_path):
    recorder = Recorder(1)
    comm = recording(Comm, recorder)()
    x = np.zeros(100)
    assert comm.Allreduce(x, np.zeros(100)) == "sum"
    assert comm.Allreduce(-1, x) == "sum"  # in place
    assert comm.Iallgather(x, np.zeros(400)) == "request"
    assert comm.allreduce(7) == 7
    assert comm.Get_rank() == 1
    comm.Split(0).Bcast(buf=x)
    calls = flight_recorder_calls(json.loads(json.dumps(recorder.tree())), tmp_path, [])
    assert [(c.operation, c.size, c.n_ranks) for c in calls if c.size > 100] == [
        ("all_reduce", 800, 4), ("all_reduce", 800, 4), ("all_gather", 3200, 4), ("broadcast", 800, 2),
    ]  # fmt: skip
    assert [c.duration is None for c in calls] == [False, False, True, False, False]  # nobody waited for the third


def test_a_program_that_is_not_there_is_refused_on_one_line():
    done = subprocess.run(
        [sys.executable, "-m", "commsim.profile_mpi", "nowhere.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "no such script; usage" in done.stderr


@pytest.mark.mpi
def test_a_program_runs_unchanged_and_its_record_is_a_job(tmp_path, commsim):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = under_mpiexec(2, "-m", "commsim.profile_mpi", "-o", str(tmp_path / "x"), str(tmp_path / "program.py"))
    assert done.returncode == 0, done.stderr
    job = tmp_path / "job.json"
    answer = commsim.results("workload", "calls", tmp_path / "x.rank0.json", tmp_path / "x.rank1.json", "--job", job)
    assert {(one["operation"], one["size_B"]) for one in answer["results"]} == {
        ("all_reduce", 4000),
        ("broadcast", 4000),
    }
    assert json.loads(job.read_text())
