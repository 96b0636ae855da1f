"""What the points of a sweep say, for a terminal and for pages: one remark of each code, with its points."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.sweep_store import STORE, reading, rows_in
from commsim.core.remark import Remark, read_remarks
from commsim.report.titles import remark_on_costs

# Rows that are read for remarks, and points that are named.
MAX_ROWS, MAX_POINTS = 100_000, 4


def remarks_of(directory: str | Path) -> tuple[Remark, ...]:
    """Return the remarks of a sweep: of each code one, with the points that have it and the largest effect.

    Parameters
    ----------
    directory : path
        Directory of its results.

    Raises
    ------
    InputError
        If it is no directory of a sweep, or a row is none of a sweep.
    """
    known: dict[str, dict[Remark, list[int]]] = {}  # by the code, and by the remark
    with reading(directory) as db:
        for line in itertools.islice(rows_in(db, directory), MAX_ROWS):
            order, remarks = _remarks_of_line(line, Path(directory) / STORE)
            for remark in remarks:
                known.setdefault(remark.code, {}).setdefault(remark, []).append(order)
    return tuple(_merged(alike) for alike in known.values())


def _merged(alike: Mapping[Remark, list[int]]) -> Remark:
    """Write the remarks of one code as the one of the largest effect, with the points of the others."""
    first = max(alike, key=lambda one: one.size)
    others = sorted({order for one, orders in alike.items() for order in orders if one is not first})
    merged = first.of(_points(alike[first]))
    if not others:
        return merged
    more = f"others of the kind at {_points(others)}"
    return replace(merged, details=f"{merged.details}; {more}" if merged.details else more)


def _points(orders: list[int]) -> str:
    """Name points by their numbers: all of a few, or the first ones."""
    if len(orders) > 2 and orders == list(range(orders[0], orders[-1] + 1)):
        return f"points {orders[0]} to {orders[-1]}"
    more = f" and {len(orders) - MAX_POINTS} more" if len(orders) > MAX_POINTS else ""
    return f"point{'s' * (len(orders) > 1)} {', '.join(map(str, orders[:MAX_POINTS]))}{more}"


def costs_of(directory: str | Path) -> tuple[Remark, ...]:
    """Return the remark on what the times of a sweep include of the cost of software; empty if its rows do not say."""
    with reading(directory) as db:
        rows = (json.loads(line) for line in itertools.islice(rows_in(db, directory), MAX_ROWS))
        return remark_on_costs([row["costs"] for row in rows if isinstance(row, dict) and "costs" in row])


def _remarks_of_line(line: str, path: Path) -> tuple[int, tuple[Remark, ...]]:
    """Return the order of a row's point, and its remarks; a point that failed has none."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}: no rows of a sweep: {error}") from None
    order, remarks = (row.get("order"), row.get("remarks")) if isinstance(row, dict) else (None, None)
    if not isinstance(order, int):
        raise InputError(f"{path}: no rows of a sweep: a row without order")
    return order, read_remarks(remarks, f"{path}: no rows of a sweep")
