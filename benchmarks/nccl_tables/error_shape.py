"""Shape of the errors of NCCL's predictions, from operators left out: tails, and how near sizes hang together.

Each row is set in units of the interval of the other operators (0 its middle, 1 half of its width). Of these numbers
Student's t has the degrees of freedom and the scale of the largest likelihood, each operator with the same weight: an
operator that nothing is known of is one, whatever the number of its rows. The middle of the sizes of one class in a
table, by which a log is judged (:func:`commsim.diagnosis.check_log.least_middle`), has a distribution of its own, since
few sizes of a healthy table are far out. The correlation
of two sizes of a table falls with the octaves between them as a Gaussian curve, fitted to the products of the rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.nccl_tables.intervals import Score, calibrated, made, weights_of
from commsim.diagnosis.check_log import least_middle
from commsim.nccl.error_model import SEVERAL
from commsim.nccl.intervals import EVERY, SIZES, Intervals

DEGREES, SCALES = np.arange(1.6, 8, 0.2), np.arange(0.2, 1.1, 0.03)
CORRELATIONS, OCTAVES = np.arange(0.3, 1.0, 0.01), np.arange(0.5, 6, 0.1)
# Rows that lie farther out say nothing more of the correlation than that they do, and sizes farther apart nothing.
FAR, FARTHEST = 4.0, 6.0


class Shape(NamedTuple):
    """Degrees of freedom and scale of rows and of middles, and correlation, as ``intervals.toml`` has them."""

    degrees: float
    scale: float
    middle_degrees: float
    middle_scale: float
    correlation: float
    octaves: float


def of_every_kind(scores: Sequence[Score]) -> Intervals:
    """Return intervals of all kinds together, for machines whose kind has none."""
    by_size = {size: [score for score in scores if score.size == size] for _, size in SIZES}
    return {(EVERY, size): calibrated(own or scores)[0] for size, own in by_size.items()}


def standard(score: Score, intervals: Intervals) -> float:
    """Return a row in units of the interval of its kind, or of all kinds where it has none."""
    low, high = np.log(intervals.get((score.kind, score.size)) or intervals[EVERY, score.size])
    return float((score.log - (low + high) / 2) / ((high - low) / 2))


def left_out_rows(scores: Sequence[Score]) -> tuple[list[Score], np.ndarray]:
    """Return the rows by operator, and each in units of the intervals of the other operators, float64[n]."""
    rows, found = list[Score](), list[float]()
    for name in sorted({score.operator for score in scores}):
        intervals = intervals_of([score for score in scores if score.operator != name])
        own = [score for score in scores if score.operator == name]
        rows += own
        found += [standard(score, intervals) for score in own]
    return rows, np.array(found)


def intervals_of(scores: Sequence[Score]) -> Intervals:
    """Return the intervals of all kinds that have one, and of all kinds together."""
    return {**made(scores)[0], **of_every_kind(scores)}


def shape_of(scores: Sequence[Score]) -> Shape:
    """Return the shape of the errors of some rows.

    Parameters
    ----------
    scores : sequence of Score
        Rows of several operators.
    """
    rows, found = left_out_rows(scores)
    middles = middles_of(rows, found)
    of_middles = _tails(np.array([m.log for m in middles]), weights_of(middles)) if middles else (0.0, 0.0)
    return Shape(*_tails(found, weights_of(rows)), *of_middles, *_correlation(rows, found))


def middles_of(rows: Sequence[Score], found: np.ndarray, least: int = SEVERAL) -> list[Score]:
    """Return the slowest middle of each class in each table, as a log is judged, of at least so many sizes.

    Parameters
    ----------
    rows : sequence of Score
        Rows.
    found : float64[n]
        Each in units of its interval.
    least : int
        Sizes of a class from which on it is taken.
    """
    groups = defaultdict[tuple[str, str, str], list[tuple[Score, float]]](list)
    for row, value in zip(rows, found, strict=True):
        groups[row.operator, row.table, row.size].append((row, float(value)))
    return [
        own[0][0]._replace(log=-least_middle({row.n_bytes: -value for row, value in own}), n_bytes=float(len(own)))
        for own in groups.values() if len(own) >= least
    ]  # fmt: skip


def _tails(found: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return degrees of freedom and scale with the largest likelihood."""
    best = (-math.inf, 0.0, 0.0)
    for nu in DEGREES:
        constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(nu * math.pi) / 2
        for scale in SCALES:
            density = constant - math.log(scale) - (nu + 1) / 2 * np.log1p((found / scale) ** 2 / nu)
            best = max(best, (float((weights * density).sum()), float(nu), float(scale)))
    return round(best[1], 1), round(best[2], 2)


def _correlation(rows: Sequence[Score], found: np.ndarray) -> tuple[float, float]:
    """Return the correlation of rows of one size in a table, and the octaves in which it falls."""
    tables, products = defaultdict[tuple[str, str], list[tuple[float, float]]](list), list[tuple[float, ...]]()
    for row, value in zip(rows, found, strict=True):
        tables[row.operator, row.table].append((math.log2(row.n_bytes), float(np.clip(value, -FAR, FAR))))
    n_tables = defaultdict[str, int](int)
    for operator, _ in tables:
        n_tables[operator] += 1
    for (operator, _), values in tables.items():
        weight = 1 / n_tables[operator] / len(values) ** 2
        products += [
            (abs(a - b), u * v, (u * u + v * v) / 2, weight)
            for i, (a, u) in enumerate(values) for b, v in values[i + 1 :] if abs(a - b) <= FARTHEST
        ]  # fmt: skip
    apart, product, square, weight_of = np.array(products).T
    bins = np.round(apart)
    of_bins = [(d, weight_of[bins == d], product[bins == d], square[bins == d]) for d in np.unique(bins)]
    seen = [(d, (w * p).sum() / (w * q).sum(), w.sum()) for d, w, p, q in of_bins]
    at, share, weights = np.array(seen).T
    fits = [
        (float((weights * (share - top * np.exp(-((at / wide) ** 2) / 2)) ** 2).sum()), float(top), float(wide))
        for top in CORRELATIONS for wide in OCTAVES
    ]  # fmt: skip
    _, top, wide = min(fits)
    return round(top, 2), round(wide, 1)
