"""Columns of nccl-tests' table: where its times and rates are, and cells that old versions left blank."""

from __future__ import annotations

import re
from collections.abc import Sequence

NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,18})?", re.ASCII)
_UNIT = re.compile(r"\(.*\)$")


def column_names(cells: Sequence[str]) -> list[str]:
    """Return the words of a line without the sign before them and without units."""
    return [_UNIT.sub("", cell) for cell in cells if cell != "#"]


def aligned(columns: list[str], cells: list[str]) -> list[str]:
    """Return the cells of a row with those that old versions left blank: an operation that reduces nothing, no root.

    The cells before the first time are counted: size, count and type are there, and as many as are missing are blank.
    """
    times = halves_of(columns)
    before = times[0] if times else 0
    blank = len(columns) - len(cells)
    words = columns[3:before]
    if not 0 < blank <= len(words) or not set(words) <= {"redop", "root"} or len(cells) <= 3:
        return cells
    if not all(NUMBER.fullmatch(cell) for cell in cells[3:6]):  # a row that is cut
        return cells
    return [*cells[:3], *["none"] * blank, *cells[3:]]


def n_measured(columns: list[str], cells: list[str]) -> int:
    """Count the halves of a line that are present."""
    return sum(len(cells) >= 6 and cells[i : i + 1] != ["N/A"] for i in halves_of(columns) if i < max(len(cells), 6))


def halves_of(columns: list[str]) -> list[int]:
    """Position of the time of each half, out of place and in place; before its two rates."""
    return [i for i in range(len(columns) - 2) if columns[i : i + 3] == ["time", "algbw", "busbw"]][:2]


def rates_of(columns: list[str], cells: list[str]) -> tuple[str, str]:
    """Algbw and busbw of a row, as printed."""
    return cells[columns.index("algbw")], cells[columns.index("busbw")]
