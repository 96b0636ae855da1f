"""The GPU of a rank that runs in this process, and stands for all."""

from __future__ import annotations

from .network_times import Group, NetworkTimes
from .queued_work import Moment, QueuedCollective, Span, WorkQueue
from .stage_timeline import StageTimeline

__all__ = ["VirtualGpu"]


class VirtualGpu:
    """Streams of one rank; the others are alike.

    Parameters
    ----------
    network : NetworkTimes
        Times of exchanges that overlap.
    """

    def __init__(self, network: NetworkTimes) -> None:
        self.network, self.timeline = network, StageTimeline(network)
        self.default = self.timeline.stream("default")
        self.current = self.default

    @property
    def clock(self) -> float:
        """Virtual time of the host, s."""
        return self.timeline.clock

    @property
    def computing(self) -> float:
        """Time in which at least one computation ran, s."""
        return self.timeline.computing[0]

    @property
    def exchanges(self) -> list[QueuedCollective]:
        """All exchanges in the order of their calls."""
        return self.timeline.exchanges

    @property
    def spans(self) -> list[Span]:
        """What each stream did."""
        return self.timeline.spans

    def stream(self, name: str = "") -> WorkQueue:
        """Make a stream."""
        return self.timeline.stream(name)

    def compute(self, seconds: float, name: str) -> None:
        """Put a computation on the current stream."""
        self.timeline.compute(self.current, seconds, name)

    def record(self, stream: WorkQueue | None = None, exchange: QueuedCollective | None = None) -> Moment:
        """Mark the point that a stream has when all that is on it now is done."""
        return self.timeline.record(stream or self.current, Moment(exchange=exchange))

    def wait(self, moment: Moment, stream: WorkQueue | None = None) -> None:
        """Let what a stream does from now on wait for a moment."""
        self.timeline.wait(moment, stream or self.current)

    def is_idle(self, stream: WorkQueue) -> bool:
        """Whether a stream is empty."""
        return not stream.queue

    def collective(self, on: WorkQueue, operation: str, size: float, groups: tuple[Group, ...], site: str) -> Moment:
        """Put a collective of groups that are alike on the stream of the caller's; return its end."""
        costs = self.network.of(operation, size, groups)
        return self.exchange(on, QueuedCollective(costs, operation, size, groups, site))

    def exchange(self, on: WorkQueue, exchange: QueuedCollective) -> Moment:
        """Put an exchange on the stream of its group, after what the current stream has now; return its end."""
        self.wait(self.record(), on)
        on.queue.append(exchange)
        self.exchanges.append(exchange)
        return self.record(on, exchange)

    def synchronize(self, moment: Moment | None = None) -> float:
        """Advance until a moment, or until all streams are empty; return the time.

        Raises
        ------
        ProgramError
            If a stream waits for what nobody will do.
        """
        if moment is not None:
            self.timeline.advance(lambda: moment.time is not None)
            return moment.time or 0.0
        self.timeline.advance(self.timeline.is_idle)
        return self.clock
