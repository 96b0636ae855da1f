"""How likely measured times are with a prediction: errors of the model that near sizes share, and noise.

Errors of the model are those of healthy machines of the same kind (:mod:`commsim.nccl.error_model`). A healthy table
and a slow one of the same machines have them in common, so that of the two only their runs' noise and the fault differ.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.diagnosis.causes.fault import Fault
from commsim.diagnosis.causes.rows import Rows
from commsim.nccl.error_model import ErrorModel

# Another run on the same machines: standard deviation of the logarithm of its time, of all sizes together and of each,
# below and from 16 MiB. Repeated public runs of one operator at large sizes lie within 3 %.
AGAIN, ROW_SMALL, ROW_LARGE, LARGE = 0.03, 0.08, 0.03, 2**24
# Times that a row's noise is of that, below and from 16 MiB each by itself and each as likely: some fabrics are shared
# with others, and some hosts are busy; so many rows show it.
NOISES, TOLD_FROM = (1.0, 2.5), 6
# Further standard deviation of what one number says whose size is not stated: an average, a peak, of some sizes.
VAGUE = 0.12
# A row that lies farther than this from five with it in their middle is taken to be disturbed by that much.
DISTURBED, WINDOW = 0.25, 2
# What is doubted of a fault's effect is itself known badly: parts of the stated doubt, each as likely. A machine that
# the model knows well has its faults' effects as predicted.
DOUBTS = (1.0, 0.1)
# What is left of the correlation of the model's errors on two tables where calls go another way in one.
KEPT = 0.3
# What a cause that is not tried does to the logarithm of a time: standard deviation of one factor, of what it does by
# size, and of each row; all are far beyond the errors of the model on healthy machines.
ANY_FACTOR, ANY_SHAPE, ANY_ROW = 1.0, 0.5, 0.2
# Normal distributions that Student's t is made of.
N_SCALES = 9


def log_likelihood(
    rows: Rows, predicted: NDArray[np.float64], error: ErrorModel, effect: NDArray[np.float64],
    fault: Fault | None, disturbed: NDArray[np.float64],
) -> float:  # fmt: skip
    """Return the logarithm of the density of the measured times.

    Parameters
    ----------
    rows : Rows
        Measured.
    predicted : float64[n], s
        Predicted, with the fault for the slow table.
    error : ErrorModel
        Errors of the kind of machines.
    effect : float64[n]
        Logarithm of what the fault does to each row.
    fault : Fault or None
        The fault; None without one.
    disturbed : float64[n]
        Further standard deviation of each row.
    """
    residual = np.log(rows.times / predicted) - [error.of(size).middle for size in rows.sizes]
    doubt, noise = (0.0, 0.0) if fault is None else (fault.doubt, fault.noise)
    fixed = np.diag(disturbed**2 + noise**2 * rows.slow)
    # What is known of the fault's effect: half of it one factor, half of it by size.
    doubted = np.outer(effect, effect) * doubt**2 * (0.5 + 0.5 * _alike(rows, error))
    model = _of_model(rows, error)
    if fault is not None and fault.other_way:
        model = np.where(rows.slow[:, None] == rows.slow[None, :], model, KEPT * model)
    return _log_of(rows, residual, error, model, [fixed + part**2 * doubted for part in (DOUBTS if doubt else (1.0,))])


def log_of_none(
    rows: Rows, predicted: NDArray[np.float64], error: ErrorModel, disturbed: NDArray[np.float64]
) -> float:  # fmt: skip
    """Return the logarithm of the density with a cause that is not tried: any factor, and any smooth shape.

    Parameters
    ----------
    rows, error, disturbed
        Same as in :func:`log_likelihood`.
    predicted : float64[n], s
        Predicted without a fault.
    """
    residual = np.log(rows.times / predicted) - [error.of(size).middle for size in rows.sizes]
    both = np.outer(rows.slow, rows.slow)
    fixed = both * (ANY_FACTOR**2 + ANY_SHAPE**2 * _alike(rows, error))
    fixed += np.diag(disturbed**2 + ANY_ROW**2 * rows.slow)
    return _log_of(rows, residual, error, _of_model(rows, error), [fixed])


def _log_of(
    rows: Rows, residual: NDArray[np.float64], error: ErrorModel, model: NDArray[np.float64],
    fixed: Sequence[NDArray[np.float64]],
) -> float:  # fmt: skip
    """Return the logarithm of the density of residuals.

    It is over the tails of the model's errors, the noise of runs, and what else there may be, each as likely.
    """
    noises = NOISES if len(residual) >= TOLD_FROM else NOISES[:1]
    runs = [_of_runs(rows, *times) for times in itertools.product(noises, noises)]
    scales = itertools.product(variances(error.likeness.degrees), runs, fixed)
    every = np.array([model * variance + noise + more for variance, noise, more in scales])
    return float(np.logaddexp.reduce(_logs_normal(residual, every))) - math.log(len(every))


@functools.lru_cache(8)
def variances(degrees: float) -> tuple[float, ...]:
    """Return variances, each as likely, of which normal distributions make up Student's t of so many degrees.

    Only the model's errors have its tails: runs on the same machines are near each other.
    """
    at = np.linspace(0, 12, 24_001)[1:]  # precisions, of a gamma distribution with the mean 1
    sums = np.cumsum(at ** (degrees / 2 - 1) * np.exp(-at * degrees / 2))
    middles = (np.arange(N_SCALES) + 0.5) / N_SCALES
    return tuple((1 / np.interp(middles, sums / sums[-1], at)).tolist())


def _alike(rows: Rows, error: ErrorModel) -> NDArray[np.float64]:
    """Return how alike what depends on the size is at each two rows."""
    found: NDArray[np.float64] = np.exp(-(_octaves(rows.sizes) ** 2) / (2 * error.likeness.octaves**2))
    return found


def _octaves(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    at = np.log2(np.maximum(sizes, 1.0))
    apart: NDArray[np.float64] = at[:, None] - at[None, :]
    return apart


def _of_model(rows: Rows, error: ErrorModel) -> NDArray[np.float64]:
    """Covariance of the model's errors: the same for two rows of one size."""
    scale = np.array([error.of(size).scale for size in rows.sizes])
    found: NDArray[np.float64] = error.likeness.correlations(rows.sizes) * np.outer(scale, scale)
    return found


def _of_runs(rows: Rows, small: float, large: float) -> NDArray[np.float64]:
    """Covariance of what two runs on the same machines differ by, and of numbers whose size is not known."""
    row = np.where(rows.sizes < LARGE, small * ROW_SMALL, large * ROW_LARGE)
    same = rows.slow[:, None] == rows.slow[None, :]
    both = rows.vague[:, None] & rows.vague[None, :]
    found: NDArray[np.float64] = np.diag(row**2) + AGAIN**2 * same + VAGUE**2 * both
    return found


def disturbances(rows: Rows, whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far single rows lie from those beside them: first calls, and calls that something else disturbed.

    A row is compared with the middle of five, and with the line through them: a fault whose effect grows with the size
    makes rows of a table with few sizes differ, too.

    Parameters
    ----------
    rows : Rows
        Measured, each table in the order of sizes.
    whole : float64[n], s
        Predicted without a fault.
    """
    logs, found = np.log(rows.times / whole), np.zeros(len(rows.times))
    octaves = np.log2(np.maximum(rows.sizes, 1.0))
    for table in (np.flatnonzero(rows.slow), np.flatnonzero(~rows.slow)):
        for i, row in enumerate(table):
            first = max(0, min(i - WINDOW, len(table) - 2 * WINDOW - 1))
            near = table[first : first + 2 * WINDOW + 1]
            far = _apart(octaves[near], logs[near], float(octaves[row]), float(logs[row]))
            found[row] = far if far > DISTURBED and len(table) > 2 * WINDOW else 0.0
    return found


def _apart(at: NDArray[np.float64], values: NDArray[np.float64], here: float, value: float) -> float:
    """Return how far a value is from the middle of some, or from the line of middle slope through them if that is near.

    References
    ----------
    P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63, 1968.
    """
    a, b = np.triu_indices(len(at), 1)
    a, b = a[at[a] != at[b]], b[at[a] != at[b]]
    slope = float(np.median((values[b] - values[a]) / (at[b] - at[a]))) if len(a) else 0.0
    line = float(np.median(values - slope * at)) + slope * here
    return min(abs(value - float(np.median(values))), abs(value - line))


def _logs_normal(residual: NDArray[np.float64], covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the density of multivariate normal distributions, float64[n_covariances]."""
    lower = np.linalg.cholesky(covariances)
    far = (np.linalg.solve(lower, residual[:, None]) ** 2).sum((1, 2))
    roots = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(1)
    found: NDArray[np.float64] = -far / 2 - roots - len(residual) / 2 * math.log(2 * math.pi)
    return found
