"""Search the turns of circles: all of them, or one job after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .circles import Circle

EXHAUSTIVE = 2**19
"""Combinations of turns, times angles, up to which all are tried."""
STARTS = 3
"""Of the search that turns one job after the other."""
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0  # its multiples are spread evenly over 0..1


def search(circle: Circle, part: NDArray[np.float64]) -> tuple[NDArray[np.int64], bool]:
    """Find the turns of one link's jobs with the least mean excess.

    Parameters
    ----------
    part : float64[n_jobs]
        Times which, a job's demand is a part of the capacity.

    Returns
    -------
    int64[n_jobs], bool
        The turns in angles, and whether all were tried.
    """
    from .search_kernel import search_all

    positions = circle.n_positions
    if not _is_little(positions, circle.n_angles):
        positions = circle.distinct_positions(order=True)
    if not _is_little(positions, circle.n_angles):
        positions = circle.distinct_positions(order=False)
        return search_together(circle, part[None], np.ones(1, np.int64), different_turns(positions), positions), False
    unit = _unit(circle, part[None], np.ones(1))
    demand = np.rint(circle.demand * (part * unit)[:, None]).astype(np.int64)
    floor = int(demand[:, circle.reach :].sum()) - int(unit) * circle.n_angles  # no turn changes the sum
    enough = max(0, floor) + circle.n_angles
    return search_all(demand, circle.reach, positions, int(unit), enough)[1], True


def _is_little(positions: NDArray[np.int64], n_angles: int) -> bool:
    combinations: int = math.prod(positions[1:].tolist())
    return combinations * n_angles <= EXHAUSTIVE


def search_together(
    circle: Circle,
    part: NDArray[np.float64],
    weight: NDArray[np.int64],
    starts: NDArray[np.int64],
    positions: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Find turns that suit several links at once, one job after the other.

    Parameters
    ----------
    part : float64[n_links, n_jobs]
        Times which, a job's demand is a part of the link's capacity; 0 where it does not pass.
    weight : int64[n_links]
        Of each link's mean excess in the sum that is minimised.
    starts : int64[n_starts, n_jobs]
        Turns to begin with.
    positions : int64[n_jobs], optional
        How many turns of each job are tried; those that differ in the long run, unless given.

    Returns
    -------
    int64[n_jobs]
        The turns in angles.
    """
    from .search_kernel import search_in_turn

    job, on = np.nonzero(part.T)
    first = np.searchsorted(job, np.arange(len(circle.period) + 1))
    unit = _unit(circle, part, weight)
    demand = np.rint(circle.demand[job] * (part.T[job, on] * unit)[:, None]).astype(np.int64)
    link = np.stack((np.full(len(weight), int(unit)), weight.astype(np.int64)))
    floors = np.bincount(on, demand[:, circle.reach :].sum(axis=1), len(weight)) - unit * circle.n_angles
    enough = int(weight @ np.maximum(floors, 0.0)) + circle.n_angles
    positions = circle.distinct_positions(order=False) if positions is None else positions
    return search_in_turn(demand, first, on, circle.reach, positions, link, starts, enough)[1]


def _unit(circle: Circle, part: NDArray[np.float64], weight: NDArray[Any]) -> float:
    """Return how many units the capacity has: 2^30, or fewer, so that no sum of the search exceeds 62 bits."""
    peak = max(1.0, float((part @ circle.demand.max(axis=1)).max(initial=0.0)))
    bits = np.log2(peak) + np.log2(circle.n_angles) + np.log2(max(1, int(weight.sum())))
    return float(2.0 ** min(30.0, np.floor(62.0 - bits)))


def different_turns(positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return turns to begin with, int64[STARTS, n_jobs]: none, and others far from each other; the first job stays."""
    far = np.outer(np.arange(STARTS), np.arange(len(positions)) * _GOLDEN) % 1.0
    starts: NDArray[np.int64] = (far * positions).astype(np.int64)
    return starts
