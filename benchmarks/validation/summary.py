"""Statistics of rows, and what of them is kept as data for shipped code."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from commsim.auto.known_error import AGAINST, ErrorSample
from commsim.prediction.scenario import ENGINES

from .row import KINDS, Row

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the absolute errors of rows.

    Parameters
    ----------
    count, shown, misses : int
        Rows that count, rows that are only shown, and rows off by more than their kind may be.
    median, p90, largest : float
        Of those that count; NaN when there are none.
    """

    count: int
    shown: int
    misses: int
    median: float
    p90: float
    largest: float


def statistics(rows: Sequence[Row]) -> Statistics:
    """Return statistics of some rows."""
    errors = np.abs([row.error for row in rows if row.counts])
    some = errors if len(errors) else np.array([np.nan])
    return Statistics(
        len(errors),
        len(rows) - len(errors),
        sum(row.missed for row in rows),
        float(np.median(some)),
        float(np.quantile(some, 0.9)),
        float(some.max()),
    )


def groups(rows: Iterable[Row], key: Callable[[Row], K]) -> dict[K, list[Row]]:
    """Return rows by a key, keys in the order of their first rows."""
    found: dict[K, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return statistics by kind, engine and what it was compared with, in the order of KINDS."""
    order = list(KINDS)
    found = groups(
        sorted(rows, key=lambda r: (order.index(r.kind), r.engine, r.against)), lambda r: (r.kind, r.engine, r.against)
    )
    return [
        {"kind": kind, "engine": engine, "against": against} | _fields(statistics(mine))
        for (kind, engine, against), mine in found.items()
    ]


def _fields(found: Statistics) -> dict[str, Any]:
    numbers = {name: getattr(found, name) for name in Statistics.__slots__}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in numbers.items()}


def looked_up(rows: Iterable[Row]) -> list[ErrorSample]:
    """Return what ``--engine auto`` may look up: rows that count, and say under which conditions they were made.

    Closed forms and solvers of the same model are left out: that two ways to the same number agree says nothing of how
    far it is from a network's. So is what no result names as its engine, such as bounds.
    """
    return [
        ErrorSample(row.engine, row.against, row.case, row.error)
        for row in rows
        if row.counts and row.case is not None and row.against in AGAINST and row.engine in ENGINES
    ]
