"""Streams of emulated GPUs in virtual time: computations of one GPU share it, exchanges share links.

Hosts put work on streams and run ahead, as with CUDA; time advances when all hosts wait. Computations of several
streams of a GPU share it equally. Exchanges of one group follow each other in the order in which they were issued,
as those of one NCCL communicator do; exchanges of different groups share links.
"""

from __future__ import annotations

from collections.abc import Callable

from commsim.emulation.failures import ProgramError

from .network_times import NetworkTimes
from .queued_work import Moment, QueuedCollective, QueuedKernel, QueuedMessage, Span, StreamWait, Until, WorkQueue

NEARLY = 1e-15
__all__ = ["StageTimeline"]


class StageTimeline:
    """Clock and streams of some GPUs, each of which may stand for many that are alike.

    Parameters
    ----------
    network : NetworkTimes
        Times of exchanges that overlap.
    n_gpus : int
        Number of GPUs.

    Attributes
    ----------
    clock : float, s
        Virtual time up to which everything is known.
    spans : list of Span
        What each stream did.
    computing : list of float, s
        Time in which at least one computation ran, of each GPU.
    exchanges : list of QueuedCollective
        All exchanges in the order in which they were asked for.
    """

    def __init__(self, network: NetworkTimes, n_gpus: int = 1) -> None:
        self.network = network
        self.clock = 0.0
        self.streams: list[WorkQueue] = []
        self.spans: list[Span] = []
        self.computing = [0.0] * n_gpus
        self.exchanges: list[QueuedCollective] = []
        self._started: dict[int, float] = {}
        self._messages: list[QueuedMessage] = []  # under way, in the order in which they began

    def stream(self, name: str = "", gpu: int = 0) -> WorkQueue:
        """Make a stream of a GPU."""
        stream = WorkQueue(name, gpu)
        self.streams.append(stream)
        return stream

    def compute(self, stream: WorkQueue, seconds: float, name: str) -> None:
        """Put a computation on a stream; one after the other are kept as one."""
        queue = stream.queue
        if seconds <= 0:
            return
        if queue and isinstance(queue[-1], QueuedKernel) and id(queue[-1]) not in self._started:
            queue[-1].left += seconds
        else:
            queue.append(QueuedKernel(seconds, name))

    def record(self, stream: WorkQueue, moment: Moment) -> Moment:
        """Let a moment be the point that a stream has when all that is on it now is done."""
        stream.queue.append(moment)
        return moment

    def wait(self, moment: Moment, stream: WorkQueue) -> None:
        """Let what a stream does from now on wait for a moment."""
        if moment.time is None:
            stream.queue.append(StreamWait(moment))

    def advance(self, done: Callable[[], bool]) -> None:
        """Let time pass until something is done.

        Raises
        ------
        ProgramError
            If streams wait for what nobody will do.
        """
        while True:
            kernels, exchanges = self._ready()
            if done():
                return
            until = [stream.queue[0].time for stream in self.streams if stream.queue and _is_until(stream.queue[0])]
            if not kernels and not exchanges and not until:
                raise ProgramError(self._stuck())
            self._run(kernels, exchanges, until)

    def is_idle(self, gpu: int = 0) -> bool:
        """Whether nothing is left on the streams of a GPU."""
        return not any(stream.queue for stream in self.streams if stream.gpu == gpu)

    def _ready(self) -> tuple[list[tuple[WorkQueue, QueuedKernel]], list[QueuedCollective]]:
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
                    elif isinstance(head, QueuedMessage) and head.end is not None:  # received after it has arrived
                        queue[0] = Until(head.end + head.delay)
                        continue
                    elif not (
                        (isinstance(head, StreamWait) and head.moment.time is not None)
                        or (isinstance(head, Until) and head.time <= self.clock)
                    ):
                        break
                    queue.popleft()
                    moved = True
        heads = [(stream, stream.queue[0]) for stream in self.streams if stream.queue]
        kernels = [(stream, head) for stream, head in heads if isinstance(head, QueuedKernel)]
        for _, kernel in kernels:
            self._started.setdefault(id(kernel), self.clock)
        return kernels, self._running([(stream, head) for stream, head in heads if isinstance(head, QueuedCollective)])

    def _running(self, heads: list[tuple[WorkQueue, QueuedCollective]]) -> list[QueuedCollective]:
        """Return the exchanges that all who take part have reached; of messages between two GPUs, the first."""
        n_there: dict[QueuedCollective, int] = {}
        sends = set()
        for stream, exchange in heads:
            n_there[exchange] = n_there.get(exchange, 0) + 1
            if isinstance(exchange, QueuedMessage) and exchange.ends[0] == stream.gpu:
                sends.add(exchange)
        begun = []
        for exchange, n in n_there.items():
            if isinstance(exchange, QueuedMessage):
                if exchange.start is None and exchange in sends and (n == exchange.n_gpus or exchange.is_eager):
                    exchange.start = self.clock
                    self._messages.append(exchange)
            elif n == exchange.n_gpus:
                exchange.start = self.clock if exchange.start is None else exchange.start
                begun.append(exchange)
        taken = set[tuple[int, int]]()
        for message in self._messages:
            if message.ends not in taken:
                taken.add(message.ends)
                begun.append(message)
        return begun

    def _run(
        self, kernels: list[tuple[WorkQueue, QueuedKernel]], exchanges: list[QueuedCollective], until: list[float]
    ) -> None:
        """Let time pass until the first of what runs ends."""
        paces = self.network.paces([exchange.costs for exchange in exchanges])
        n_on = [0] * len(self.computing)
        for stream, _ in kernels:
            n_on[stream.gpu] += 1
        ends = [kernel.left * n_on[stream.gpu] for stream, kernel in kernels]
        ends += [exchange.left / pace for exchange, pace in zip(exchanges, paces, strict=True)]
        waiting = min(until, default=float("inf"))
        step = min([*ends, waiting - self.clock])
        begun, self.clock = self.clock, waiting if step == waiting - self.clock else self.clock + step
        self._count(exchanges, n_on, step)
        for k, (stream, kernel) in enumerate(kernels):
            kernel.left = 0.0 if ends[k] <= step else kernel.left - step / n_on[stream.gpu]
            if kernel.left <= NEARLY:
                stream.queue.popleft()
                started = self._started.pop(id(kernel), begun)
                self.spans.append(Span(stream.name, kernel.name, started, self.clock, stream.gpu))
        over = set()
        for k, exchange in enumerate(exchanges, len(kernels)):
            exchange.left = 0.0 if ends[k] <= step else exchange.left - step * paces[k - len(kernels)]
            if exchange.left <= NEARLY:
                exchange.end = self.clock
                over.add(exchange)
        if over:
            self._end(over)

    def _end(self, over: set[QueuedCollective]) -> None:
        """Take exchanges that have ended from the streams; a receiver waits until its message has arrived."""
        self._messages = [message for message in self._messages if message not in over]
        for stream in self.streams:
            head = stream.queue[0] if stream.queue else None
            if isinstance(head, QueuedCollective) and head in over:
                if isinstance(head, QueuedMessage) and head.ends[0] != stream.gpu:
                    stream.queue[0] = Until(self.clock + head.delay)
                else:
                    stream.queue.popleft()
                self.spans.append(Span(stream.name, head.operation, head.start or 0.0, self.clock, stream.gpu))

    def _count(self, exchanges: list[QueuedCollective], n_on: list[int], step: float) -> None:
        """Count computation, and what no computation hides, of the exchange that began first."""
        for gpu, n in enumerate(n_on):
            if n:
                self.computing[gpu] += step
        if exchanges and not all(n_on):
            first = min(exchanges, key=lambda one: one.start or 0.0)
            first.exposed += step * n_on.count(0) / len(n_on)

    def _stuck(self) -> str:
        waiting = [stream for stream in self.streams if stream.queue and isinstance(stream.queue[0], QueuedCollective)]
        if not waiting:
            names = ", ".join(stream.name for stream in self.streams if stream.queue)
            return f"streams wait for events that were never recorded: {names or 'none'}"
        lines = [f"stage {stream.gpu}: {stream.queue[0].operation} ({stream.queue[0].site})" for stream in waiting[:8]]
        return f"deadlock: nothing is under way, and all stages wait; {'; '.join(lines)}"


def _is_until(work: object) -> bool:
    return isinstance(work, Until)
