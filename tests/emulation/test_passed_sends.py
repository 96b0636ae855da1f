"""Sends that a rank's process does not wait for: one exchange for each receive, the times as with threads."""

import os
import threading
from multiprocessing.connection import Client, Listener

import pytest

from commsim.emulation.emulate import emulate
from commsim.emulation.rank import MAX_PASSED, FramedLink, ProcessRank
from commsim.emulation.rank_calls import Receive, Send

PROGRAM = """
import time
from mpi4py import MPI

comm, times = MPI.COMM_WORLD, []
other, block = 1 - comm.rank, bytearray(b"x" * 100)
for k in range(200):
    if comm.rank == 0:
        comm.Send(block, other, 1)
        if k % 7 == 0:
            times.append(MPI.Wtime())
        if k % 11 == 0:
            time.sleep(1e-6 * k)
        comm.Recv(block, other, 1)
    else:
        comm.Recv(block, other, 1)
        comm.Send(block, other, 1)
if comm.rank == 0:
    for k in range(150):
        comm.Send(block, other, 2)
    comm.Ssend(block, other, 3)
    asked = comm.Isend(block, other, 4)
    comm.Recv(block, other, 5)
    asked.Wait()
    print(repr(times[-1]), repr(MPI.Wtime()), sum(times))
else:
    for k in range(150):
        comm.Recv(block, other, 2)
    comm.Recv(block, other, 3)
    comm.Recv(block, other, 4)
    comm.Send(block, other, 5)
"""


def test_processes_and_threads_read_the_same_clocks(tmp_path, capfd):
    program = tmp_path / "messages.py"
    program.write_text(PROGRAM)
    found = []
    for ranks_as in ("threads", "processes"):
        run = emulate(["python", str(program)], "star:n_hosts=2", 2, ranks_as=ranks_as)
        rows = sorted((row.site, row.operation, row.n_calls, row.ticks, row.exposed) for row in run.rows)
        found.append((run.ends.tolist(), rows, run.link_bytes.tolist(), capfd.readouterr().out))
    assert found[0] == found[1]


@pytest.fixture
def asked(tmp_path):
    """Return a rank with an eager limit of 64 bytes, and the list of what it says in each exchange."""
    said, listener = [], Listener(str(tmp_path / "ranks"), family="AF_UNIX")

    def answer():
        connection = listener.accept()
        connection.recv()
        link = FramedLink(connection)
        while True:
            said.append([order[0] for order in link.receive()])
            if said[-1][-1] == "end":
                return
            link.send((0, True, []))

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    rank = ProcessRank(str(tmp_path / "ranks"), 0, 2, None, 64.0)
    yield rank, said
    rank.end()
    thread.join()
    listener.close()


def test_a_send_and_a_receive_are_one_exchange(asked):
    rank, said = asked
    rank.wait([rank.post(Send(1, 0, "world", 64.0))])
    rank.wait([rank.post(Receive(1, 0, "world"))])
    assert said == [["send", "pass", "receive", "wait"]]


@pytest.mark.parametrize(
    "call", [Send(1, 0, "world", 65.0), Send(1, 0, "world", 1.0, None, True), Receive(1, 0, "world")]
)
def test_what_waits_for_another_rank_is_waited_for(asked, call):
    rank, said = asked
    rank.wait([rank.post(call)])
    assert said == [[type(call).__name__.lower(), "wait"]]


def test_the_clock_is_read_when_the_sends_have_ended(asked):
    rank, said = asked
    rank.wait([rank.post(Send(1, 0, "world", 1.0))])
    rank.now()
    rank.now()
    assert said == [["send", "pass", "wait"]]


def test_a_rank_that_only_sends_speaks_in_time(asked):
    rank, said = asked
    for _ in range(MAX_PASSED + 1):
        rank.wait([rank.post(Send(1, 0, "world", 1.0))])
    assert [len(orders) for orders in said] == [2 * MAX_PASSED + 2]


@pytest.mark.parametrize("size", [0, 1 << 16, 3_000_000])
def test_values_of_any_size_come_whole(tmp_path, size):
    listener = Listener(str(tmp_path / "socket"), family="AF_UNIX")
    client = Client(str(tmp_path / "socket"), family="AF_UNIX")
    value = os.urandom(size)
    with listener.accept() as connection, client, listener:
        thread = threading.Thread(target=FramedLink(client).send, args=(value,))
        thread.start()
        assert FramedLink(connection).receive() == value
        thread.join()
        client.close()
        with pytest.raises(EOFError):
            FramedLink(connection).receive()
