"""The clocks that an emulated program reads: virtual ones for the program, those of the machine for what waits."""

import json
import time

import pytest

from commsim.emulation import program_clock
from commsim.emulation.program_clock import ProgramClock

STAR = "star:n_hosts=4,bandwidth=25Gbps,latency=1us"
READS = """
import queue, time
from time import monotonic
from mpi4py import MPI
import numpy as np
c = MPI.COMM_WORLD
begun = MPI.Wtime(), time.perf_counter(), monotonic(), time.time(), time.perf_counter_ns(), time.time_ns()
c.Allreduce(np.ones(100000), np.empty(100000))
if c.rank == 0:
    time.sleep(1.5)
    try:
        queue.Queue().get(timeout=0.01)  # of the machine: the virtual clock would never get there
    except queue.Empty:
        pass
ended = MPI.Wtime(), time.perf_counter(), monotonic(), time.time(), time.perf_counter_ns(), time.time_ns()
took = [b - a for a, b in zip(begun, ended)]
print(repr([took[0], *(took[k] - took[0] for k in (1, 2, 3)), *(1e-9 * took[k] - took[0] for k in (4, 5))]))
"""


@pytest.mark.parametrize("ranks_as", ["threads", "processes"])
def test_a_program_reads_and_sleeps_virtual_time(command, ranks_as):
    code, out, _ = command(READS, "--overhead", "0us", n=2, ranks_as=ranks_as, network=STAR)
    assert code == 0
    took = sorted(json.loads(line) for line in out.splitlines() if line.startswith("["))
    assert took[1][0] - took[0][0] == pytest.approx(1.5)
    assert took[0][0] == pytest.approx(800000 / 3.125e9 + 2e-6, rel=0.01)
    for one in took:
        assert one[1:] == pytest.approx([0.0] * 5, abs=1e-6)


def test_the_clock_of_the_machine_can_be_asked_for(command):
    text = "import time\nbegun = time.time()\ntime.sleep(0.02)\nassert time.time() - begun > 0.019\n"
    code, out, err = command(text, "--clock", "wall", n=1)
    assert (code, err) == (0, "")
    assert out.split()[:3] == ["time", "0", "s"]


def test_a_program_that_waits_for_a_clock_that_stands_is_one_line(command, monkeypatch):
    monkeypatch.setattr(program_clock, "MOST_READ", 100)
    for clock in ("time.monotonic()", "MPI.Wtime()"):
        text = f"import time\nfrom mpi4py import MPI\nend = {clock} + 1\nwhile {clock} < end:\n    pass\n"
        code, _, err = command(text, n=2)
        assert code == 1
        assert "prog.py:4" in err
        assert "the virtual clock stands until the program communicates or sleeps" in err
        assert err.count("\n") == 1


def test_a_poll_that_gives_up_after_some_time_does_so(command):
    text = """
        import time
        from mpi4py import MPI
        c, end = MPI.COMM_WORLD, time.monotonic() + 1.0
        if c.rank == 0:
            asked = c.irecv(source=1)
            while time.monotonic() < end and not asked.Test():
                time.sleep(0.25)
            asked.Cancel()
            asked.Wait()
            assert time.monotonic() >= end
    """
    code, _, err = command("\n".join(line[8:] for line in text.splitlines()), n=2)
    assert (code, err) == (0, "")


def test_only_the_program_sees_it_and_only_inside():
    real = time.time
    with ProgramClock(lambda: 5.0):
        assert time.perf_counter() == 5.0
        assert time.perf_counter_ns() == 5 * 10**9
        from_library = compile("time.perf_counter()", json.__file__, "eval")
        assert eval(from_library) != 5.0
    assert time.time is real
