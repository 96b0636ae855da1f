"""A running job held against what it should reach: each communicator's verdict, late ranks, and slow rails."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from commsim.core.errors import InputError
from commsim.core.operations import operation as known_operation

from .check_log import verdict_of
from .communicators import Communicators, CommunicatorSeries, SeriesKey
from .followed_files import FollowedFiles
from .live_expectations import LiveExpectations

UNKNOWN = "unknown"
__all__ = ["UNKNOWN", "SlowRail", "WatchedJob", "WatchedSeries"]


class WatchedSeries(NamedTuple):
    """One communicator, operation and size beside what it should reach.

    Parameters
    ----------
    communicator, name : str
        Hash or name of the communicator, and what the program calls it.
    n_ranks, n_nodes : int
        Ranks, and machines; 0 where that is not recorded.
    operation : str
        Name of the operation.
    size : float, bytes
        Median size of the last calls.
    n_calls : int
        Calls in all.
    expected, floor, measured : float, bytes/s
        Bus bandwidths; the first two are 0 where nothing is known.
    verdict : str
        ``below`` the floor, ``slow``, ``normal``, ``fast``, or ``unknown``.
    late_rank : int
        Rank that the others wait for; -1 where none stands out.
    late_host : str
        Its host.
    late_share : float
        Part of the calls in which it was late.
    why : str
        Why nothing is known.
    """

    communicator: str
    name: str
    n_ranks: int
    n_nodes: int
    operation: str
    size: float
    n_calls: int
    expected: float
    floor: float
    measured: float
    verdict: str
    late_rank: int = -1
    late_host: str = ""
    late_share: float = 0.0
    why: str = ""

    @property
    def ratio(self) -> float:
        """Measured over expected bus bandwidth; 0 where nothing is known."""
        return self.measured / self.expected if self.expected else 0.0

    def row(self) -> dict[str, Any]:
        """Return the row of the JSON and the CSV: SI units."""
        return {
            "communicator": self.communicator, "name": self.name, "n_ranks": self.n_ranks, "n_nodes": self.n_nodes,
            "operation": self.operation, "size_B": self.size, "n_calls": self.n_calls,
            "expected_busbw_Bps": self.expected, "floor_busbw_Bps": self.floor, "measured_busbw_Bps": self.measured,
            "ratio": self.ratio, "verdict": self.verdict, "late_rank": self.late_rank, "late_host": self.late_host,
            "late_share": self.late_share, "why": self.why,
        }  # fmt: skip


class SlowRail(NamedTuple):
    """Communicators whose ranks are all on one rail.

    Parameters
    ----------
    rail : int
        Place of their GPUs in their machines.
    n_series : int
        Communicators, operations and sizes.
    ratio : float
        Median of measured over expected bus bandwidth.
    """

    rail: int
    n_series: int
    ratio: float


@dataclass(slots=True)
class WatchedJob:
    """What is known of a running job.

    Parameters
    ----------
    files : FollowedFiles
        Where its records come from.
    expectations : LiveExpectations
        What its communicators should reach.
    communicators : Communicators
        What they take.
    """

    files: FollowedFiles
    expectations: LiveExpectations
    communicators: Communicators

    @classmethod
    def of_path(cls, path: str | Path, expectations: LiveExpectations) -> WatchedJob:
        """Return a job whose records are in a file or a folder.

        Raises
        ------
        InputError
            If there is none.
        """
        return cls(FollowedFiles(path), expectations, Communicators())

    def read(self, *, is_end: bool = False) -> int:
        """Read all new records, and return how many there were.

        Parameters
        ----------
        is_end : bool
            Whether no more will come, so that calls of which ranks are missing are taken as they are.
        """
        before = self.communicators.n_records
        while True:
            n = self.communicators.n_records
            self.communicators.add(self.files.new_records())
            self.communicators.settle()
            if self.communicators.n_records == n:
                break
        if is_end:
            self.communicators.settle(0)
        return self.communicators.n_records - before

    def rows(self) -> list[WatchedSeries]:
        """Return the communicators, those that are farthest below what they should reach first."""
        found = [self._row(key, series) for key, series in self.communicators.series.items() if series.last]
        return sorted(found, key=lambda row: (row.verdict == UNKNOWN, row.ratio))

    def _row(self, key: SeriesKey, series: CommunicatorSeries) -> WatchedSeries:
        size, seconds = series.typical()
        n_ranks, n_nodes = series.shape
        measured = known_operation(key.operation).busbw_factor(n_ranks) * size / seconds
        expected = self.expectations.of(series.shape, key.operation, size)
        late = series.latest_rank()
        host = self.communicators.hosts.get((key.communicator, late[0]), ("", ""))[0] if late else ""
        rank, share = late or (-1, 0.0)
        about = key.communicator, series.name, n_ranks, n_nodes, key.operation, size, series.n_calls
        if isinstance(expected, str):
            return WatchedSeries(*about, 0.0, 0.0, measured, UNKNOWN, rank, host, share, expected)
        verdict = verdict_of(measured, expected)
        return WatchedSeries(*about, expected.busbw, expected.floor, measured, verdict, rank, host, share)

    def rails(self, rows: list[WatchedSeries]) -> list[SlowRail]:
        """Return the rails of communicators that have one GPU of each machine, the slowest first.

        The place of a GPU in its machine is known where a communicator has all GPUs of its machines.

        Parameters
        ----------
        rows : list of WatchedSeries
            What :meth:`rows` returned.
        """
        places, ratios = self._places(), defaultdict[int, list[float]](list)
        for row in rows:
            rail = self._rail_of(row, places)
            if rail is not None and row.verdict != UNKNOWN:
                ratios[rail].append(row.ratio)
        return sorted(
            (SlowRail(rail, len(own), median(own)) for rail, own in ratios.items()), key=lambda one: one.ratio
        )

    def _places(self) -> Mapping[tuple[str, str], int]:
        """Return the place of each process in its machine, by host and process."""
        per_machine, found = self.expectations.per_machine, dict[tuple[str, str], int]()
        shapes = {key.communicator: series.shape for key, series in self.communicators.series.items()}
        for (communicator, rank), process in self.communicators.hosts.items():
            shape = shapes.get(communicator)
            if shape and shape.n_nodes and shape.n_ranks == shape.n_nodes * per_machine:
                found[process] = rank % per_machine
        return found

    def _rail_of(self, row: WatchedSeries, places: Mapping[tuple[str, str], int]) -> int | None:
        if row.n_nodes < 2 or row.n_ranks != row.n_nodes:
            return None
        own = {places.get(process) for process in self._processes(row.communicator)}
        return own.pop() if len(own) == 1 else None

    def _processes(self, communicator: str) -> Iterator[tuple[str, str]]:
        return (process for (name, _), process in self.communicators.hosts.items() if name == communicator)

    def require_records(self) -> None:
        """Refuse a job without records.

        Raises
        ------
        InputError
            If there is none of a collective.
        """
        if not self.communicators.series:
            left_out = f" ({self.files.n_left_out} lines or files of another kind)" if self.files.n_left_out else ""
            raise InputError(
                f"{self.files.path}: no records of collectives by NCCL's inspector or the flight recorder{left_out}"
            )
