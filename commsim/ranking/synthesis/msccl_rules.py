"""One file of MSCCL for each range of sizes: the runtime takes the file whose ``minBytes`` and ``maxBytes`` fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule
from commsim.core.units import format_size
from commsim.formats.msccl.algorithm import Algorithm
from commsim.formats.msccl.from_schedule import algorithm_of
from commsim.formats.msccl.xml import write_msccl
from commsim.prediction.build import prepare
from commsim.ranking.synthesis.made_schedules import TimedSchedule
from commsim.ranking.synthesis.synthesize import MethodRange


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file, and what it holds.

    Parameters
    ----------
    path : Path
        The file.
    low, high : int, bytes
        Sizes that it is for, both included.
    method : str
        Name of the schedule.
    note : str
        What is not as it was chosen; empty where nothing is.
    """

    path: Path
    low: int
    high: int
    method: str
    note: str = ""


def write_rules(operation: str, ranges: Sequence[MethodRange], folder: str | Path) -> list[WrittenFile]:
    """Write a file for each range of sizes, of the fastest schedule that the runtime can hold.

    The runtime repeats an algorithm over the data, piece by piece; so trees of many pieces, which have too many steps,
    are written with one. Channels without a common weight share links equally there.

    Parameters
    ----------
    operation : str
        Operation of all schedules.
    ranges : sequence of MethodRange
        Ranges in ascending order.
    folder : path
        Made where it is missing.

    Raises
    ------
    InputError
        If no schedule of a range fits into what the runtime takes.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    written = []
    for size_range in ranges:
        chosen, candidate, cut = _fitting(size_range)
        path = Path(folder) / f"{operation}_{size_range.low}_{size_range.high}.xml"
        write_msccl(chosen, path)
        sizes, note = f"{format_size(size_range.low)} to {format_size(size_range.high)}", ""
        if candidate is not size_range.candidates[0]:
            times = candidate.time / size_range.candidates[0].time
            note = (
                f"{sizes}: {size_range.method} does not fit MSCCL's runtime; {candidate.method} takes "
                f"{times:.3f} times that"
            )
        elif cut:
            note = f"{sizes}: {size_range.method} in one piece, which the runtime repeats{_once(candidate)}"
        written.append(WrittenFile(path, size_range.low, size_range.high, candidate.method, note))
    return written


def _fitting(size_range: MethodRange) -> tuple[Algorithm, TimedSchedule, bool]:
    """Return the fastest candidate's algorithm that fits, and whether it had to be cut to one piece."""
    refused = ""
    for candidate in size_range.candidates:
        for cut, schedule in _schedules(candidate):
            try:
                algorithm, _ = algorithm_of(schedule, min_bytes=size_range.low, max_bytes=size_range.high + 1)
            except InputError as error:
                refused = refused or str(error)
                continue
            return algorithm, candidate, cut
    raise InputError(
        f"{format_size(size_range.low)} to {format_size(size_range.high)}: nothing fits MSCCL's runtime: {refused}"
    )


def _once(candidate: TimedSchedule) -> str:
    """Say how long the one piece takes where it is imported here, and all data goes through it at once."""
    if candidate.in_pieces is None or candidate.result is None:
        return ""
    plan = candidate.in_pieces(1)
    try:
        once = prepare(plan.schedule, candidate.prepared.network, placement=plan.placement).predict(candidate.size).time
    except InputError:  # too large for the engine
        return ""
    return f"; imported here it runs once, and takes {once / candidate.time:.3f} times as long"


def _schedules(candidate: TimedSchedule) -> Iterator[tuple[bool, Schedule]]:
    # what is far too long is not expanded to see that it does not fit
    if candidate.prepared.schedule.n_transfers <= 100_000:
        yield False, candidate.prepared.schedule
    if candidate.in_pieces is not None and candidate.pieces > 1:
        yield True, candidate.in_pieces(1).schedule
