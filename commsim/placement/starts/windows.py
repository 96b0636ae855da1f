"""Windows of start times on one circle: how much earlier and later a job can start, and the middle of that."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.placement.starts.circles import Circle
from commsim.placement.starts.phase_edges import LESS, costs_of_starts

# Times that each job is moved to the middle; the window of one changes when the others have moved.
_ROUNDS = 2


def in_the_middle(
    circle: Circle,
    part: NDArray[np.float64],
    weight: NDArray[np.int64],
    shifts: NDArray[np.float64],
    free: Sequence[int],
) -> tuple[NDArray[np.float64], list[tuple[float, float]]]:
    """Move jobs to the middle of their windows.

    Parameters
    ----------
    part, weight, shifts
        Same as in :func:`commsim.placement.starts.phase_edges.meet`.
    free : sequence of int
        Numbers of the jobs that may be moved.

    Returns
    -------
    float64[n_jobs], list of (float, float), s
        Start times, and the window of each job from there (:func:`free_window`).
    """
    at = shifts.copy()
    for _ in range(_ROUNDS):
        for i in free:
            early, late = free_window(circle, part, weight, at, i)
            if early + late < circle.period[i] * (1 - 1e-9):
                at[i] = (at[i] + (late - early) / 2) % circle.period[i]
    return at, [free_window(circle, part, weight, at, i) for i in range(len(at))]


def free_window(
    circle: Circle, part: NDArray[np.float64], weight: NDArray[np.int64], shifts: NDArray[np.float64], j: int
) -> tuple[float, float]:
    """Return how much earlier and how much later a job can start, the others held, without more excess.

    Parameters
    ----------
    part, weight, shifts
        Same as in :func:`commsim.placement.starts.phase_edges.meet`.
    j : int
        Number of the job.

    Returns
    -------
    float, float, s
        Both half of the period where the job may start at any time.
    """
    on = part[:, j] > 0
    others = np.flatnonzero((part[on] > 0).any(axis=0) & (np.arange(len(shifts)) != j)).tolist()
    times, cost, _ = costs_of_starts(circle, part[on], weight[on], shifts, j, others)
    period = float(circle.period[j])
    is_free = cost[1:] <= cost[0] + LESS * circle.perimeter
    if is_free.all():
        return period / 2, period / 2
    later = (times[1:] - times[0]) % period
    order = np.argsort(later, kind="stable")
    later, is_free = later[order], is_free[order]
    n_late, n_early = int(is_free.argmin()), int(is_free[::-1].argmin())
    late = float(later[n_late - 1]) if n_late else 0.0
    early = float(period - later[-n_early]) if n_early else 0.0
    return early, late
