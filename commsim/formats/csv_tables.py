"""Tables in CSV with a column of bytes and one of times or bus bandwidths, as people keep what sweeps print.

Columns are ``bytes`` (or ``size``, ``size_bytes``, ``size_B``), ``time_us``, ``busbw`` (or ``busbw_GBps``; GB/s, 1e9)
and ``which``: ``reference`` or ``healthy`` for rows of healthy machines, any other word for the others. Case, blanks
and signs do not count, as in ``Size (B)`` and ``time(us)``; a time without its unit is not read. Bytes of 0, or none,
are one number of a sweep whose size nobody said: an average or a peak.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text
from commsim.core.operations import operation as known_operation

from .measurement import MAX_BYTES, Measurement, ReadingContext, check_count

# Names of columns, in small letters without blanks and signs.
SIZES = ("bytes", "size", "sizebytes", "sizeb", "nbytes", "msgsize", "messagesize", "messagesizebytes", "msgsizebytes")
TIMES = ("timeus", "latencyus", "avgtimeus", "avglatencyus", "oopus", "ooptimeus", "outofplacetimeus", "outofplaceus")
RATES = ("busbw", "busbwgbps", "busbwgbs", "oopbusbw", "outofplacebusbw", "busbandwidth", "busbandwidthgbs")
WHICH = "which"
HEALTHY = ("reference", "healthy")


@dataclass(frozen=True, slots=True)
class CsvTiming:
    """One row.

    Parameters
    ----------
    size : float, bytes
        0 where it is not known.
    time : float or None, s
        Measured time.
    busbw : float or None, bytes/s
        Bus bandwidth.
    healthy : bool
        Whether it is of healthy machines.
    line : int
        Line of the file.
    """

    size: float
    time: float | None
    busbw: float | None
    healthy: bool
    line: int


def is_csv_table(head: bytes) -> bool:
    """Whether the first line of a file names such columns."""
    names = {_known(name) for name in head[:4096].decode("utf-8-sig", "replace").split("\n")[0].split(",")}
    return bool(names & {*SIZES}) and bool(names & {*TIMES, *RATES})


def _known(name: str) -> str:
    """Return the name of a column in small letters without blanks and signs."""
    return re.sub(r"[\W_]", "", name).lower()


def read_csv_rows(path: Path) -> list[CsvTiming]:
    """Read all rows.

    Raises
    ------
    InputError
        Naming the line, if a number is missing, wrong or negative.
    """
    lines = csv.DictReader(io.StringIO(read_text(path, MAX_BYTES)))
    lines.fieldnames = [_known(name) for name in lines.fieldnames or ()]
    rows = []
    for line, cells in enumerate(_cells(lines, path), 2):
        size, time, rate = (_number(path, line, cells, names) for names in (SIZES, TIMES, RATES))
        if not (time or rate):
            raise InputError(f"{path}, line {line}: has neither time_us nor busbw above 0")
        healthy = (cells.get(WHICH) or "").strip().lower() in HEALTHY
        rows.append(CsvTiming(size or 0.0, time and time * 1e-6, rate and rate * 1e9, healthy, line))
        check_count(path, len(rows))
    return rows


def _cells(lines: Iterable[dict[str, str]], path: Path) -> Iterator[dict[str, str]]:
    try:
        yield from lines
    except csv.Error as error:
        raise InputError(f"{path}: {error}") from None


def _number(path: Path, line: int, cells: Mapping[str, str | None], names: tuple[str, ...]) -> float | None:
    text = next((cells[name] for name in names if cells.get(name)), None)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"{path}, line {line}: {names[0]} must be a number of at least 0, got {text[:40]!r}")
    return value


def read_csv_table(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read the rows that are not of healthy machines and have a size.

    Raises
    ------
    InputError
        If neither the user nor the file's name says the operation, or a time needs a number of ranks.
    """
    from .nccl_tests import require_operation

    rows = [row for row in read_csv_rows(path) if not row.healthy and row.size]
    if not rows:
        context.notes.append("numbers without a size: compare takes them with --topology")
        return []
    return as_measurements(path, rows, require_operation(path, context), context.n_ranks)


def as_measurements(path: Path, rows: list[CsvTiming], operation: str, n_ranks: int | None) -> list[Measurement]:
    """Return rows as measurements; a row without a time has that of its bus bandwidth.

    Parameters
    ----------
    path : path
        File.
    rows : list of CsvTiming
        Rows with a size.
    operation : str
        Name of the operation.
    n_ranks : int or None
        Number of ranks.

    Raises
    ------
    InputError
        If a row has no time, and the number of ranks is not known.
    """
    found = []
    for row in rows:
        time = row.time
        if time is None:
            if n_ranks is None:
                raise InputError(f"{path}, line {row.line}: has no time; its busbw needs the number of ranks (--ranks)")
            time = row.size * known_operation(operation).busbw_factor(n_ranks) / (row.busbw or math.inf)
        found.append(Measurement(operation, row.size, time, n_ranks, source=str(path), line=row.line))
    return found
