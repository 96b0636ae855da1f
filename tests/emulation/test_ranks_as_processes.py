"""Programs are the same, to the last bit, whether ranks are threads or processes: times, data, report, link bytes."""

import functools
import pickle
from pathlib import Path

import pytest

from commsim.emulation.emulate import emulate

from . import drawn_programs
from .drawn_programs import draw, run

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=25Gbps,uplink_bandwidth=12.5Gbps"
SCRIPT = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from drawn_programs import draw, run

seed, n_ranks, saw = int(sys.argv[2]), int(sys.argv[3]), {}
run(draw(seed, n_ranks), saw)
((rank, mine),) = saw.items()
Path(sys.argv[4], str(rank)).write_bytes(pickle.dumps(mine))
"""
# Sends behind each other that a rank receives late and in another order, in sizes of which some have no room.
FLOODS = """
from mpi4py import MPI

comm = MPI.COMM_WORLD
other, n, sizes = 1 - comm.rank, 60, (0, 60_000, 9_000, 3_000_000)
blocks = [bytes([k]) * sizes[k % 4] for k in range(n)]
begun = [comm.Isend(block, other, k % 3) for k, block in enumerate(blocks)]
if comm.rank:
    comm.Barrier()
rooms = [bytearray(max(sizes)) for _ in blocks]
for tag in (2, 0, 1):
    for k in range(tag, n, 3):
        comm.Recv(rooms[k], other, tag)
        assert rooms[k][: sizes[k % 4]] == blocks[k], (k, comm.rank)
        if k % 7 == 0:
            print(comm.rank, repr(MPI.Wtime()))
if not comm.rank:
    comm.Barrier()
MPI.Request.Waitall(begun)
"""


def said(found):
    """Return all that an emulation says."""
    rows = [(row.site, row.operation, row.n_bytes, row.n_calls, row.ticks, row.exposed) for row in found.rows]
    times = [found.ends.tolist(), found.exposed.tolist(), found.link_bytes.tolist()]
    return times, sorted(rows), [repr(record) for record in found.records]


@pytest.mark.parametrize(
    "seed", [*range(200, 203), *(pytest.param(k, marks=pytest.mark.deep) for k in range(203, 240))]
)
def test_drawn_programs_are_as_with_threads(seed, tmp_path):
    n_ranks, saw = 2 + seed % 4, {}
    script = tmp_path / "prog.py"
    script.write_text(SCRIPT)
    command = ["python", str(script), str(Path(drawn_programs.__file__).parent), str(seed), str(n_ranks), str(tmp_path)]
    as_threads = emulate(functools.partial(run, draw(seed, n_ranks), saw), NETWORK, n_ranks, records=True)
    as_processes = emulate(command, NETWORK, n_ranks, records=True, ranks_as="processes")
    assert said(as_processes) == said(as_threads)
    for rank, mine in saw.items():
        assert pickle.loads((tmp_path / str(rank)).read_bytes()) == mine


def test_messages_that_their_receiver_does_not_read_yet_come_whole(tmp_path, capfd):
    script = tmp_path / "prog.py"
    script.write_text(FLOODS)
    found = []
    for ranks_as in ("threads", "processes"):
        run = emulate(["python", str(script)], "star:n_hosts=2", 2, ranks_as=ranks_as, records=True)
        found.append((said(run), sorted(capfd.readouterr().out.splitlines())))
    assert found[0] == found[1]
