"""Calls that a rank's process does not ask about: they are said together, and the times are as with threads."""

import os
import threading
import time
from multiprocessing.connection import Client, Listener

import pytest

from commsim.emulation.emulate import emulate
from commsim.emulation.framed_link import FramedLink
from commsim.emulation.peer_links import PeerLinks
from commsim.emulation.rank import MAX_KEPT, ProcessRank
from commsim.emulation.rank_calls import ANY, Receive, Send

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
    """Return a rank with an eager limit of 64 bytes, what it says each time, and the connections of another."""
    said, listener = [], Listener(str(tmp_path / "ranks"), family="AF_UNIX")

    def answer():
        connection = listener.accept()
        connection.recv()
        link = FramedLink(connection.fileno())
        link.send(None)
        while True:
            said.append([order[0] for order in link.receive()])
            if said[-1][-1] == "end":
                return
            if said[-1][-1] == "wait":
                link.send((0, True, []))

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    peer = PeerLinks(str(tmp_path / "ranks"), 1)
    rank = ProcessRank(str(tmp_path / "ranks"), 0, 2, None, 64.0)
    yield rank, said, peer
    rank.end()
    thread.join()
    peer.close()
    listener.close()


def heard(said):
    """Wait until something is said, for some seconds."""
    for _ in range(5000):
        if said:
            return
        time.sleep(0.001)


def test_a_send_and_a_receive_of_any_source_are_one_exchange(asked):
    rank, said, _ = asked
    rank.wait([rank.post(Send(1, 0, "world", 64.0))])
    rank.wait([rank.post(Receive(ANY, 0, "world"))])
    assert said == [["send", "pass", "receive", "wait"]]


@pytest.mark.parametrize(
    "call", [Send(1, 0, "world", 65.0), Send(1, 0, "world", 1.0, None, True), Receive(ANY, 0, "world")]
)
def test_what_depends_on_times_is_asked_for(asked, call):
    rank, said, _ = asked
    rank.wait([rank.post(call)])
    assert said == [[type(call).__name__.lower(), "wait"]]


@pytest.mark.parametrize("data", [None, b"abc", bytes(range(256)) * 5000])
def test_a_message_of_one_source_is_not_asked_for_but_its_time_is(asked, data):
    rank, said, peer = asked
    is_long = data is not None and len(data) > 3
    peer.send(0, (1, 0, "world", 3.0, False, None if is_long else data), data if is_long else b"")
    rank.wait([operation := rank.post(Receive(1, 0, "world"))])
    assert (operation.result.data, operation.result.n_bytes, operation.source) == (data, 3.0, 1)
    assert said == []
    rank.now()
    rank.now()
    assert said == [["receive", "pass", "wait"]]


def test_a_rank_that_waits_for_another_says_so_at_once_if_that_one_asks(asked):
    rank, said, peer = asked
    peer.send(0, (1, 0, "world", 0.0, True, None))
    peer.send(0, (2, 0, "world", 0.0, False, None))
    rank.wait([rank.post(Receive(1, 0, "world"))])
    rank.wait([rank.post(Receive(1, 0, "world"))])
    heard(said)
    assert said == [["receive", "pass", "receive", "pass"]]


def test_only_a_rank_that_has_ended_gets_nothing_without_a_word(asked):
    _, _, peer = asked
    peer.send(5, None)
    with pytest.raises(OSError, match="path too long"):
        peer.send(10**200, None)


def test_a_rank_that_waits_in_vain_says_so_soon(asked):
    rank, said, peer = asked
    rank.wait([rank.post(Send(1, 0, "world", 1.0))])
    operation = rank.post(Receive(1, 0, "world"))
    thread = threading.Thread(target=rank.wait, args=([operation],))
    thread.start()
    heard(said)
    assert said == [["send", "pass", "receive", "pass"]]
    peer.send(0, (1, 0, "world", 0.0, False, None))
    thread.join()


def test_the_clock_is_read_when_the_sends_have_ended(asked):
    rank, said, _ = asked
    rank.wait([rank.post(Send(1, 0, "world", 1.0))])
    rank.now()
    rank.now()
    assert said == [["send", "pass", "wait"]]


def test_a_rank_that_only_sends_speaks_in_time(asked):
    rank, said, _ = asked
    for _ in range(MAX_KEPT // 2 + 1):
        rank.wait([rank.post(Send(1, 0, "world", 1.0))])
    rank.now()
    assert list(map(len, said)) == [MAX_KEPT, 3]


@pytest.mark.parametrize("size", [0, 1 << 16, 3_000_000])
def test_values_of_any_size_come_whole(tmp_path, size):
    listener = Listener(str(tmp_path / "socket"), family="AF_UNIX")
    client = Client(str(tmp_path / "socket"), family="AF_UNIX")
    value = os.urandom(size)
    with listener.accept() as connection, client, listener:
        thread = threading.Thread(target=FramedLink(client.fileno()).send, args=(value,))
        thread.start()
        assert FramedLink(connection.fileno()).receive() == value
        thread.join()
        client.close()
        with pytest.raises(EOFError):
            FramedLink(connection.fileno()).receive()
