"""Fit costs to measured times by their relative error, so that small messages count as much as large ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

_TAME = 0.2
"""Relative error from which on a point pulls with constant force only: one disturbed run must not bend the line."""

_ITERATIONS = 200


def fit_costs(columns: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find positive costs x with ``columns @ x`` close to `seconds`, relatively.

    Gauss-Newton steps on the logarithms of x, each with Huber's weights and as much damping as it needs to descend.

    Parameters
    ----------
    columns : float64[n, m]
        How often each run pays each cost; not negative, and no row without any.
    seconds : float64[n], s
        What the runs took; positive.

    Returns
    -------
    float64[m]
        The costs. One that the runs speak against comes out tiny, not negative.

    Raises
    ------
    InputError
        If there are fewer runs than costs, or a time is not positive.

    References
    ----------
    Huber, "Robust estimation of a location parameter", Ann. Math. Stat. 1964. Marquardt, J. SIAM 1963.
    """
    if len(seconds) < columns.shape[1] or not (seconds > 0).all():
        raise InputError(f"a fit of {columns.shape[1]} costs needs as many positive times, got {seconds.tolist()}")
    log_x = np.log(_starting_point(columns, seconds))
    damping, loss = 1e-3, _loss(columns, seconds, log_x)
    for _ in range(_ITERATIONS):
        terms = columns * np.exp(log_x)
        model = terms.sum(axis=1)
        error, slope = np.log(model / seconds), terms / model[:, np.newaxis]
        weight = np.minimum(1.0, _TAME / np.maximum(np.abs(error), 1e-300))
        normal = slope.T @ (weight[:, np.newaxis] * slope)
        step = np.linalg.solve(normal + damping * np.eye(len(log_x)), slope.T @ (weight * error))
        tried = log_x - np.clip(step, -2, 2)
        if (new := _loss(columns, seconds, tried)) < loss:
            log_x, loss, damping = tried, new, damping / 4
        elif damping > 1e6:
            break
        else:
            damping *= 8
    out: NDArray[np.float64] = np.exp(log_x)
    return out


def _starting_point(columns: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each cost as if it were alone in the run that speaks most for it."""
    alone = np.divide(seconds[:, np.newaxis], columns, out=np.full(columns.shape, np.inf), where=columns > 0)
    return np.asarray(alone.min(axis=0))


def _loss(columns: NDArray[np.float64], seconds: NDArray[np.float64], log_x: NDArray[np.float64]) -> float:
    error = np.abs(np.log(columns @ np.exp(log_x) / seconds))
    return float(np.where(error < _TAME, error**2 / 2, _TAME * (error - _TAME / 2)).sum())
