"""A rank as its program sees it: what threads and processes have in common, and the rank of a process."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Client
from typing import Any, NoReturn, Protocol

from .clock import Ticks, seconds_of, ticks_of
from .framed_link import FramedLink
from .inbox import CameMessage, Inbox
from .peer_links import PeerLinks
from .rank_calls import Call, Collective, PendingCall, Receive, Send

SOCKET, NUMBER, SIZE, FACTOR, EAGER = (
    f"COMMSIM_EMULATE_{name}" for name in ("SOCKET", "RANK", "RANKS", "MEASURED", "EAGER")
)  # environment of a rank's process
# What is said at once: at most so many words. Calls after a wait for the coordinator in which others are to say at once
# what they wait for.
MAX_KEPT, SOON = 256, 16
# Data of at least so many bytes travels behind its message, uncopied.
LONG = 1 << 13
PASS_LAST = ("pass",)  # of a blocking call: the one that was posted last
__all__ = ["EAGER", "FACTOR", "NUMBER", "SIZE", "SOCKET", "ProcessRank", "Rank", "rank_of_process"]


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


class ProcessRank:
    """The rank of this process; methods as in :class:`Rank`.

    Data of messages goes from rank to rank, and the coordinator hears of calls only. What is known without times is
    not waited for: that an eager send is complete, and which message a receive of one source gets. The program goes on,
    and the coordinator waits at this place of what it is said, many calls at once. Times, collectives, and messages of
    any source are asked for.

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
        self._n_asked = -SOON  # calls before the last wait for the coordinator
        self._open: dict[int, PendingCall] = {}
        self._kept: list[tuple[Any, ...]] = []
        self._has_passed = False  # whether the program takes calls for complete whose ends are not known
        self._is_asked = False  # whether the rank that was heard last waits for the coordinator
        self._inbox = Inbox(self._read)
        self._peers = PeerLinks(address, number)
        self._connection = Client(address, family="AF_UNIX")
        self._connection.send(number)
        self._link = FramedLink(self._connection.fileno())
        self._link.receive()  # all ranks can be reached

    @property
    def file(self) -> int:
        """Descriptor of the connection to the coordinator."""
        return self._link.file

    def now(self) -> float:
        """Return the virtual time of the rank, s."""
        if self._has_passed and threading.get_ident() == self._thread:
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
        number = self._n_calls = self._n_calls + 1
        operation = self._open[number] = PendingCall(self.number, number, call, self._now)
        if len(self._kept) >= MAX_KEPT:
            self._say()
        if isinstance(call, Send):
            self._kept.append(
                ("send", call.to, call.tag, call.context, call.n_bytes, number, call.synchronous, call.site)
            )
            self._send(call, number)
        elif isinstance(call, Receive):
            self._kept.append(("receive", call.source, call.tag, call.context, call.keep, call.site))
            if not call.keep:
                self._inbox.expect(operation)
        else:
            self._kept.append(_posted(call))
        return operation

    def wait(self, operations: Sequence[PendingCall], *, every: bool = True) -> None:
        """Wait until all, or with ``every=False`` one, of some operations are complete."""
        if not every or not all(map(self._needs_no_time, operations)):
            self._ask(operations, every, False)
            return
        if self._factor is not None:
            self._count()
        if len(operations) == 1 and operations[0].number == self._n_calls:
            self._kept.append(PASS_LAST)
        else:
            self._kept.append(("pass", *(operation.number for operation in operations)))
        self._has_passed = True
        for operation in operations:
            if self._open.pop(operation.number, None) is not None and type(operation.call) is Receive:
                self._fill(operation, operation.call.source, self._inbox.message_of(operation))
        if self._factor is not None:
            self._cpu = time.process_time()

    def _needs_no_time(self, operation: PendingCall) -> bool:
        """Whether the program can go on without the time at which something is complete."""
        call = operation.call
        if type(call) is Send:
            return self._ends_alone(call)
        return type(call) is Receive and (operation.number not in self._open or self._inbox.knows(call))

    def _ends_alone(self, call: Send) -> bool:
        return call.n_bytes <= self._eager and not call.synchronous

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
        self._kept.append(("end",))
        self._link.send(self._kept)
        self._peers.close()
        self._connection.close()

    def abandon(self) -> None:
        """Close all connections in a process that was forked from the rank: else nobody hears that the rank dies."""
        self._peers.abandon()
        self._connection.close()

    def fail(self, text: str) -> None:
        """Say that the program raised."""
        with contextlib.suppress(ConnectionError):  # the same
            self._link.send([*self._kept, ("fail", text)])
        self._connection.close()

    def _ask(self, operations: Sequence[PendingCall], every: bool, polls: bool) -> bool:
        """Say all, wait for the coordinator, and take what has become complete."""
        self._count()
        self._kept.append(("wait", [op.number for op in operations], every, polls))
        self._say()
        if self._peers.is_late and not self._peers.wait(None, self._link.file):
            _end()
        try:
            self._now, answer, complete = self._link.receive()
        except (EOFError, ConnectionError):  # the emulation has ended, and says why
            _end()
        self._has_passed, self._n_asked = False, self._n_calls
        for number, end, cancelled, result, *message in complete:
            operation = self._open.pop(number)
            operation.end, operation.cancelled, operation.result = end, cancelled, result
            if message:
                self._take(operation, *message)
            elif cancelled and not operation.call.keep:
                self._inbox.cancel(operation)
            deliver = None if type(operation.call) is Send else operation.call.deliver
            if deliver is not None and not cancelled:
                deliver(operation.result)
        if self._factor is not None:
            self._cpu = time.process_time()
        return bool(answer)

    def _take(self, operation: PendingCall, tag: int, n_bytes: float, source: int) -> None:
        """Give a receive or a probe what the coordinator says that it gets."""
        if operation.call.keep:
            operation.result, operation.source = Send(self.number, tag, None, n_bytes), source
        else:
            self._fill(operation, source, self._inbox.message(operation, source, operation.result))

    def _say(self) -> None:
        """Say all that is kept."""
        if not self._kept:
            return
        try:
            self._link.send(self._kept)
        except ConnectionError:
            _end()
        self._kept = []

    def _send(self, call: Send, number: int) -> None:
        """Send the data of a message to its rank."""
        data, is_asked = call.data, self._n_calls - self._n_asked < SOON or not self._ends_alone(call)
        if call.to == self.number:
            self._inbox.came(self.number, call.context, CameMessage(number, call.tag, call.n_bytes, data))
        elif type(data) is bytes and len(data) >= LONG:
            self._peers.send(call.to, (number, call.tag, call.context, call.n_bytes, is_asked, None), data)
        else:
            self._peers.send(call.to, (number, call.tag, call.context, call.n_bytes, is_asked, data))

    def _read(self, source: int) -> None:
        """Wait for the next message of a rank; what this one waits for is said at once if others need it, or soon."""
        if self._is_asked:
            self._say()
        while True:
            try:
                (number, tag, context, n_bytes, self._is_asked, data), block = self._peers.receive(source)
                break
            except BlockingIOError:
                self._say()
                if self._peers.wait(source, self._link.file):
                    _end()
            except (EOFError, ConnectionError):  # the coordinator knows what that means
                self._say()
                self._peers.wait(None, self._link.file)
                _end()
        self._inbox.came(source, context, CameMessage(number, tag, n_bytes, block or data))

    def _fill(self, operation: PendingCall, source: int, message: CameMessage) -> None:
        """Give a receive its message."""
        operation.result = Send(self.number, message.tag, None, message.n_bytes, message.data)
        operation.source = source
        if operation.end is None:
            operation.end = self._now  # not known, and not before

    def _count(self) -> None:
        """Add the processor time since the last exchange, where computing takes time; other threads only look."""
        if self._factor is not None and threading.get_ident() == self._thread:
            cpu = time.process_time()
            self.compute((cpu - self._cpu) * self._factor)
            self._cpu = time.process_time()


def _posted(call: Collective) -> tuple[str, Collective]:
    """Return what is said of a collective."""
    if call.deliver is None:
        return "post", call
    given = copy.copy(call)  # it is called here, and functions do not travel
    given.deliver = None
    return "post", given


def _end() -> NoReturn:
    """End this process: the emulation has ended, and says why."""
    os._exit(1)


def rank_of_process() -> ProcessRank:
    """Return the rank that the environment names, connected."""
    factor = os.environ.get(FACTOR)
    return ProcessRank(
        os.environ[SOCKET], int(os.environ[NUMBER]), int(os.environ[SIZE]), None if not factor else float(factor),
        float(os.environ[EAGER]),
    )  # fmt: skip
