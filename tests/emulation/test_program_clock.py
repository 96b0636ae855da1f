"""The clocks that an emulated program reads: virtual ones for the program, those of the machine for what waits."""

import json
import time

import pytest

from commsim.cli import main
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


TRAINS = """
import time
import torch
from torch import distributed as d
from torch.nn.parallel import DistributedDataParallel
d.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(400, 400, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    began = time.perf_counter()
    time.sleep(0.001)  # computes
    model(torch.ones(1, 400)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if d.get_rank() == 0:
        print(f"took {time.perf_counter() - began!r}")
"""


@pytest.mark.slow
def test_steps_of_programs_with_data_and_what_they_wait_for(tmp_path, capfd):
    pytest.importorskip("torch")
    path, out = tmp_path / "prog.py", tmp_path / "out.json"
    path.write_text(TRAINS)
    assert main(["emulate", "-n", "2", "--topology", STAR, "--json", str(out), "--", "python", str(path)]) == 0
    printed = capfd.readouterr().out
    took = [float(line.split()[1]) for line in printed.splitlines() if line.startswith("took")]
    found = json.loads(out.read_text())
    (row,) = [one for one in found["results"] if one["operation"] == "all_reduce" and one["size_B"] == 640000]
    assert found["step_s"] == pytest.approx(took[2], rel=1e-9)
    assert found["exposed_s"] == pytest.approx(took[2] - 0.001, rel=1e-9)
    assert row["exposed_s"] == pytest.approx(found["exposed_s"], rel=1e-9)
    lines = dict(line.split(None, 1) for line in printed.splitlines() if line.startswith(("step", "exposed")))
    assert lines["step"].endswith("the last one")
    assert lines["exposed"].endswith("mean of the ranks")
