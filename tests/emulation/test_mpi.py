"""Programs of mpi4py, unchanged: what its calls return, in which order they add, and what is not there."""

import json
from pathlib import Path

import numpy as np
import pytest

from commsim.emulation.emulate import emulate

ODD = str(Path(__file__).parent / "odd_uses_of_mpi.py")
CALLS = str(Path(__file__).parent / "calls_of_mpi.py")


@pytest.mark.parametrize("n", [3, 4])
def test_calls_return_what_mpi_says(n, capfd):
    emulate(["python", CALLS], "star:n_hosts=8", n, ranks_as="threads")
    assert "all well at" in capfd.readouterr().out


@pytest.mark.parametrize("data", ["real", "none"])
def test_odd_uses_are_as_in_mpich(data, capfd):
    """The program's assertions hold with mpi4py 4.1.2 on MPICH, too: ``mpiexec -n 4 python odd_uses_of_mpi.py``."""
    emulate(["python", ODD], "star:n_hosts=8", 4, ranks_as="threads", data=data)
    assert "all well" in capfd.readouterr().out


@pytest.mark.slow
def test_processes_take_the_same_virtual_time_as_threads_every_time(capfd):
    times = {
        (found.time, tuple(found.ends), found.link_bytes.tobytes())
        for ranks_as in ("threads", "processes", "threads", "processes")
        for found in [emulate(["python", CALLS], "star:n_hosts=8", 3, ranks_as=ranks_as)]
    }
    assert len(times) == 1
    assert len(set(capfd.readouterr().out.splitlines())) == 1


def test_sums_are_those_of_the_schedule_bit_for_bit():
    values = np.random.default_rng(3).normal(size=(4, 8)).astype(np.float32)
    found = {}

    def program():
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.rank
        found[rank] = np.empty(8, np.float32)
        MPI.COMM_WORLD.Allreduce(values[rank], found[rank])

    emulate(program, "star:n_hosts=4", 4, algorithm=["all_reduce=ring_all_reduce"])
    chunks = []
    for chunk in range(4):  # a ring adds a chunk from the rank of its number on
        mine = slice(2 * chunk, 2 * chunk + 2)
        held = values[chunk, mine].copy()
        for step in range(1, 4):
            held = values[(chunk + step) % 4, mine] + held
        chunks.append(held)
    ring = np.concatenate(chunks)
    assert all((found[rank] == ring).all() for rank in range(4))
    assert (ring != values.sum(axis=0)).any()


HALO = """
from mpi4py import MPI
import numpy as np
grid = MPI.COMM_WORLD.Create_cart([2, 4], periods=[True, True])
begin = MPI.Wtime()
got = np.empty(12500)
for axis in (0, 1):
    for step in (1, -1):
        source, to = grid.Shift(axis, step)
        grid.Sendrecv(np.full(12500, float(grid.rank)), to, 0, got, source, 0)
        assert (got == source).all()
took = MPI.Wtime() - begin
if grid.rank == 0:
    print(f"{took * 1e6:.6f}")
"""


def test_an_exchange_of_halos_takes_its_closed_form(command):
    code, out, _ = command(HALO, "--overhead", "1us", n=8)
    assert code == 0
    assert float(out.split()[0]) == pytest.approx(4 * (1 + 2 + 8), rel=1e-9)  # o + L + 100 kB at 100 Gb/s


RING = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
data = bytearray(25000)
for _ in range(comm.size - 1):
    comm.Sendrecv_replace([data, MPI.BYTE], (comm.rank + 1) % comm.size, 0, (comm.rank - 1) % comm.size, 0)
assert abs(MPI.Wtime() - (comm.size - 1) * (2e-6 + 2e-6)) < 1e-15
"""


def test_a_ring_of_messages_takes_its_closed_form(command):
    assert command(RING, "--overhead", "0us", n=8)[0] == 0


def test_libraries_choose_by_size(command):
    text = "from mpi4py import MPI\nimport numpy as np\nMPI.COMM_WORLD.Allreduce(np.ones(1000), np.empty(1000))"
    for library, name in (("mpich", "halving_doubling_all_reduce"), ("open-mpi", "recursive_doubling_all_reduce")):
        assert name in command(text, "--library", library)[1]
    assert "ring_all_reduce" in command(text, "--algorithm", "all_reduce=ring_all_reduce")[1]


def test_without_data_only_time_goes_on(command):
    text = "from mpi4py import MPI\nimport numpy as np\nb = np.zeros(9)\n"
    text += "MPI.COMM_WORLD.Allreduce(b + 1, b)\nassert not b.any()"
    code, out, _ = command(text, "--data", "none", "--json", "-")
    assert code == 0
    assert json.loads(out)["results"][0]["calls"] == 4
    assert "AssertionError" in command(text)[2]


def test_the_page_and_the_timeline_have_every_call(command, tmp_path):
    page, timeline = tmp_path / "page.html", tmp_path / "timeline.json"
    assert command(RING, "--overhead", "0us", "--report", str(page), "--timeline", str(timeline), n=8)[0] == 0
    assert "Calls of each rank" in page.read_text()
    slices = [one for one in json.loads(timeline.read_text())["traceEvents"] if one["ph"] == "X"]
    assert len(slices) == 2 * 8 * 7
    assert {one["dur"] for one in slices if one["name"] == "receive"} == {4.0}


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("MPI.Win.Create(None)", "MPI.Win"),
        ("MPI.COMM_WORLD.Spawn('a')", "WorldComm.Spawn"),
        ("MPI.DOUBLE.Create_vector(2, 1, 3)", "Datatype.Create_vector"),
        ("MPI.Datatype.Create_struct([1], [0], [MPI.INT])", "Datatype.Create_struct"),
        ("MPI.Request.Grequest", "Request.Grequest"),
        ("MPI.COMM_WORLD.Get_group().Range", "Group.Range"),
        ("MPI.SUM.Sum", "Op.Sum"),
        ("MPI.Status().Set_elements(MPI.INT, 1)", "Status.Set_elements"),
        ("import mpi4py.futures", "mpi4py.futures"),
    ],
)
def test_what_is_not_there_is_refused_by_name(command, call, named):
    code, _, err = command(f"from mpi4py import MPI\n{call}")
    assert code == 1
    assert err.count("\n") == 1
    assert "rank 0" in err
    assert f"commsim emulate has no {named}" in err
