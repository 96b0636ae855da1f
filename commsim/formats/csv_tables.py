"""Tables in CSV with a column of bytes and one of times or bus bandwidths, as people keep what sweeps print.

Columns are ``bytes`` (or ``size``, ``size_bytes``, ``size_B``), ``time_us`` (or ``time_ms``, ``time_s``), ``busbw`` (or
``busbw_GBps``; GB/s, 1e9, or Gb/s where its name writes these), ``operation`` where there are several, and ``which``:
``reference`` or ``healthy`` for rows of healthy machines, any other word for the others. Case, blanks and signs do not
count but in Gb/s, as in ``Size (B)`` and ``time(us)``; a time without its unit is not read. Columns are apart by
commas, semicolons or tabs. Bytes of 0, or none, are one number of a sweep whose size nobody said: an average or a peak.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError, shorten
from commsim.core.files.whole_files import read_text
from commsim.core.operations import OPERATIONS as KNOWN_OPERATIONS
from commsim.core.operations import operation as known_operation
from commsim.core.spec import as_number
from commsim.core.units import parse_nccl_size

from .measurement import MAX_BYTES, Measurement, ReadingContext, check_count

# Names of columns, in small letters without blanks and signs.
SIZES = ("bytes", "size", "sizebytes", "sizeb", "nbytes", "msgsize", "messagesize", "messagesizebytes", "msgsizebytes")
TIMES = {
    **dict.fromkeys(("timeus", "latencyus", "avgtimeus", "avglatencyus", "ooptimeus", "outofplacetimeus"), 1e-6),
    **dict.fromkeys(("timems", "latencyms", "avgtimems"), 1e-3), **dict.fromkeys(("times", "timesec", "seconds"), 1.0),
}  # fmt: skip
RATES = (
    "busbw", "busbwgbps", "busbwgbs", "busbwgbits", "oopbusbw", "outofplacebusbw", "busbandwidth", "busbandwidthgbs",
)  # fmt: skip
# Units of a rate in bits as the name of a column writes them; of a name in small letters alone nothing says that.
_IN_BITS = re.compile(r"Gb(?:it)?s?(?:ps|/s)")
WHICH, OPERATIONS = "which", ("operation", "collective", "coll")
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
    operation : str
        Name of the operation; empty where no column says it.
    """

    size: float
    time: float | None
    busbw: float | None
    healthy: bool
    line: int
    operation: str = ""


def is_csv_table(head: bytes) -> bool:
    """Whether the first line of a file that is no remark names such columns."""
    _, line = _header(head[:4096].decode("utf-8-sig", "replace").split("\n"))
    names = {_known(name) for name in line.split(_delimiter(line))}
    return bool(names & {*SIZES}) and bool(names & {*TIMES, *RATES})


def _header(lines: Iterable[str]) -> tuple[int, str]:
    """Return the first line that is no remark, after the number of lines before it."""
    return next((found for found in enumerate(lines) if found[1].strip() and not found[1].startswith("#")), (0, ""))


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


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
    text = read_text(path, MAX_BYTES)
    before, line = _header(io.StringIO(text))
    delimiter = _delimiter(line)
    lines = csv.DictReader(itertools.islice(io.StringIO(text), before, None), delimiter=delimiter)
    written = _renamed(lines, path)
    rows = []
    for number, cells in enumerate(_cells(lines, path), before + 2):
        point = {name: _with_point(cell) for name, cell in cells.items() if name} if delimiter == ";" else cells
        size, rate = (_number(path, number, point, names, written) for names in (SIZES, RATES))
        every = ((_number(path, number, point, (name,), written), unit) for name, unit in TIMES.items())
        times = [(value, unit) for value, unit in every if value]
        if not (times or rate):
            raise InputError(f"{path}, line {number}: has neither time_us nor busbw above 0")
        if rate and _IN_BITS.search(written[next(name for name in RATES if point.get(name))]):
            rate /= 8
        time = times[0][0] * times[0][1] if times else None
        healthy = (cells.get(WHICH) or "").strip().lower() in HEALTHY
        named = _operation(path, number, next((cells[name] for name in OPERATIONS if cells.get(name)), ""))
        rows.append(CsvTiming(size or 0.0, time, rate and rate * 1e9, healthy, number, named))
        check_count(path, len(rows))
    return rows


def _with_point(cell: object) -> str | None:
    """Return a cell with a decimal point in place of a comma."""
    return cell.replace(",", ".") if isinstance(cell, str) else None


def _operation(path: Path, line: int, name: str) -> str:
    """Return one of our operations, as other tools or our algorithms call it; empty for what has no letters.

    Raises
    ------
    InputError
        If a name is of none.
    """
    plain = _known(name).removesuffix("perf")
    known = {_known(ours): ours for ours in KNOWN_OPERATIONS} | {"bcast": "broadcast"}
    found = max((key for key in known if plain.endswith(key)), key=len, default="")
    if not found and plain.isalpha():
        raise InputError(f"{path}, line {line}: {name!r} is no operation; known: {', '.join(known)}")
    return known.get(found, "")


def _renamed(lines: csv.DictReader[str], path: Path) -> dict[str, str]:
    """Name the columns in small letters without signs, and return how the file writes each."""
    try:
        written = [*(lines.fieldnames or ())]
    except csv.Error as error:
        raise InputError(f"{path}: {error}") from None
    names = [_known(name) for name in written]
    # of two columns of one name the first is read: out of place stands before in place
    lines.fieldnames = [name if name not in names[:i] else "" for i, name in enumerate(names)]
    return dict(zip(lines.fieldnames, written, strict=True))


def _cells(lines: csv.DictReader[str], path: Path) -> Iterator[dict[str, str]]:
    try:
        yield from lines
    except csv.Error as error:
        raise InputError(f"{path}: {error}") from None


def _number(
    path: Path, line: int, cells: Mapping[str, str | None], names: tuple[str, ...], written: Mapping[str, str]
) -> float | None:
    name = next((name for name in names if cells.get(name)), None)
    if name is None:
        return None
    text = cells[name] or ""
    try:
        value = as_number(text)
    except ValueError:
        value = _size(text) if names is SIZES else math.nan
    if not 0 <= value < math.inf:
        column = shorten(written[name].strip())
        raise InputError(f"{path}, line {line}: {column} must be a number of at least 0, got {text[:40]!r}")
    return value


def _size(text: str) -> float:
    """Return a size with a unit, as nccl-tests takes it: 1M is 1 MiB; not a number if it is none."""
    try:
        return float(parse_nccl_size(text.strip()))
    except InputError:
        return math.nan


def read_csv_table(path: Path, context: ReadingContext) -> list[Measurement]:
    """Read the rows that are not of healthy machines and have a size.

    Raises
    ------
    InputError
        If neither the user nor the file's name says the operation, or a time needs a number of ranks.
    """
    from .nccl_tests import require_operation

    every = read_csv_rows(path)
    rows = [row for row in every if not row.healthy and row.size]
    if not rows:
        without = "numbers without a size: compare takes them with --topology"
        context.notes.append(without if every else "the header of a CSV without rows")
        return []
    named = all(row.operation for row in rows)
    operation = context.operation if named else require_operation(path, context)
    return as_measurements(path, rows, operation, context.n_ranks)


def as_measurements(path: Path, rows: list[CsvTiming], operation: str, n_ranks: int | None) -> list[Measurement]:
    """Return rows as measurements; a row without a time has that of its bus bandwidth.

    Parameters
    ----------
    path : path
        File.
    rows : list of CsvTiming
        Rows with a size.
    operation : str
        Name of the operation: rows of another one are left out; empty if each row has its own.
    n_ranks : int or None
        Number of ranks.

    Raises
    ------
    InputError
        If a row has no time, and the number of ranks is not known.
    """
    found = []
    for row in rows:
        time, name = row.time, row.operation or operation
        if operation not in (name, ""):
            continue
        if time is None:
            if n_ranks is None:
                raise InputError(f"{path}, line {row.line}: has no time; its busbw needs the number of ranks (--ranks)")
            time = row.size * known_operation(name).busbw_factor(n_ranks) / (row.busbw or math.inf)
        found.append(Measurement(name, row.size, time, n_ranks, source=str(path), line=row.line))
    return found
