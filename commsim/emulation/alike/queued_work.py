"""What may stand on a stream of an emulated GPU: computations, exchanges, moments and waits, in order."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

from .network_times import ExchangeCosts

__all__ = ["Moment", "QueuedCollective", "QueuedKernel", "QueuedMessage", "Span", "StreamWait", "Until", "WorkQueue"]


class Span(NamedTuple):
    """What a stream of a GPU did for some time, s."""

    stream: str
    name: str
    start: float
    end: float
    gpu: int = 0


@dataclass(slots=True, eq=False)
class QueuedKernel:
    """A computation: seconds that it needs alone, and its name."""

    left: float
    name: str


@dataclass(slots=True, eq=False)
class Moment:
    """A point of a stream: its time once it has been reached, and the exchange that it follows, if any."""

    time: float | None = None
    exchange: QueuedCollective | None = None


@dataclass(slots=True, eq=False)
class QueuedCollective:
    """A collective: what it costs alone, the part that is left, and where the program called it.

    It runs when it is the first work on the streams of all `n_gpus` that take part. `groups` has the ranks of all
    groups that do the same at that time; of a message, the pairs.
    """

    costs: ExchangeCosts
    operation: str
    size: float
    groups: tuple[tuple[int, ...], ...]
    site: str
    left: float = 1.0
    start: float | None = None
    end: float | None = None
    exposed: float = 0.0
    n_gpus: int = 1

    @property
    def n_ranks(self) -> int:
        """Ranks of a group."""
        return len(self.groups[0])

    @property
    def delay(self) -> float:
        """Time from its end until a receiver has it, s."""
        return 0.0


@dataclass(slots=True, eq=False)
class QueuedMessage(QueuedCollective):
    """A message from one GPU to another: it stands on a stream of the sender, and on one of the receiver.

    Parameters
    ----------
    ends : (int, int)
        Numbers of the two GPUs; messages between the same ones follow each other.
    is_eager : bool
        Whether it is sent before its receive is posted.
    payload : bytes, optional
        Values of a tensor that has some.
    """

    ends: tuple[int, int] = (0, 0)
    is_eager: bool = False
    payload: bytes | None = None

    @property
    def delay(self) -> float:
        """Time from when it has left until it has arrived, s."""
        return self.costs.delay


@dataclass(slots=True, eq=False)
class Until:
    """A stream does nothing until a time, s."""

    time: float


@dataclass(slots=True, eq=False)
class StreamWait:
    """A stream waits for a moment."""

    moment: Moment


class WorkQueue:
    """A queue of work of one GPU, in order."""

    _numbers = itertools.count()

    def __init__(self, name: str = "", gpu: int = 0) -> None:
        self.name = name or f"stream {next(self._numbers)}"
        self.gpu = gpu
        self.queue: deque[Any] = deque()
