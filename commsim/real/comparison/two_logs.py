"""Two measured tables side by side, A and B, with the prediction where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import microseconds
from commsim.formats.measurement import Measurement
from commsim.real.comparison.pairs import SAME_SIZE
from commsim.real.comparison.runs_of_log import read_log_rows, which_run
from commsim.report.answer import Table

COLUMNS = ("operation", "size(B)", "measured A(us)", "measured B(us)", "B/A", "busbw A(GB/s)", "busbw B(GB/s)")
LEAST = ("operation", "busbw A(GB/s)")


@dataclass(frozen=True, slots=True)
class LogPair:
    """One size of two measured tables.

    Parameters
    ----------
    a, b : Measurement or None
        Rows; None where a table has none of the size.
    predicted : float or None, s
        What the model says.
    """

    a: Measurement | None
    b: Measurement | None
    predicted: float | None = None

    @property
    def any(self) -> Measurement:
        """The row that is there."""
        one = self.b or self.a
        assert one is not None
        return one

    @property
    def ratio(self) -> float | None:
        """Time of B over that of A."""
        return self.b.time / self.a.time if self.a and self.b and self.a.time else None

    def row(self) -> dict[str, Any]:
        """Return the row of the JSON."""
        a, b, one = self.a, self.b, self.any
        return {
            "operation": one.operation, "size_B": one.size, "n_ranks": one.n_ranks, "a_s": a and a.time,
            "b_s": b and b.time, "time_ratio": self.ratio, "a_busbw_Bps": a and a.busbw,
            "b_busbw_Bps": b and b.busbw, "predicted_s": self.predicted,
        }  # fmt: skip


def is_prediction(rows: Sequence[Measurement]) -> bool:
    """Whether rows are of our own collectives, which no other tool names so."""
    return all(row.algorithm.partition(":")[0] in COLLECTIVES for row in rows)


@dataclass(frozen=True, slots=True)
class TwoLogs:
    """Two measured tables.

    Parameters
    ----------
    pairs : tuple of LogPair
        Rows of a size side by side.
    notes : tuple of Remark
        What was left out of each, and which of several runs is taken.
    faults : tuple of str
        Why a run did not go well, with the name of its file.
    title : str
        Names of the files, and which of their runs are taken.
    """

    pairs: tuple[LogPair, ...]
    notes: tuple[Remark, ...] = ()
    faults: tuple[str, ...] = ()
    title: str = ""


def two_logs(a: str, b: str, operation: str | None, n_ranks: int | None, *, in_place: bool = False) -> TwoLogs:
    """Read two logs, of each the slowest run, and put the rows of a size side by side.

    Parameters
    ----------
    a, b : str
        Files.
    operation, n_ranks
        Same as in :func:`commsim.real.comparison.comparison.compare`.
    in_place : bool
        Whether the times in place count.

    Raises
    ------
    InputError
        If a file cannot be read, or the two have no size in common.
    """
    logs = [read_log_rows(path, operation, n_ranks, in_place=in_place).named(path) for path in (a, b)]
    of_a, of_b = (log.rows for log in logs)
    pairs = beside(of_a, of_b)
    if not any(pair.a and pair.b for pair in pairs):
        ours, theirs = (", ".join(sorted({row.operation for row in rows})) for rows in (of_a, of_b))
        what = (
            f"{a} has {ours}, {b} has {theirs}" if ours != theirs else f"{a} and {b} have no ranks and size in common"
        )
        raise InputError(f"nothing to compare: {what}")
    notes = tuple(note for log in logs for note in log.notes)
    title = title_of_logs(a, b, *(log.n_runs for log in logs))
    return TwoLogs(tuple(pairs), notes, tuple(fault for log in logs for fault in log.faults), title)


def title_of_logs(a: str, b: str, runs_of_a: int = 1, runs_of_b: int = 1, *, is_healthy: bool = False) -> str:
    """Return the title of two measured tables: their names, and which of several runs each holds.

    Parameters
    ----------
    a, b : str
        Files.
    runs_of_a, runs_of_b : int
        Runs in each.
    is_healthy : bool
        Whether A is taken for healthy.
    """
    return f"A{' (healthy)' * is_healthy}: {a}{which_run(runs_of_a)}, B: {b}{which_run(runs_of_b)}"


def beside(
    a: Sequence[Measurement], b: Sequence[Measurement], predicted: Mapping[float, float] | None = None
) -> list[LogPair]:  # fmt: skip
    """Put rows of the same operation, ranks and size side by side.

    Parameters
    ----------
    a, b : sequence of Measurement
        One row a size.
    predicted : mapping of float to float, s
        Predicted times by size.
    """
    left, pairs, known = list(a), [], predicted or {}
    for row in b:
        mate = next((one for one in left if _alike(one, row)), None)
        if mate is not None:
            left.remove(mate)
        pairs.append(LogPair(mate, row, known.get(row.size)))
    pairs += [LogPair(one, None, known.get(one.size)) for one in left]
    return sorted(pairs, key=lambda pair: (pair.any.operation, pair.any.n_ranks or 0, pair.any.size))


def _alike(a: Measurement, b: Measurement) -> bool:
    same = a.operation == b.operation and (a.n_ranks == b.n_ranks or not (a.n_ranks and b.n_ranks))
    return same and abs(a.size - b.size) <= SAME_SIZE * max(a.size, b.size)


def table_of_logs(pairs: Sequence[LogPair], title: str) -> Table:
    """Return the table of two logs.

    Parameters
    ----------
    pairs : sequence of LogPair
        Pairs.
    title : str
        Comment above it.
    """
    has_model = any(pair.predicted is not None for pair in pairs)
    columns = [*COLUMNS, *(["predicted(us)"] if has_model else [])]
    return Table(columns, [_cells(pair, has_model=has_model) for pair in pairs], title, LEAST)


def _cells(pair: LogPair, *, has_model: bool) -> list[str]:
    times = [microseconds(row.time) if row else "-" for row in (pair.a, pair.b)]
    rates = [f"{row.busbw / 1e9:.3f}" if row and row.busbw is not None else "-" for row in (pair.a, pair.b)]
    ratio = "-" if pair.ratio is None else f"{pair.ratio:.4g}"
    model = ["-" if pair.predicted is None else microseconds(pair.predicted)] if has_model else []
    return [pair.any.operation, f"{pair.any.size:.0f}", *times, ratio, *rates, *model]
