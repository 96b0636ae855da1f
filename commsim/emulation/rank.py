"""A rank as its program sees it: what threads and processes have in common, and the rank of a process."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection
from typing import Any, Protocol

from .clock import Ticks, seconds_of, ticks_of
from .rank_calls import Call, PendingCall, Receive, Send

SOCKET, NUMBER, SIZE, FACTOR, EAGER = (
    f"COMMSIM_EMULATE_{name}" for name in ("SOCKET", "RANK", "RANKS", "MEASURED", "EAGER")
)  # environment of a rank's process
# Bytes of the length before a value; bytes for which there is always memory.
LENGTH, FIRST = 8, 1 << 16
# Sends that are not yet waited for, though the program goes on: at most so many.
MAX_PASSED = 64
__all__ = ["EAGER", "FACTOR", "NUMBER", "SIZE", "SOCKET", "FramedLink", "ProcessRank", "Rank", "rank_of_process"]


class Rank(Protocol):
    """One rank of an emulation.

    Attributes
    ----------
    number, n_ranks : int
        World rank and world size.
    cache : dict
        What stand-ins keep for this rank, as long as its program runs.
    """

    cache: dict[Any, Any]

    @property
    def number(self) -> int: ...  # noqa: D102
    @property
    def n_ranks(self) -> int: ...  # noqa: D102

    def now(self) -> float:
        """Return the virtual time of the rank, s."""

    def compute(self, seconds: float) -> None:
        """Let the rank's clock go on."""

    def sleep(self, seconds: float) -> bool:
        """Let the rank's clock go on without computing; return whether the thread that asks is the rank."""

    def post(self, call: Call) -> PendingCall:
        """Begin a call; returns at once."""

    def wait(self, operations: Sequence[PendingCall], *, every: bool = True) -> None:
        """Wait until all, or with ``every=False`` one, of some operations are complete."""

    def test(self, operations: Sequence[PendingCall], *, every: bool = True) -> bool:
        """Whether all, or one, of some operations are complete now; asked again in vain, when something has ended."""

    def cancel(self, operation: PendingCall) -> None:
        """Take back a receive that has no message yet."""


class FramedLink:
    """One end of a connection on which the two ends speak in turn, so that never more than one value is under way.

    Parameters
    ----------
    connection : Connection
        The socket, which stays open as long as this.
    """

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self.connection, self._file = connection, connection.fileno()
        self._came = bytearray(FIRST)

    def send(self, value: Any) -> None:
        """Send a value.

        Raises
        ------
        ConnectionError
            If the other end is gone.
        """
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        rest = memoryview(len(data).to_bytes(LENGTH, "little") + data)
        while rest:  # parts of it are not copied
            rest = rest[os.write(self._file, rest) :]

    def receive(self) -> Any:
        """Return the next value.

        Raises
        ------
        EOFError
            If the other end is gone.
        """
        came = memoryview(self._came)
        n_bytes = self._more(came)
        while n_bytes < LENGTH:
            n_bytes += self._more(came[n_bytes:])
        end = LENGTH + int.from_bytes(came[:LENGTH], "little")
        if end > FIRST:
            whole = memoryview(bytearray(end))
            whole[:n_bytes] = came[:n_bytes]
            came = whole
        while n_bytes < end:
            n_bytes += self._more(came[n_bytes:end])
        return pickle.loads(came[LENGTH:end])

    def _more(self, room: memoryview) -> int:
        """Read what has come; return how many bytes."""
        n_bytes = os.readv(self._file, (room,))
        if not n_bytes:
            raise EOFError
        return n_bytes

    def close(self) -> None:
        """Close the socket."""
        self.connection.close()


class ProcessRank:
    """The rank of this process, which asks the coordinator over a socket; methods as in :class:`Rank`.

    What it posts is kept until it waits, so that there is one exchange for each wait. A send that does not wait for its
    receive brings nothing but the time: the program goes on, and the coordinator waits at this place of what it said.

    Parameters
    ----------
    address : str
        Socket of the coordinator, in a private folder.
    number, n_ranks : int
        World rank and world size.
    factor : float, optional
        What processor time is multiplied by; None where computing takes no time.
    eager : float, bytes
        Largest message that is sent before its receive is there.
    """

    def __init__(self, address: str, number: int, n_ranks: int, factor: float | None, eager: float = 0.0) -> None:
        self.number, self.n_ranks = number, n_ranks
        self.cache: dict[Any, Any] = {}
        self._factor, self._cpu, self._eager = factor, time.process_time(), eager
        self._thread = threading.get_ident()
        self._now: Ticks = 0
        self._n_calls = 0
        self._open: dict[int, PendingCall] = {}
        self._kept: list[tuple[Any, ...]] = []
        self._n_passed = 0  # sends that the program takes for complete, and whose ends are not known
        connection = Client(address, family="AF_UNIX")
        connection.send(number)
        self._link = FramedLink(connection)

    def now(self) -> float:
        """Return the virtual time of the rank, s."""
        if self._n_passed and threading.get_ident() == self._thread:
            self._ask((), True, False)
        self._count()
        return seconds_of(self._now)

    def compute(self, seconds: float) -> None:
        """Let the rank's clock go on."""
        ticks = ticks_of(max(seconds, 0.0))
        self._now += ticks
        if self._kept and self._kept[-1][0] == "compute":  # a program may read its clock for ever
            ticks += self._kept.pop()[1]
        self._kept.append(("compute", ticks))

    def sleep(self, seconds: float) -> bool:
        """Let the rank's clock go on without computing; return whether the thread that asks is the rank."""
        if threading.get_ident() != self._thread:
            return False
        self._count()
        self._now += ticks_of(seconds)
        self._kept.append(("sleep", ticks_of(seconds)))
        return True

    def end_step(self) -> None:
        """Say that a step of the optimiser has ended."""
        self._count()
        self._kept.append(("step",))

    def post(self, call: Call) -> PendingCall:
        """Begin a call; returns at once."""
        if self._factor is not None:
            self._count()
        self._n_calls += 1
        operation = PendingCall(self.number, self._n_calls, call, self._now)
        self._open[self._n_calls] = operation
        self._kept.append(_posted(call))
        return operation

    def wait(self, operations: Sequence[PendingCall], *, every: bool = True) -> None:
        """Wait until all, or with ``every=False`` one, of some operations are complete."""
        if every and self._n_passed < MAX_PASSED and all(map(self._ends_alone, operations)):
            if self._factor is not None:
                self._count()
            self._n_passed += 1
            numbers = [op.number for op in operations]
            for number in numbers:
                self._open.pop(number, None)
            self._kept.append(("pass", numbers))
            return
        self._ask(operations, every, False)

    def _ends_alone(self, operation: PendingCall) -> bool:
        call = operation.call
        return type(call) is Send and call.n_bytes <= self._eager and not call.synchronous

    def test(self, operations: Sequence[PendingCall], *, every: bool = True) -> bool:
        """Whether all, or one, of some operations are complete now; asked again in vain, when something has ended."""
        return self._ask(operations, every, True)

    def cancel(self, operation: PendingCall) -> None:
        """Take back a receive that has no message yet."""
        self._kept.append(("cancel", operation.number))
        self._ask((), True, False)

    def end(self) -> None:
        """Say that the program has ended."""
        self._count()
        self._link.send([*self._kept, ("end",)])
        self._link.close()

    def fail(self, text: str) -> None:
        """Say that the program raised."""
        with contextlib.suppress(ConnectionError):  # the same
            self._link.send([*self._kept, ("fail", text)])
        self._link.close()

    def _ask(self, operations: Sequence[PendingCall], every: bool, polls: bool) -> bool:
        self._count()
        try:
            self._link.send([*self._kept, ("wait", [op.number for op in operations], every, polls)])
            self._now, answer, complete = self._link.receive()
        except (EOFError, ConnectionError):  # the emulation has ended, and says why
            os._exit(1)
        self._kept, self._n_passed = [], 0
        for number, end, cancelled, result, *message in complete:
            operation = self._open.pop(number)
            operation.end, operation.cancelled, operation.result = end, cancelled, result
            if message:
                tag, n_bytes, operation.source = message
                operation.result = Send(self.number, tag, None, n_bytes, result)
            deliver = None if type(operation.call) is Send else operation.call.deliver
            if deliver is not None and not cancelled:
                deliver(operation.result)
        if self._factor is not None:
            self._cpu = time.process_time()
        return bool(answer)

    def _count(self) -> None:
        """Add the processor time since the last exchange, where computing takes time; other threads only look."""
        if self._factor is not None and threading.get_ident() == self._thread:
            cpu = time.process_time()
            self.compute((cpu - self._cpu) * self._factor)
            self._cpu = time.process_time()


def _posted(call: Call) -> tuple[Any, ...]:
    """Return what is said of a call: of a message its plain values, which travel in a third of the time."""
    if isinstance(call, Send):
        return "send", call.to, call.tag, call.context, call.n_bytes, call.data, call.synchronous, call.site
    if isinstance(call, Receive):
        return "receive", call.source, call.tag, call.context, call.keep, call.site
    if call.deliver is None:
        return "post", call
    given = copy.copy(call)  # it is called here, and functions do not travel
    given.deliver = None
    return "post", given


def rank_of_process() -> ProcessRank:
    """Return the rank that the environment names, connected."""
    factor = os.environ.get(FACTOR)
    return ProcessRank(
        os.environ[SOCKET], int(os.environ[NUMBER]), int(os.environ[SIZE]), None if not factor else float(factor),
        float(os.environ[EAGER]),
    )  # fmt: skip
