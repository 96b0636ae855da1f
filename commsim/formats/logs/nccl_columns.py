"""Columns of nccl-tests' table: where its times and rates are, and cells that old versions left blank."""

from __future__ import annotations

import re
from collections.abc import Sequence

NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,18})?", re.ASCII)
# Bytes of an element of the types that nccl-tests prints.
_TYPES = {
    "int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "half": 2, "float": 4, "double": 8,
    "bfloat16": 2, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1,
}  # fmt: skip
_ROOT = re.compile(r"-?\d{1,9}", re.ASCII)
_HALF = ("time", "algbw", "busbw")
_UNIT = re.compile(r"\(.*\)$")


def column_names(cells: Sequence[str]) -> list[str]:
    """Return the words of a line without the sign before them and without units."""
    return [_UNIT.sub("", cell) for cell in cells if cell != "#"]


def implied_columns(cells: Sequence[str]) -> list[str]:
    """Return the columns of a whole row whose header is not there, as in an excerpt; empty of what is no such row.

    Both halves are there, each with or without a count of wrong results, behind size, count, type, operation and root.
    """
    if len(cells) < 4 or not (cells[0].isdecimal() and cells[1].isdecimal()) or cells[2] not in _TYPES:
        return []
    words = ["size", "count", "type", "redop"]
    if len(cells) > 4 and _ROOT.fullmatch(cells[4]):
        words.append("root")
    n = len(cells) - len(words)
    if n not in (6, 8):
        return []
    half = [*_HALF, *(["#wrong"] if n == 8 else [])]
    times = (cells[len(words) + k : len(words) + k + 3] for k in (0, n // 2))
    return [*words, *half, *half] if all(NUMBER.fullmatch(cell) for three in times for cell in three) else []


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


def ranks_of_count(columns: list[str], cells: list[str]) -> int | None:
    """Return the ranks by which a row divides its array, where its count is that of one rank; None if it does not.

    nccl-tests prints the count of elements with which it calls NCCL: of an all-gather, an all-to-all and their like
    that of one rank's part.
    """
    row = dict(zip(columns, cells, strict=False))
    count, width = row.get("count", ""), _TYPES.get(row.get("type", ""), 0)
    part = int(count) * width if count.isdecimal() else 0
    return int(cells[0]) // part if part and not int(cells[0]) % part and int(cells[0]) > part else None
