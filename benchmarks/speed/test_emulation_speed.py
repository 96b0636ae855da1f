"""How many messages of emulated programs go through a second of processor time.

``pytest benchmarks/speed/test_emulation_speed.py --benchmark-enable`` measures; nothing is asserted about speed, since
machines differ. Issue 53 asks for 20,000 messages a second of the ping-pong.
"""

from __future__ import annotations

import inspect
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commsim.emulation.emulate import emulate

LOOPS = 2000


def ping_pong(comm: Any) -> None:
    """Send 8 bytes there and back."""
    data, other = bytearray(8), comm.rank ^ 1
    for k in range(2 * LOOPS):
        if (k + comm.rank) % 2:
            comm.Recv(data, other)
        else:
            comm.Send(data, other)


def ring(comm: Any) -> None:
    """Send to the next rank, and receive from the one before, all at once."""
    out, room, n = bytearray(8), bytearray(8), comm.size
    for _ in range(LOOPS // 4):
        comm.Sendrecv(out, (comm.rank + 1) % n, 0, room, (comm.rank - 1) % n, 0)


def token(comm: Any) -> None:
    """Pass one message on from rank to rank."""
    data, n = bytearray(8), comm.size
    for k in range(LOOPS // 4):
        if comm.rank or k:
            comm.Recv(data, (comm.rank - 1) % n)
        comm.Send(data, (comm.rank + 1) % n)
    if comm.rank == 0:
        comm.Recv(data, n - 1)


def halo(comm: Any) -> None:
    """Exchange edges with four neighbours, without blocking."""
    grid = comm.Create_cart([2, comm.size // 2], periods=[True, True])
    ends, edge = [grid.Shift(axis, step) for axis in (0, 1) for step in (1, -1)], bytearray(8)
    for _ in range(LOOPS // 8):
        requests = [grid.Irecv(bytearray(8), source, k) for k, (source, _) in enumerate(ends)]
        requests += [grid.Isend(edge, to, k) for k, (_, to) in enumerate(ends)]
        requests[0].Waitall(requests)


def pairs(comm: Any) -> None:
    """Send there and back in pairs whose messages have unlike sizes, so that the network is never idle."""
    data, other = bytearray(1000 + 1237 * (comm.rank // 2)), comm.rank ^ 1
    for k in range(LOOPS // 4):
        if (k + comm.rank) % 2:
            comm.Recv(data, other)
        else:
            comm.Send(data, other)


@pytest.mark.parametrize(("program", "n_ranks"), [(ping_pong, 2), (ring, 8), (token, 8), (halo, 8), (pairs, 4)])
def test_messages_a_second_of_processor_time(benchmark: Any, program: Callable[[Any], None], n_ranks: int) -> None:
    """Ranks as threads on a star."""

    def run() -> None:
        from mpi4py import MPI

        program(MPI.COMM_WORLD)

    def measured() -> float:
        begin = time.process_time()
        found = emulate(run, f"star:n_hosts={n_ranks}", n_ranks)
        return sum(row.n_calls for row in found.rows if row.operation == "send") / (time.process_time() - begin)

    emulate(run, f"star:n_hosts={n_ranks}", n_ranks)
    benchmark.extra_info["messages_a_cpu_second"] = benchmark.pedantic(measured, rounds=1)


def test_messages_between_processes_a_second_of_processor_time(benchmark: Any, tmp_path: Path) -> None:
    """Both ranks and the coordinator, with their start: ten times the messages, so that it counts little."""
    script = tmp_path / "prog.py"
    lines = [inspect.getsource(ping_pong), "from mpi4py import MPI", "ping_pong(MPI.COMM_WORLD)"]
    script.write_text("\n".join([f"from typing import Any\nLOOPS = {10 * LOOPS}", *lines]))

    def seconds() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    def measured() -> float:
        begin = seconds()
        found = emulate(["python", str(script)], "star:n_hosts=2", 2, ranks_as="processes")
        return sum(row.n_calls for row in found.rows if row.operation == "send") / (seconds() - begin)

    benchmark.extra_info["messages_a_cpu_second"] = benchmark.pedantic(measured, rounds=1)
