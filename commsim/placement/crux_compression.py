"""Crux's compression of priorities: a network has few levels, and jobs that meet should not share one.

Jobs are the nodes of a graph: an edge goes from the one that goes first to the other where two share a link, and weighs
the intensity of the first. Levels keep the order along edges. Every edge between different levels counts; the most is a
Max-K-Cut. Given an order of the jobs in which every edge goes forward, the best cut of that order into runs is found by
dynamic programming; the orders are drawn.

References
----------
Cao et al., Crux, SIGCOMM 2024, section 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError


def contention(
    intensity: ArrayLike, priority: ArrayLike, use: Sequence[NDArray[np.float64]] | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights of the graph of jobs that meet.

    Parameters
    ----------
    intensity, priority : float64[n_jobs]
        Of each job; of equal priorities the first goes first.
    use : float64[n_jobs, n_links]
        How many times its rate each job puts on every link.

    Returns
    -------
    float64[n_jobs, n_jobs]
        At [i, j] the intensity of i, if i goes before j and they share a link; else 0.
    """
    intensity, priority = np.asarray(intensity, np.float64), np.asarray(priority, np.float64)
    used = np.asarray(use) > 0
    meet = (used.astype(np.int64) @ used.T.astype(np.int64)) > 0
    order = np.argsort(-priority, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    before = place[:, np.newaxis] < place
    return np.where(meet & before, intensity[:, np.newaxis], 0.0)


def cut(weights: NDArray[np.float64], levels: ArrayLike) -> float:
    """Sum of the weights of the edges whose ends are on different levels."""
    levels = np.asarray(levels)
    return float(weights[levels[:, np.newaxis] != levels].sum())


def best_runs(weights: NDArray[np.float64], order: Sequence[int], n_levels: int) -> NDArray[np.int64]:
    """Cut an order into at most `n_levels` runs such that the edges between them weigh most.

    f(i, k) = max over j of f(j, k - 1) + the edges from the first j jobs to those from j up to i: O(n^2) per level.

    Parameters
    ----------
    weights : float64[n_jobs, n_jobs]
        Of the edges.
    order : sequence of int
        Jobs, such that every edge goes forward.
    n_levels : int
        At least 1.

    Returns
    -------
    int64[n_jobs]
        Level of each job, 0 for those that go first.
    """
    n = len(order)
    inside = np.zeros((n + 1, n + 1))  # weight of the edges from the first a to the first b jobs
    inside[1:, 1:] = weights[np.ix_(order, order)].cumsum(axis=0).cumsum(axis=1)
    gain = inside - np.diagonal(inside)[:, np.newaxis]  # [j, i]: from the first j to those from j up to i
    gain[np.tril_indices(n + 1, -1)] = -np.inf
    best = np.zeros(n + 1)
    starts = []
    for _ in range(n_levels - 1):
        through = best[:, np.newaxis] + gain
        starts.append(through.argmax(axis=0))
        best = through.max(axis=0)
    levels = np.zeros(n, np.int64)
    end = n
    for level in range(n_levels - 1, 0, -1):
        start = int(starts[level - 1][end])
        levels[np.asarray(order[start:end], np.int64)] = level
        end = start
    return np.unique(levels, return_inverse=True)[1].astype(np.int64)  # no empty levels between


def compress(weights: NDArray[np.float64], n_levels: int, *, n_orders: int = 10, seed: int = 0) -> NDArray[np.int64]:
    """Give every job a level, so that the order along edges is kept and the cut is as heavy as any order drawn allows.

    Parameters
    ----------
    weights : float64[n_jobs, n_jobs]
        From :func:`contention`.
    n_levels : int
        How many there are.
    n_orders : int
        How many orders are drawn.
    seed : int
        Of the orders.

    Returns
    -------
    int64[n_jobs]
        Level of each job, 0 for those that go first.

    Raises
    ------
    InputError
        If there is no level or no order, or edges go round in a circle.
    """
    if n_levels < 1 or n_orders < 1:
        raise InputError(f"levels and orders must be at least 1, got {n_levels} and {n_orders}")
    random = np.random.default_rng(seed)
    found = [best_runs(weights, _drawn_order(weights, random), n_levels) for _ in range(n_orders)]
    return max(found, key=lambda levels: cut(weights, levels))  # of equals the first


def _drawn_order(weights: NDArray[np.float64], random: np.random.Generator) -> list[int]:
    """Draw an order in which every edge goes forward."""
    edge = weights > 0
    waits_for = edge.sum(axis=0)
    ready = np.flatnonzero(waits_for == 0).tolist()
    order: list[int] = []
    while ready:
        job = ready.pop(int(random.integers(len(ready))))
        order.append(job)
        waits_for[edge[job]] -= 1
        ready += np.flatnonzero(edge[job] & (waits_for == 0)).tolist()
    if len(order) != len(weights):
        raise InputError("jobs cannot be ordered: the edges go round in a circle")
    return order
