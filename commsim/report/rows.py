"""Boxes in rows by tier, each above the middle of what hangs on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .bundles import Bundles
from .metrics import BOX_HEIGHT, GAP, NARROW

Reals = NDArray[np.float64]


def in_rows(row: NDArray[np.int64], bundles: Bundles, width: Reals) -> tuple[Reals, Reals]:
    """Spread the bottom row evenly, and put every other box above the middle of what hangs on it."""
    n_rows = int(row.max()) + 1
    members = [np.flatnonzero(row == level) for level in range(n_rows)]
    total = max(NARROW, *(len(boxes) * (width[boxes[0]] + GAP) for boxes in members))
    x = np.zeros(len(row))
    attached = first_above(row, bundles)
    members[0] = members[0][np.lexsort((members[0], attached[members[0]]))]
    x[members[0]] = (np.arange(len(members[0])) + 0.5) * total / len(members[0])
    if len(members[0]) > 1 and len(np.unique(attached[members[0]])) > 1:
        x[members[0]] = _grouped(attached[members[0]], width[members[0][0]] + GAP, total)
        total = max(total, x[members[0]].max() + width[members[0][0]] / 2)
    for boxes in members[1:]:
        wanted = _mean_below(row, bundles, x, total)[boxes]
        boxes = boxes[np.lexsort((boxes, np.round(wanted, 6)))]
        wanted = np.sort(wanted)
        least = width[boxes[0]] + GAP
        spacing = max(least, min(0.8 * total / len(boxes), (total - least) / max(1, len(boxes) - 1)))
        x[boxes] = spread(wanted, spacing, least / 2, total - least / 2)
    height = np.array([_height(row, bundles, level, total) for level in range(n_rows - 1)] + [0.0])
    return x, height[::-1].cumsum()[::-1][row] + BOX_HEIGHT / 2


def _height(row: NDArray[np.int64], bundles: Bundles, level: int, total: float) -> float:
    """Distance of a row from the next one: more where more than a tree lies between."""
    between = np.count_nonzero((row[bundles.low] == level) & (row[bundles.high] == level + 1))
    ends = max(np.count_nonzero(row == level), np.count_nonzero(row == level + 1))
    return min(230.0, max(100.0, 0.13 * total)) if between > 1.5 * ends else min(120.0, max(90.0, 0.08 * total))


def _grouped(group: NDArray[np.int64], spacing: float, total: float) -> Reals:
    """Positions of a row whose neighbours stand closer together when they are in one group."""
    changes = np.cumsum(np.r_[0, np.diff(group) != 0])
    if changes[-1] + 1 == len(group):
        return np.asarray((np.arange(len(group)) + 0.5) * max(total, len(group) * spacing) / len(group))
    at = np.arange(len(group)) * spacing + changes * 1.5 * GAP
    return np.asarray(at * max(1.0, (total - spacing) / max(1.0, at[-1])) + spacing / 2)


def spread(wanted: Reals, spacing: float, low: float, high: float) -> Reals:
    """Positions nearest to those wanted, in the least-squares sense, at least `spacing` apart.

    Parameters
    ----------
    wanted : float64[n]
        In ascending order.
    spacing, low, high : float
        Least distance between neighbours, and bounds, which must leave room.

    References
    ----------
    Best and Chakravarti, "Active set algorithms for isotonic regression", Mathematical Programming 1990: the pool of
    adjacent violators, here after the spacing has been taken out.
    """
    pools: list[tuple[float, int]] = []
    for value in wanted - spacing * np.arange(len(wanted)):
        mean, n = float(value), 1
        while pools and pools[-1][0] > mean:
            other, m = pools.pop()
            mean, n = (mean * n + other * m) / (n + m), n + m
        pools.append((mean, n))
    flat = np.repeat([mean for mean, _ in pools], [n for _, n in pools])
    room = high - spacing * (len(wanted) - 1)
    return np.asarray(np.clip(flat, low, max(low, room)) + spacing * np.arange(len(wanted)))


def first_above(row: NDArray[np.int64], bundles: Bundles) -> NDArray[np.int64]:
    """By box, the first box of a higher row that it is cabled to; itself where there is none."""
    above = np.arange(len(row))
    rising = np.flatnonzero(row[bundles.low] < row[bundles.high])[::-1]  # so that the first is written last
    above[bundles.low[rising]] = bundles.high[rising]
    return above


def _mean_below(row: NDArray[np.int64], bundles: Bundles, x: Reals, total: float) -> Reals:
    """By box, the mean place of what it is cabled to in lower rows; the middle where that is nothing."""
    rising = row[bundles.low] < row[bundles.high]
    high, low = bundles.high[rising], bundles.low[rising]
    n = np.bincount(high, minlength=len(row))
    mean = np.bincount(high, weights=x[low], minlength=len(row)) / np.maximum(n, 1)
    return np.where(n > 0, mean, total / 2)
