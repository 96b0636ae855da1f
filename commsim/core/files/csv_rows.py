"""Rows of a CSV file, bounded in size, each with the number of its line."""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from commsim.core.errors import InputError
from commsim.core.files.opening import opening
from commsim.core.spec import as_number

from .whole_files import GZIP, read_bytes, replacing

MAX_BYTES = 2**30
MAX_ROWS = 8_000_000
# How the public traces write a missing value.
MISSING = ("", "None", "null", "NaN", "nan", "NULL")


class CsvRow:
    """One line of the table; every fault names file, line and column."""

    def __init__(self, where: str, values: Mapping[str, str]) -> None:
        self.where, self._values = where, values

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self._values)

    def text(self, column: str) -> str:
        """Return the cell without blanks around it; empty where the trace says that it has none."""
        value = self._values.get(column, "").strip()
        return "" if value in MISSING else value

    def number(self, column: str, default: float | None = None) -> float:
        """Return a finite number; required without a default.

        Raises
        ------
        InputError
            If the cell is empty without a default, or is no finite number.
        """
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            value = as_number(text)
        except ValueError:
            value = math.nan
        return value if math.isfinite(value) else self.refuse(column, "a number", text)

    def non_negative(self, column: str) -> float:
        """Return a number of 0 or more."""
        value = self.number(column)
        return value if value >= 0 else self.refuse(column, "a number of 0 or more", self.text(column))

    def whole(self, column: str, default: int | None = None) -> int:
        """Return a whole number, also when it is written as ``8.0``."""
        value = self.number(column, default)
        if value != int(value):
            self.refuse(column, "a whole number", self.text(column))
        return int(value)

    def time(self, column: str) -> float:
        """Return seconds of a number, or of a date such as ``2020-05-01 00:00:03`` (UTC if it does not say)."""
        text = self.text(column)
        try:
            return seconds(text)
        except ValueError:
            self.refuse(column, "seconds or a date such as 2020-05-01 00:00:03", text)

    def refuse(self, column: str, wanted: str, got: object) -> NoReturn:
        """Raise for a cell that is not what was wanted."""
        raise InputError(f"{self.where}: {column} must be {wanted}, got {got!r}")


def seconds(text: str) -> float:
    """Read seconds, or a date, as seconds since 1970; ValueError if it is neither."""
    with contextlib.suppress(ValueError):
        if math.isfinite(value := as_number(text)):
            return value
    date = datetime.fromisoformat(text)
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def read_rows(
    path: str | Path,
    needed: Sequence[str],
    header: Sequence[str] | None = None,
    *,
    delimiter: str = ",",
    hint: str = "",
) -> Iterator[CsvRow]:
    """Go through a CSV file.

    Parameters
    ----------
    needed : sequence of str
        Columns that must be there.
    header : sequence of str, optional
        Columns of a file whose first line need not name them.
    delimiter : str
        What is between two cells.
    hint : str
        Added to the message where a column is missing.

    Raises
    ------
    InputError
        If the file is missing, too large (unpacked, if it begins as gzip does), not UTF-8, lacks a column, a line has
        not as many cells as the header, or the last one does not end.
    """
    path = Path(path)
    try:
        with opening(path) as file:
            if path.stat().st_size > MAX_BYTES:
                raise InputError(f"{path}: larger than {MAX_BYTES >> 20} MiB")
            plain = io.BytesIO(read_bytes(path, MAX_BYTES)) if file.peek().startswith(GZIP) else file
            with io.TextIOWrapper(plain, encoding="utf-8", newline="") as stream:
                yield from _rows(path, stream, needed, header, delimiter, hint)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}") from None


def _rows(
    path: Path, stream: Iterator[str], needed: Sequence[str], header: Sequence[str] | None, delimiter: str, hint: str
) -> Iterator[CsvRow]:
    table = csv.reader(_whole_lines(path, stream), delimiter=delimiter, strict=True)
    columns: list[str] | None = None
    try:
        for n, cells in enumerate(table):
            where = f"{path}, line {table.line_num}"
            if columns is None:
                named = header is None or cells[:1] == list(header[:1])
                columns = [cell.strip().lstrip("\ufeff") for cell in cells] if named else list(header or ())
                _check_columns(path, columns, needed, hint)
                if named:
                    continue
            if not cells:
                continue
            if n > MAX_ROWS:
                raise InputError(f"{path}: more than {MAX_ROWS} lines")
            if len(cells) != len(columns):
                raise InputError(f"{where}: {len(columns)} cells are required, got {len(cells)}")
            yield CsvRow(where, dict(zip(columns, cells, strict=True)))
    except csv.Error as error:
        raise InputError(f"{path}, line {table.line_num}: {error}") from None
    if columns is None:
        raise InputError(f"{path}: is empty; the first line must name the columns")


def _whole_lines(path: Path, stream: Iterator[str]) -> Iterator[str]:
    """Yield lines; refuse a last one that does not end, since the file may be cut inside its last number."""
    line = "\n"
    for line in stream:
        yield line
    if line[-1] not in "\r\n":
        raise InputError(
            f"{path}: the last line has no line break, so its last cell may be cut off; end the file with a line break"
        )


def _check_columns(path: Path, columns: Sequence[str], needed: Sequence[str], hint: str) -> None:
    lacking = [name for name in needed if name not in columns]
    if lacking:
        raise InputError(
            f"{path}, line 1: lacks the columns {', '.join(lacking)}; got {', '.join(columns)[:200]}{hint}"
        )
    if len(set(columns)) != len(columns):
        raise InputError(f"{path}, line 1: a column is named twice: {', '.join(columns)[:200]}")


def write_rows(path: str | Path, rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file, whose first row names the columns; it appears whole or not at all."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with replacing(path) as out:
        out.write(text.getvalue().encode())
