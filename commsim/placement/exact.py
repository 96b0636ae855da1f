"""The same optimum as :mod:`commsim.placement.score`, as an integer program: the check for small cases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError

from .circles import Circle


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
