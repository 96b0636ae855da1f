"""What a job sends with each shift of its start: which of few rates, at instants in the order of its iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class ShiftedRates(NamedTuple):
    """Rates of one profile at sampled instants, for each of its shifts.

    In the order of their time in the iteration, the instants at which a job has one of its rates are few runs, whatever
    the shift.

    Parameters
    ----------
    levels : float64[n_levels], bytes/s
        Rates that the job has, ascending.
    order : intp[n_instants]
        Instants by their time in an iteration that is not shifted.
    run : int64[n_runs, 3]
        Level of a run of instants, its first instant in that order, and the one after its last.
    first_run : int64[n_shifts + 1]
        Where the runs of each shift begin, and where the last one's end.
    """

    levels: NDArray[np.float64]
    order: NDArray[np.intp]
    run: NDArray[np.int64]
    first_run: NDArray[np.int64]


def shifted_rates(
    rates: NDArray[np.float64], in_iteration: NDArray[np.float64], usual: Sequence[float]
) -> ShiftedRates:
    """Find the runs of instants with one rate.

    Parameters
    ----------
    rates : float64[n_shifts, n_instants], bytes/s
        What the job sends at each instant, with each shift.
    in_iteration : float64[n_instants], s
        Time since the start of an iteration that is not shifted.
    usual : sequence of float, bytes/s
        Rates that are looked for first; all others are found where one is missing.
    """
    order = np.argsort(in_iteration, kind="stable")
    levels, number = numbered(rates[:, order], usual)
    n_shifts, n_instants = number.shape
    begins = np.ones(number.shape, np.bool_)
    begins[:, 1:] = number[:, 1:] != number[:, :-1]
    shift, start = np.nonzero(begins)
    end = np.where(np.append(np.diff(shift), 1) > 0, n_instants, np.append(start[1:], n_instants))
    run = np.stack((number[shift, start].astype(np.int64), start, end), axis=1)
    return ShiftedRates(levels, order, run, np.searchsorted(shift, np.arange(n_shifts + 1)))


def numbered(rates: NDArray[np.float64], usual: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return the values that there are, or `usual` ones if there are no others, ascending, and the number of each.

    Parameters
    ----------
    rates : float64[n_shifts, n_instants]
    usual : sequence of float

    Returns
    -------
    float64[n_levels], uint8[n_shifts, n_instants]
    """
    for values in (set(usual), set(rates.ravel().tolist())):
        levels = np.array(sorted(values))
        number = np.zeros(rates.shape, np.uint8)
        for level in levels[:-1]:
            number += rates > level
        if (levels[number] == rates).all():
            break
    return levels, number
