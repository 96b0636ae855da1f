"""Streams of one emulated GPU: computations, exchanges and events in order, in virtual time.

The host puts work on streams and runs ahead, as with CUDA; virtual time advances when it waits. Computations of several
streams share the GPU equally. Exchanges of one group run one after the other in the order in which they were issued, as
those of one NCCL communicator do; exchanges of different groups share links, max-min.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from commsim.core.errors import InputError

from .network_times import Exchanged, NetworkTimes

NEARLY = 1e-15


class Span(NamedTuple):
    """What a stream did for some time, s."""

    stream: str
    name: str
    start: float
    end: float


@dataclass(slots=True, eq=False)
class Kernel:
    """A computation: seconds that it needs alone, and its name."""

    left: float
    name: str


@dataclass(slots=True, eq=False)
class Moment:
    """A point of a stream: its time once it has been reached, and the exchange that it follows, if any."""

    time: float | None = None
    exchange: Exchange | None = None


@dataclass(slots=True, eq=False)
class Exchange:
    """A collective: what it costs alone, the part that is left, and where the program called it."""

    costs: Exchanged
    operation: str
    size: float
    n_ranks: int
    site: str
    left: float = 1.0
    start: float | None = None
    end: float | None = None
    exposed: float = 0.0


@dataclass(slots=True, eq=False)
class Wait:
    """A stream waits for a moment."""

    moment: Moment


class Stream:
    """A queue of work, in order."""

    _numbers = itertools.count()

    def __init__(self, name: str = "") -> None:
        self.name = name or f"stream {next(self._numbers)}"
        self.queue: deque[Kernel | Exchange | Moment | Wait] = deque()


class VirtualGpu:
    """Clock and streams of one rank; the others are alike.

    Parameters
    ----------
    network : NetworkTimes
        Times of exchanges that overlap.

    Attributes
    ----------
    clock : float, s
        Virtual time up to which everything is known.
    spans : list of Span
        What each stream did.
    computing : float, s
        Time in which at least one computation ran.
    """

    def __init__(self, network: NetworkTimes) -> None:
        self.network = network
        self.clock = 0.0
        self.default = Stream("default")
        self.current = self.default
        self.streams: list[Stream] = [self.default]
        self.spans: list[Span] = []
        self.computing = 0.0
        self.exchanges: list[Exchange] = []
        self._started: dict[int, float] = {}

    def stream(self, name: str = "") -> Stream:
        """Make a stream."""
        made = Stream(name)
        self.streams.append(made)
        return made

    def compute(self, seconds: float, name: str) -> None:
        """Put a computation on the current stream; one after the other are kept as one."""
        queue = self.current.queue
        if seconds <= 0:
            return
        if queue and isinstance(queue[-1], Kernel) and id(queue[-1]) not in self._started:
            queue[-1].left += seconds
        else:
            queue.append(Kernel(seconds, name))

    def record(self, stream: Stream | None = None, exchange: Exchange | None = None) -> Moment:
        """Mark the point that a stream has when all that is on it now is done."""
        moment = Moment(exchange=exchange)
        (stream or self.current).queue.append(moment)
        return moment

    def wait(self, moment: Moment, stream: Stream | None = None) -> None:
        """Let what a stream does from now on wait for a moment."""
        if moment.time is None:
            (stream or self.current).queue.append(Wait(moment))

    def exchange(self, on: Stream, exchange: Exchange) -> Moment:
        """Put an exchange on the stream of its group, after what the current stream has now; return its end."""
        self.wait(self.record(), on)
        on.queue.append(exchange)
        self.exchanges.append(exchange)
        return self.record(on, exchange)

    def synchronize(self, moment: Moment | None = None) -> float:
        """Advance until a moment, or until all streams are empty; return the time.

        Raises
        ------
        InputError
            If a stream waits for what nobody will do.
        """
        if moment is not None:
            self._advance(lambda: moment.time is not None)
            return moment.time or 0.0
        self._advance(lambda: not any(one.queue for one in self.streams))
        return self.clock

    def _advance(self, done: Callable[[], bool]) -> None:
        while True:
            kernels, exchanges = self._ready()
            if done():
                return
            if not kernels and not exchanges:
                names = ", ".join(one.name for one in self.streams if one.queue)
                raise InputError(f"streams wait for events that were never recorded: {names or 'none'}")
            self._run(kernels, exchanges)

    def _ready(self) -> tuple[list[tuple[Stream, Kernel]], list[tuple[Stream, Exchange]]]:
        """Pass all moments that are reached; return what runs now."""
        moved = True
        while moved:
            moved = False
            for stream in self.streams:
                queue = stream.queue
                while queue:
                    head = queue[0]
                    if isinstance(head, Moment):
                        head.time = self.clock
                    elif not (isinstance(head, Wait) and head.moment.time is not None):
                        break
                    queue.popleft()
                    moved = True
        heads = [(one, one.queue[0]) for one in self.streams if one.queue]
        kernels = [(one, head) for one, head in heads if isinstance(head, Kernel)]
        exchanges = [(one, head) for one, head in heads if isinstance(head, Exchange)]
        for _, kernel in kernels:
            self._started.setdefault(id(kernel), self.clock)
        for _, exchange in exchanges:
            exchange.start = self.clock if exchange.start is None else exchange.start
        return kernels, exchanges

    def _run(self, kernels: list[tuple[Stream, Kernel]], exchanges: list[tuple[Stream, Exchange]]) -> None:
        """Let time pass until the first of what runs ends."""
        paces = self.network.paces([exchange.costs for _, exchange in exchanges])
        until = [kernel.left * len(kernels) for _, kernel in kernels]
        until += [exchange.left / pace for (_, exchange), pace in zip(exchanges, paces, strict=True)]
        step = min(until)
        begun, self.clock = self.clock, self.clock + step
        if kernels:
            self.computing += step
        elif exchanges:
            first = min(exchanges, key=lambda one: one[1].start or 0.0)[1]
            first.exposed += self.clock - begun
        for k, (stream, kernel) in enumerate(kernels):
            kernel.left = 0.0 if until[k] <= step else kernel.left - step / len(kernels)
            if kernel.left <= NEARLY:
                stream.queue.popleft()
                self.spans.append(Span(stream.name, kernel.name, self._started.pop(id(kernel)), self.clock))
        for k, (stream, exchange) in enumerate(exchanges, len(kernels)):
            exchange.left = 0.0 if until[k] <= step else exchange.left - step * paces[k - len(kernels)]
            if exchange.left <= NEARLY:
                stream.queue.popleft()
                exchange.end = self.clock
                self.spans.append(Span(stream.name, exchange.operation, exchange.start or 0.0, self.clock))


def site_of_program(skipped: tuple[str, ...], frame: Any) -> str:
    """Name the line of the program that called: the innermost frame that is not in one of these folders."""
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(skipped) and not path.startswith("<"):
            return f"{path.rsplit('/', 1)[-1]}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown"
