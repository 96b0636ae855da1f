"""What a running job's communicators reach: the last calls of each operation and size, and which ranks come late.

The time of a call on one rank has the waiting for the others in it. The rank that comes last waits least: its time is
the shortest, and that of the call. So of each call the shortest time of all ranks counts, and the rank that has it is
late; a rank that is late far more often than its share holds the others up.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from .live_records import LiveRecord

# Calls whose median is taken, and calls that may wait for more ranks when all new records are read.
N_LAST, MAX_OPEN = 64, 256
# Operations and sizes that one job may have: a program that never repeats itself must not fill the memory.
MAX_SERIES = 20_000
# Times of a call whose longest is at most this part longer than its shortest say nothing of who was late.
LATE = 1.05
__all__ = ["CommunicatorSeries", "Communicators", "Shape"]


class Shape(NamedTuple):
    """Where a communicator is: its ranks, and machines; 0 machines where that is not recorded."""

    n_ranks: int
    n_nodes: int


class SeriesKey(NamedTuple):
    """A communicator, an operation and a power of two: sizes from it up to the next one are one series."""

    communicator: str
    operation: str
    exponent: int


@dataclass(slots=True)
class CommunicatorSeries:
    """The last calls of one communicator, operation and size.

    Parameters
    ----------
    shape : Shape
        Where the communicator is.
    name : str
        What the program calls it.
    last : deque of (float, float), bytes and s
        Sizes and times of the last calls.
    late : Counter of int
        How often each rank was late.
    n_calls : int
        Calls in all.
    """

    shape: Shape
    name: str
    last: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=N_LAST))
    late: Counter[int] = field(default_factory=Counter)
    n_calls: int = 0

    def typical(self) -> tuple[float, float]:
        """Return the size in bytes and the time in s of the call in the middle of the last ones, by its rate."""
        rates = [size / seconds for size, seconds in self.last]
        size = median(size for size, _ in self.last)
        return size, size / median(rates)

    def latest_rank(self) -> tuple[int, float] | None:
        """Return the rank that is late most often, and in which part of the calls; None where none stands out."""
        if not self.late:
            return None
        rank, n_late = self.late.most_common(1)[0]
        share = n_late / self.n_calls
        usual = 1 / max(self.shape.n_ranks, 2)
        error = math.sqrt(usual * (1 - usual) / self.n_calls)
        return (rank, share) if share > max(usual + 4 * error, 0.5) else None


class _OpenCall:
    """A call of which not all ranks are known yet."""

    __slots__ = ("first_rank", "longest", "n_ranks", "shortest", "size")

    def __init__(self) -> None:
        self.shortest, self.longest, self.first_rank, self.n_ranks, self.size = math.inf, 0.0, -1, 0, 0.0

    def add(self, record: LiveRecord) -> None:
        """Add the time of one rank."""
        self.n_ranks += 1
        self.size = record.size
        self.longest = max(self.longest, record.seconds)
        if record.seconds < self.shortest:
            self.shortest, self.first_rank = record.seconds, record.rank


class Communicators:
    """The communicators of a job, with what their last calls took.

    Attributes
    ----------
    series : dict of SeriesKey to CommunicatorSeries
        Calls by communicator, operation and size.
    hosts : dict of (str, int) to (str, str)
        Host and process of each rank of a communicator.
    n_records, n_dropped : int
        Records that were added, and those for which there was no room.
    """

    def __init__(self) -> None:
        self.series: dict[SeriesKey, CommunicatorSeries] = {}
        self.hosts: dict[tuple[str, int], tuple[str, str]] = {}
        self.n_records = self.n_dropped = 0
        self._open: dict[SeriesKey, OrderedDict[int, _OpenCall]] = {}

    def add(self, records: Iterable[LiveRecord]) -> None:
        """Add records, in the order in which they were written.

        Parameters
        ----------
        records : iterable of LiveRecord
            Calls of any rank.
        """
        for record in records:
            self.n_records += 1
            if record.seconds <= 0 or record.size <= 0 or record.n_ranks < 2:
                continue
            key = SeriesKey(record.communicator, record.operation, math.frexp(record.size)[1] - 1)
            series = self.series.get(key)
            if series is None:
                if len(self.series) >= MAX_SERIES:
                    self.n_dropped += 1
                    continue
                shape = Shape(record.n_ranks, record.n_nodes)
                series = self.series[key] = CommunicatorSeries(shape, record.name)
                self._open[key] = OrderedDict()
            self.hosts[record.communicator, record.rank] = record.host, record.process
            self._add_call(key, series, record)

    def _add_call(self, key: SeriesKey, series: CommunicatorSeries, record: LiveRecord) -> None:
        calls = self._open[key]
        number = record.sequence if record.sequence is not None else -1 - series.n_calls
        call = calls.get(number)
        if call is None:
            call = calls[number] = _OpenCall()
        call.add(record)
        if call.n_ranks >= record.n_ranks or record.sequence is None:
            _close(series, calls.pop(number))

    def settle(self, most: int = MAX_OPEN) -> None:
        """Take calls that still wait for ranks as they are, the oldest first: no record of these ranks may come.

        Parameters
        ----------
        most : int
            Calls of a series that may wait on; 0 at the end of all records.
        """
        for key, calls in self._open.items():
            while len(calls) > most:
                _close(self.series[key], calls.popitem(last=False)[1])


def _close(series: CommunicatorSeries, call: _OpenCall) -> None:
    series.n_calls += 1
    series.last.append((call.size, call.shortest))
    if call.n_ranks > 1 and call.longest > LATE * call.shortest:
        series.late[call.first_rank] += 1
