"""What the points of a sweep say, for a terminal and for pages: each remark once, with the points that say it."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

from commsim.core.errors import InputError
from commsim.files.sweep_store import STORE, reading, rows_in
from commsim.report.title_of_network import remark_on_costs

# Remarks that are listed, and rows that are read for them.
MAX_LISTED, MAX_ROWS = 20, 100_000
# Points that are named, and the numbers in which remarks that are alike differ.
MAX_POINTS = 4
NUMBER = re.compile(r"\d+(\.\d+)?")


def remarks_of(directory: str | Path) -> tuple[str, ...]:
    """Return the remarks of a sweep, each once, with the points that have it, also with other numbers.

    Parameters
    ----------
    directory : path
        Directory of its results.

    Raises
    ------
    InputError
        If it is no directory of a sweep, or a row is none of a sweep.
    """
    known: dict[str, dict[str, list[int]]] = {}  # by the text without its numbers, and by the text
    with reading(directory) as db:
        for line in itertools.islice(rows_in(db, directory), MAX_ROWS):
            order, said = _said(line, Path(directory) / STORE)
            for one in said:
                known.setdefault(NUMBER.sub("#", one), {}).setdefault(one, []).append(order)
    listed = [_merged(texts) for texts in known.values()]
    more = len(listed) - MAX_LISTED
    return (*listed[:MAX_LISTED], *([f"{more} more remarks are in the column `remarks`"] if more > 0 else []))


def _merged(texts: dict[str, list[int]]) -> str:
    """Write remarks that differ in numbers only as the first of them."""
    (first, orders), *others = texts.items()
    rest = sorted({order for _, some in others for order in some})
    return f"{_points(orders)}: {first}" + (f"; likewise with other numbers at {_points(rest)}" if rest else "")


def _points(orders: list[int]) -> str:
    """Name points by their numbers: all of a few, or the first ones."""
    if len(orders) > 2 and orders == list(range(orders[0], orders[-1] + 1)):
        return f"points {orders[0]} to {orders[-1]}"
    more = f" and {len(orders) - MAX_POINTS} more" if len(orders) > MAX_POINTS else ""
    return f"point{'s' * (len(orders) > 1)} {', '.join(map(str, orders[:MAX_POINTS]))}{more}"


def costs_of(directory: str | Path) -> tuple[str, ...]:
    """Return the remark on what the times of a sweep include of the cost of software; empty if its rows do not say."""
    with reading(directory) as db:
        rows = (json.loads(line) for line in itertools.islice(rows_in(db, directory), MAX_ROWS))
        return remark_on_costs([row["costs"] for row in rows if isinstance(row, dict) and "costs" in row])


def _said(line: str, path: Path) -> tuple[int, list[str]]:
    """Return the order of a row's point, and its remarks; a point that failed has none."""
    row = json.loads(line)
    order, said = (row.get("order"), row.get("remarks") or []) if isinstance(row, dict) else (None, [])
    if not isinstance(order, int):
        raise InputError(f"{path}: no rows of a sweep: a row without order")
    if not isinstance(said, list) or not all(isinstance(one, str) for one in said):
        raise InputError(f"{path}: no rows of a sweep: remarks are a list of texts")
    return order, said
