"""The score of a link: how much of what its jobs want to send is above its capacity, when each starts at its best.

The same optimum as :mod:`commsim.placement.score`, as an integer program: the check for small cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import BackendError, InputError
from commsim.core.value import Value, freeze
from commsim.workload.sharing.periodic import PeriodicJob

from .circles import ANGLES, LONGEST, QUANTUM, Circle, unify
from .search import search

ROUNDING = 1e-9
"""Part of the capacity, below which an excess is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkScore(Value):
    """How well jobs fit on one link.

    Parameters
    ----------
    score : float
        1 less the mean excess demand as a part of the capacity (Eqs. 1 and 2); 1 if nothing is in excess. It can be
        negative.
    shifts : float64[n_jobs], s
        How much later than given each job should start, less than its period (Eq. 5). That of the first is 0.
    circle : Circle
        On which they were found.
    is_exhaustive : bool
        Whether all turns were tried; else the best of several descents, one job at a time.
    """

    score: float
    shifts: NDArray[np.float64]
    circle: Circle
    is_exhaustive: bool


def score_link(
    jobs: Sequence[PeriodicJob],
    capacity: float,
    *,
    use: ArrayLike = 1.0,
    angles: int = ANGLES,
    step: float | None = None,
    quantum: float = QUANTUM,
    longest: float = LONGEST,
) -> LinkScore:
    """Turn the circles of jobs that share a link until as little as possible is above its capacity.

    A turn of all jobs together changes nothing, so the first stays where it is. All turns of the others by less than
    their periods (Eq. 4) are tried where that is little work (``search.EXHAUSTIVE``); or else only those that make a
    difference in the long run; or else one job after the other is turned, from several starts. The same input gives the
    same answer.

    Parameters
    ----------
    jobs : sequence of PeriodicJob
        At least one.
    capacity : float, bytes/s
        Of the link.
    use : float or float64[n_jobs]
        How many times its rate each job sends over the link.
    angles, step, quantum, longest
        As in :func:`commsim.placement.circles.unify`.

    Raises
    ------
    InputError
        If a number is out of its range.

    References
    ----------
    Rajasekaran, Ghobadi and Akella, "CASSINI: network-aware job scheduling in machine learning clusters", NSDI 2024,
    table 1.
    """
    if not 0 < capacity < np.inf:
        raise InputError(f"the capacity of a link is positive and finite, got {capacity:g} bytes/s")
    part = np.broadcast_to(np.asarray(use, np.float64), (len(jobs),)) / capacity
    circle = unify(jobs, angles=angles, step=step, quantum=quantum, longest=longest)
    turns, is_exhaustive = search(circle, part)
    shifts = circle.seconds(turns)
    score = float(score_at(circle, part[None], shifts)[0])
    return LinkScore(score, freeze(shifts, np.float64), circle, is_exhaustive)


def score_at(circle: Circle, part: NDArray[np.float64], shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of links when the jobs start at given times, rounded to angles.

    Parameters
    ----------
    part : float64[n_links, n_jobs]
        As in :func:`search_together`.
    shifts : float64[n_jobs], s
        One for each job.

    Returns
    -------
    float64[n_links]
    """
    excess = np.maximum(part @ circle.turned(shifts) - 1.0, 0.0)
    scores: NDArray[np.float64] = 1.0 - np.where(excess > ROUNDING, excess, 0.0).mean(axis=1)
    return scores


def least_excess(circle: Circle, part: NDArray[np.float64]) -> tuple[float, NDArray[np.int64]]:
    """Solve for the turns of one link's jobs by branch and cut.

    One binary variable says whether job j is turned by k; one continuous variable per angle is at least the demand
    above the capacity, and their mean is minimised.

    Parameters
    ----------
    circle : Circle
        Some hundred angles and positions in all are quick.
    part : float64[n_jobs]
        Times which, a job's demand is a part of the capacity.

    Returns
    -------
    float, int64[n_jobs]
        The least mean excess as a part of the capacity, and turns that reach it.

    Raises
    ------
    BackendError
        If SciPy is missing, or its solver gives up.
    """
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError:
        raise BackendError("integer programs need SciPy: install commsim[opt]") from None
    n, positions = circle.n_angles, circle.n_positions
    owner = np.repeat(np.arange(len(positions)), positions)
    turn = np.concatenate([np.arange(count) for count in positions])
    columns = circle.reach - turn[:, None] + np.arange(n)
    demand = (circle.demand[owner[:, None], columns] * part[owner][:, None]).T  # [n, n_turns]
    one_each = (owner == np.arange(len(positions))[:, None]).astype(np.float64)
    upper = np.where((owner == 0) & (turn > 0), 0.0, 1.0)  # the first job stays where it is
    found = milp(
        np.concatenate((np.zeros(len(turn)), np.full(n, 1 / n))),
        integrality=np.concatenate((np.ones(len(turn)), np.zeros(n))),
        bounds=Bounds(0.0, np.concatenate((upper, np.full(n, np.inf)))),
        constraints=[
            LinearConstraint(np.hstack((one_each, np.zeros((len(positions), n)))), 1.0, 1.0),
            LinearConstraint(np.hstack((demand, -np.eye(n))), -np.inf, 1.0),
        ],
        options={"mip_rel_gap": 0.0},
    )
    if found.x is None:
        raise BackendError(f"the integer program was not solved: {found.message}")
    chosen = found.x[: len(turn)] > 0.5
    return float(found.fun), turn[chosen].astype(np.int64)
