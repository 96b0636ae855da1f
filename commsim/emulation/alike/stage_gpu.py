"""The GPU of one pipeline stage as its process sees it: what it puts on streams is said to the common clock.

Nothing is sent until the host waits, so there is one exchange with the clock for each wait.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from .network_times import Group
from .queued_work import Moment

__all__ = ["ClockReply", "StageGpu", "Stages"]


class ClockReply(NamedTuple):
    """What the clock says when a host may go on.

    Parameters
    ----------
    clock : float, s
        Virtual time.
    reached : list of (int, float)
        Moments that have been reached since, and their times.
    payloads : dict of int to bytes
        Values of messages that were received, by the moment of their end.
    """

    clock: float
    reached: list[tuple[int, float]]
    payloads: dict[int, bytes]


@dataclass(frozen=True, slots=True)
class Stages:
    """How the ranks are divided: stage `s` has the ranks from ``s * size``; its first one runs for all.

    Parameters
    ----------
    n, size : int
        Number of stages, and ranks of each.
    own : int
        Stage of this process.
    """

    n: int
    size: int
    own: int

    def of(self, ranks: Group) -> tuple[int, ...]:
        """Return the stages to which ranks belong."""
        return tuple(sorted({rank // self.size for rank in ranks}))


@dataclass(slots=True, eq=False)
class StageStream:
    """A stream of the stage, by number."""

    number: int
    name: str


@dataclass(slots=True, eq=False)
class StageGpu:
    """Streams of a stage; the methods are those of :class:`commsim.emulation.alike.virtual_gpu.VirtualGpu`.

    Parameters
    ----------
    connection : Connection
        To the process that has the clock.
    """

    connection: Connection[Any, Any]
    clock: float = 0.0
    default: StageStream = field(init=False)
    current: StageStream = field(init=False)
    payloads: dict[Moment, bytes] = field(default_factory=dict)
    _said: list[list[Any]] = field(default_factory=list)
    _growing: dict[int, list[Any]] = field(default_factory=dict)  # the last computation of a stream, while it is last
    _moments: dict[int, Moment] = field(default_factory=dict)
    _numbers: dict[Moment, int] = field(default_factory=dict)
    _n_streams: int = 0
    _n_moments: int = 0

    def __post_init__(self) -> None:
        self.default = self.stream("default")
        self.current = self.default

    def stream(self, name: str = "") -> StageStream:
        """Make a stream."""
        stream = StageStream(self._n_streams, name)
        self._n_streams += 1
        self._said.append(["stream", name])
        return stream

    def compute(self, seconds: float, name: str) -> None:
        """Put a computation on the current stream; one after the other are said as one."""
        if seconds <= 0:
            return
        number = self.current.number
        if number in self._growing:
            self._growing[number][2] += seconds
        else:
            self._growing[number] = ["compute", number, seconds, name]
            self._said.append(self._growing[number])

    def record(self, stream: StageStream | None = None) -> Moment:
        """Mark the point that a stream has when all that is on it now is done."""
        number, moment = (stream or self.current).number, Moment()
        self._growing.pop(number, None)
        self._say_moment("record", moment, number)
        return moment

    def wait(self, moment: Moment, stream: StageStream | None = None) -> None:
        """Let what a stream does from now on wait for a moment."""
        if moment.time is None:
            number = (stream or self.current).number
            self._growing.pop(number, None)
            self._said.append(["wait", number, self._numbers[moment]])

    def is_idle(self, stream: StageStream) -> bool:
        """Whether a stream is empty, without letting time pass."""
        return bool(self._ask(["idle", stream.number]))

    def collective(self, on: StageStream, operation: str, size: float, groups: tuple[Group, ...], site: str) -> Moment:
        """Put a collective of groups that are alike on the stream of the caller's; return its end."""
        self.wait(self.record(), on)
        moment = Moment()
        self._growing.pop(on.number, None)
        self._say_moment("collective", moment, on.number, operation, size, groups, site)
        return moment

    def send(self, to: int, key: Any, size: float, payload: bytes | None, site: str) -> Moment:
        """Send a message to a stage, after what the current stream has now; return when it has left."""
        return self._message("send", to, key, size, payload, site)

    def receive(self, source: int, key: Any, size: float, site: str) -> Moment:
        """Receive a message of a stage, after what the current stream has now; return when it has come."""
        return self._message("receive", source, key, size, site)

    def synchronize(self, moment: Moment | None = None) -> float:
        """Let the host wait for a moment, or until all streams of the stage are empty; return the time."""
        if moment is None or moment.time is None:
            self._ask(["synchronize", None if moment is None else self._numbers[moment]])
        return self.clock if moment is None else moment.time or 0.0

    def end(self, report: Any) -> None:
        """Say that the program has ended, with what it spent."""
        with contextlib.suppress(ConnectionError):  # the emulation has ended, and says why
            self.connection.send([*self._said, ["end", report]])

    def fail(self, text: str) -> None:
        """Say that the program raised, or asked for what is refused."""
        with contextlib.suppress(ConnectionError):  # the same
            self.connection.send([["fail", text]])

    def _message(self, what: str, stage: int, *given: Any) -> Moment:
        begun, moment = self.record(), Moment()
        self._say_moment(what, moment, self._numbers[begun], stage, *given)
        return moment

    def _say_moment(self, what: str, moment: Moment, *given: Any) -> None:
        number = self._n_moments
        self._n_moments += 1
        self._moments[number], self._numbers[moment] = moment, number
        self._said.append([what, number, *given])

    def _ask(self, question: list[Any]) -> Any:
        try:
            self.connection.send([*self._said, question])
            answer = self.connection.recv()
        except (EOFError, ConnectionError):  # the same; an exception would be taken for one of the program
            os._exit(1)
        self._said, self._growing = [], {}
        if isinstance(answer, bool):
            return answer
        self.clock = answer.clock
        for number, time in answer.reached:
            moment = self._moments.pop(number)
            del self._numbers[moment]
            moment.time = time
            if number in answer.payloads:
                self.payloads[moment] = answer.payloads[number]
        return True
