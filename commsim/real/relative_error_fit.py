"""Fit costs to measured times by their relative error, so that small messages count as much as large ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.extras import needs

# Relative error from which on a point pulls with constant force only: one disturbed run must not bend the line.
_TAME = 0.2
# Relative change of costs and loss at which the search ends.
_EXACT = 1e-12


def fit_costs(columns: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find positive costs x with ``columns @ x`` close to `seconds`, relatively.

    Least squares of the logarithms of the relative errors over the logarithms of x, with Huber's loss, by SciPy.

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
        If there are fewer runs than costs, a time is not positive, or SciPy is not installed.

    References
    ----------
    Huber, "Robust estimation of a location parameter", Ann. Math. Stat. 1964.
    """
    if len(seconds) < columns.shape[1] or not (seconds > 0).all():
        raise InputError(f"a fit of {columns.shape[1]} costs needs as many positive times, got {seconds.tolist()}")
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise InputError(needs("fitting costs needs SciPy", "opt")) from None

    def error(log_x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log(columns @ np.exp(log_x) / seconds))

    def slope(log_x: NDArray[np.float64]) -> NDArray[np.float64]:
        terms = columns * np.exp(log_x)
        return np.asarray(terms / terms.sum(axis=1)[:, np.newaxis])

    start = np.log(_starting_point(columns, seconds))
    with np.errstate(all="ignore"):  # a step that goes too far is tried again, shorter
        solution = least_squares(
            error, start, slope, loss="huber", f_scale=_TAME, ftol=_EXACT, xtol=_EXACT, gtol=_EXACT
        )
    return np.asarray(np.exp(solution.x))


def _starting_point(columns: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each cost as if it were the only one in the run that speaks most for it."""
    alone = np.divide(seconds[:, np.newaxis], columns, out=np.full(columns.shape, np.inf), where=columns > 0)
    return np.asarray(alone.min(axis=0))
