"""What of a log is held against predictions: one run of several in a file; rows that were lost on the way are said."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from commsim.core.remark import Remark, as_remarks
from commsim.core.units import count_text
from commsim.formats.log_health import LogHealth
from commsim.formats.measured import read_measured
from commsim.formats.measurement import Measurement
from commsim.nccl.error_model import SEVERAL
from commsim.real.comparison.pairs import one_per_size

CODE, RUNS = "rows-left-out", "runs"
_NAMES = ("out of place", "in place")


class LogRows(NamedTuple):
    """One row of each size of a log, and what is known of the runs that they are from.

    Parameters
    ----------
    rows : tuple of Measurement
        Rows, of several runs of an operation those of the slowest.
    every : tuple of Measurement
        All rows of the file.
    notes : list of Remark
        What was left out.
    faults : tuple of str
        Why the run did not go well.
    n_runs : int
        Runs of the same sizes in the file.
    """

    rows: tuple[Measurement, ...]
    every: tuple[Measurement, ...]
    notes: list[Remark]
    faults: tuple[str, ...]
    n_runs: int

    def named(self, path: str) -> LogRows:
        """Return the same with the file's name in what is said, where it stands beside another file.

        Which of several runs is judged stands in the title of the two (:func:`which_run`), which has the names.
        """
        notes = [
            note if note.text.startswith(path) else replace(note, text=f"{Path(path).name}: {note.text}")
            for note in self.notes if note.code != RUNS
        ]  # fmt: skip
        return self._replace(notes=notes, faults=tuple(f"{path}: {fault}" for fault in self.faults))


def read_log_rows(path: str, operation: str | None, n_ranks: int | None, *, in_place: bool = False) -> LogRows:
    """Read one row of each size of a log: of several runs the slowest.

    Parameters
    ----------
    path : str
        File of measurements.
    operation, n_ranks
        Same as in :func:`commsim.formats.measured.read_measured`.
    in_place : bool
        Whether the times in place are taken. Default: those out of place.

    Raises
    ------
    InputError
        If it cannot be read, or has no such times.
    """
    lines, health = list[str](), LogHealth()
    every = read_measured(path, operation=operation or "", n_ranks=n_ranks, notes=lines, health=health)
    runs = runs_by_operation(every, health, in_place=in_place)
    n_runs = max(map(len, runs.values()), default=1)
    rows = one_per_size(every, True if in_place else None)
    if n_runs > 1:
        rows = tuple(row for own in runs.values() for row in slowest_run(own))
    notes = [*said_of_runs(n_runs), *lost_rows(every, health, in_place=in_place), *as_remarks(lines, "read")]
    return LogRows(rows, every, notes, health.faults, n_runs)


def runs_by_operation(
    every: Sequence[Measurement], health: LogHealth, *, in_place: bool = False
) -> dict[str, list[tuple[Measurement, ...]]]:
    """Return the runs of each operation in a file, one row of each size.

    Tables of the same sizes are runs of their own, and within one so is what follows where sizes begin anew (``-N``).
    Tables of other sizes are parts of one run. Of files that have no tables, all rows of an operation are one run.

    Parameters
    ----------
    every : sequence of Measurement
        Rows of the file, in its order.
    health : LogHealth
        Where its tables are.
    in_place : bool
        Whether the times in place are taken. Default: those out of place, if there are any.

    Raises
    ------
    InputError
        If that half is not there.
    """
    half = one_per_size(every, True if in_place else None)[0].in_place
    found: dict[str, list[list[Measurement]]] = {}
    for part in _parts([row for row in every if row.in_place == half], health.tables):
        runs = found.setdefault(part[0].operation, [[]])
        known, own = (set(map(_key, rows)) for rows in (runs[-1], part))
        if known & own:
            runs.append([])
        runs[-1] += part
    return {
        name: kept
        for name in sorted(found)
        if (kept := [rows for run in found[name] if (rows := _timed(one_per_size(run, half)))])
    }


def _parts(rows: Sequence[Measurement], tables: Sequence[int]) -> list[list[Measurement]]:
    """Return the rows of each operation and table, and of each time that its sizes begin anew."""
    parts: list[list[Measurement]] = []
    table, before = -1, None
    for row in rows:
        now = bisect(tables, row.line)
        if before is None or now != table or row.operation != before.operation or (now and row.size < before.size):
            parts.append([])
        parts[-1].append(row)
        table, before = now, row
    return parts


def _key(row: Measurement) -> tuple[float, int | None, str]:
    return row.size, row.n_ranks, row.algorithm


def _timed(rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    return tuple(row for row in rows if row.size > 0 and row.time > 0)


def slowest_run(runs: Sequence[tuple[Measurement, ...]]) -> tuple[Measurement, ...]:
    """Return the run whose large sizes are the furthest behind the fastest of them."""
    best: dict[float, float] = {}
    for row in (row for run in runs for row in run):
        best[row.size] = min(row.time, best.get(row.size, row.time))
    return min(runs, key=lambda run: least_middle({row.size: best[row.size] / row.time for row in run}))


def least_middle(ratios: Mapping[float, float]) -> float:
    """Return the least middle of the values of the largest sizes: of three, of four, and so on up to all.

    Of two sizes it is the lesser of the larger one's value and their middle, so that a second size is never milder.

    Parameters
    ----------
    ratios : mapping of float to float
        Value of each size.
    """
    falling = [ratios[size] for size in sorted(ratios, reverse=True)]
    fewest = SEVERAL if len(falling) >= SEVERAL else 1
    return min(median(falling[:n]) for n in range(fewest, len(falling) + 1))


def said_of_runs(n_runs: int) -> list[Remark]:
    """Say which of several runs is judged; nothing of one."""
    if n_runs < 2:
        return []
    which = "slower" if n_runs == 2 else "slowest"
    return [Remark(RUNS, f"{n_runs} runs in the file: the {which} is judged", needed=True)]


def which_run(n_runs: int) -> str:
    """Return which of several runs stands in a table, to follow the name of the file; nothing of one."""
    return f" ({'slower' if n_runs == 2 else 'slowest'} of {n_runs} runs)" if n_runs > 1 else ""


def lost_rows(every: Sequence[Measurement], health: LogHealth, *, in_place: bool = False) -> list[Remark]:
    """Say which rows of a log have no time in the half that is taken, and that the other half is taken unasked.

    Parameters
    ----------
    every : sequence of Measurement
        Rows of the log.
    health : LogHealth
        What its reader dropped.
    in_place : bool
        Whether the times in place were asked for.
    """
    switched = not in_place and all(row.in_place for row in every)
    half = in_place or switched
    kept = {row.line for row in every if row.in_place == half and (row.time > 0 or not row.size)}
    lost = {*health.dropped, *(row.line for row in every)} - kept - {*health.wrong}
    found = []
    if switched:
        found.append("no row has a time out of place: the times in place are taken")
    if lost:
        rows = count_text(len(lost), "row")
        found.append(f"left out: {rows} without a time {_NAMES[half]}, the first in {health.place} {min(lost)}")
    return [Remark(CODE, text, needed=True) for text in found]
