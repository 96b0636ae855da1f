"""Statistics of rows, and what of them is kept as data for shipped code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from commsim.core.known_error import AGAINST, KnownError
from commsim.run import ENGINES

from .row import KINDS, Row

KIB, MIB = 2**10, 2**20
RANGES = (0.0, 256.0 * KIB, 4.0 * MIB, 64.0 * MIB, math.inf)
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


def errors_by_size(rows: Iterable[Row]) -> list[KnownError]:
    """Return errors by engine, operation, what they are against and range of sizes: rows that count and have a size.

    Closed forms and solvers of the same model are left out: that two ways to the same number agree says nothing of how
    far it is from a network's. So is what no result names as its engine, such as bounds.
    """
    kept = [row for row in rows if row.counts and row.size is not None and row.against in AGAINST]
    kept = [row for row in kept if row.engine in ENGINES]
    kept.sort(key=lambda row: (row.engine, row.operation, AGAINST.index(row.against), row.size))
    ranges = list(itertools.pairwise(RANGES))

    def key(row: Row) -> tuple[str, str, str, tuple[float, float]]:
        assert row.size is not None
        within = next(r for r in ranges if r[0] <= row.size < r[1])
        return row.engine, row.operation, row.against, within

    return [_known(*of, mine) for of, mine in groups(kept, key).items()]


def _known(engine: str, operation: str, against: str, within: tuple[float, float], rows: list[Row]) -> KnownError:
    found = statistics(rows)
    return KnownError(
        engine=engine,
        operation=operation,
        against=against,
        low=within[0],
        high=within[1],
        count=found.count,
        median=round(found.median, 6),
        p90=round(found.p90, 6),
        largest=round(found.largest, 6),
        ranks=tuple(sorted({row.ranks for row in rows if row.ranks})),
        networks=tuple(sorted({row.network.partition(":")[0].partition(" ")[0] for row in rows if row.network})),
        smallest=min(row.size for row in rows if row.size is not None),
        biggest=max(row.size for row in rows if row.size is not None),
    )
