"""A rank as its program sees it: what threads and processes have in common, and the rank of a process."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Client
from typing import Any, Protocol

from .clock import Ticks, seconds_of, ticks_of
from .rank_calls import Call, PendingCall

SOCKET, NUMBER, SIZE, FACTOR = (
    f"COMMSIM_EMULATE_{name}" for name in ("SOCKET", "RANK", "RANKS", "MEASURED")
)  # environment of a rank's process
__all__ = ["FACTOR", "NUMBER", "SIZE", "SOCKET", "ProcessRank", "Rank", "rank_of_process"]


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
    """The rank of this process, which asks the coordinator over a socket; methods as in :class:`Rank`.

    What it posts is kept until it waits, so that there is one exchange for each wait.

    Parameters
    ----------
    address : str
        Socket of the coordinator, in a private folder.
    number, n_ranks : int
        World rank and world size.
    factor : float, optional
        What processor time is multiplied by; None where computing takes no time.
    """

    def __init__(self, address: str, number: int, n_ranks: int, factor: float | None) -> None:
        self.number, self.n_ranks = number, n_ranks
        self.cache: dict[Any, Any] = {}
        self._factor, self._cpu = factor, time.process_time()
        self._thread = threading.get_ident()
        self._now: Ticks = 0
        self._n_calls = 0
        self._open: dict[int, PendingCall] = {}
        self._kept: list[tuple[Any, ...]] = []
        self._connection = Client(address, family="AF_UNIX")
        self._connection.send(number)

    def now(self) -> float:
        """Return the virtual time of the rank, s."""
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
        self._count()
        self._n_calls += 1
        operation = PendingCall(self.number, self._n_calls, call, self._now)
        self._open[self._n_calls] = operation
        deliver, given = getattr(call, "deliver", None), call
        if deliver is not None:  # it is called here, and functions do not travel
            import copy

            given = copy.copy(call)
            given.deliver = None  # type: ignore[union-attr]
        self._kept.append(("post", given))
        return operation

    def wait(self, operations: Sequence[PendingCall], *, every: bool = True) -> None:
        """Wait until all, or with ``every=False`` one, of some operations are complete."""
        self._ask(operations, every, False)

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
        self._connection.send([*self._kept, ("end",)])
        self._connection.close()

    def fail(self, text: str) -> None:
        """Say that the program raised."""
        with contextlib.suppress(ConnectionError):  # the same
            self._connection.send([*self._kept, ("fail", text)])
        self._connection.close()

    def _ask(self, operations: Sequence[PendingCall], every: bool, polls: bool) -> bool:
        self._count()
        try:
            self._connection.send([*self._kept, ("wait", [op.number for op in operations], every, polls)])
            self._now, answer, complete = self._connection.recv()
        except (EOFError, ConnectionError):  # the emulation has ended, and says why
            os._exit(1)
        self._kept = []
        for number, end, result, source, cancelled in complete:
            operation = self._open.pop(number)
            operation.end, operation.result, operation.source = end, result, source
            operation.cancelled = cancelled
            deliver = getattr(operation.call, "deliver", None)
            if deliver is not None and not cancelled:
                deliver(result)
        if self._factor is not None:
            self._cpu = time.process_time()
        return bool(answer)

    def _count(self) -> None:
        """Add the processor time since the last exchange, where computing takes time; other threads only look."""
        if self._factor is not None and threading.get_ident() == self._thread:
            cpu = time.process_time()
            self.compute((cpu - self._cpu) * self._factor)
            self._cpu = time.process_time()


def rank_of_process() -> ProcessRank:
    """Return the rank that the environment names, connected."""
    factor = os.environ.get(FACTOR)
    return ProcessRank(
        os.environ[SOCKET], int(os.environ[NUMBER]), int(os.environ[SIZE]), None if not factor else float(factor)
    )
