"""How likely measured times are with a prediction: errors of the model that near sizes share, and noise.

Errors of the model are those of healthy machines of the same kind (:mod:`commsim.nccl.error_model`). A healthy table
and a slow one of the same machines have them in common, so that of the two only their runs' noise and the fault differ.

How well the model knows these machines, and how noisy the runs are, is not known beforehand: the density is the mean
over the widths that operators have, each with its share. A log whose shape lies within a few per cent of a prediction
thereby tells causes apart sharply, and one that is far from all predictions does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.diagnosis.causes.fault import Fault
from commsim.diagnosis.causes.rows import Rows
from commsim.nccl.error_model import STEADY_FROM, ErrorModel, Likeness

# Another run on the same machines: standard deviation of the logarithm of its time, of all sizes together. Repeated
# public runs of one operator at large sizes lie within 3 %.
AGAIN = 0.03
# Further standard deviation of what one number says whose size is not stated: an average, a peak, of some sizes.
VAGUE = 0.12
# A row that lies farther than this from five with it in their middle is taken to be disturbed by that much.
DISTURBED, WINDOW = 0.25, 2
# Part of the rows of healthy public tables that are (50 of 2,006): many are a sign of a fabric that others share.
OFTEN_DISTURBED = 0.025
# What is doubted of a fault's effect is itself known badly: parts of the stated doubt, each as likely. A machine that
# the model knows well has its faults' effects as predicted.
DOUBTS = (1.0, 0.1)
# What is left of the correlation of the model's errors on two tables where calls go another way in one.
KEPT = 0.3
# What a cause that is not tried does to the logarithm of a time: standard deviation of one factor, of what it does by
# size, and of each row; all are far beyond the errors of the model on healthy machines.
ANY_FACTOR, ANY_SHAPE, ANY_ROW = 1.0, 0.5, 0.2
# More than any distance of residuals in standard deviations: see ``_logs_normal``.
CORNER = 1e18


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
    disturbed = np.where(rows.slow & (noise > 0), 0.0, disturbed)  # an unsteady fabric is what disturbs them
    fixed = np.diag(disturbed**2 + noise**2 * rows.slow)
    # What is known of the fault's effect: half of it one factor, half of it by size.
    doubted = np.outer(effect, effect) * doubt**2 * (0.5 + 0.5 * _alike(rows, error))
    kept = KEPT if fault is not None and fault.other_way else 1.0
    parts = DOUBTS if doubt else (1.0,)
    happened = 0.0 if noise else _log_of_disturbances(rows, disturbed)
    return _log_of(rows, residual, error, [fixed + part**2 * doubted for part in parts], kept) + happened


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
    return _log_of(rows, residual, error, [fixed]) + _log_of_disturbances(rows, disturbed)


def _log_of_disturbances(rows: Rows, disturbed: NDArray[np.float64]) -> float:
    """Return the logarithm of how likely it is that just these rows of the slow table are disturbed."""
    n = int((disturbed[rows.slow] > 0).sum())
    return n * math.log(OFTEN_DISTURBED) + (int(rows.slow.sum()) - n) * math.log1p(-OFTEN_DISTURBED)


def _log_of(
    rows: Rows, residual: NDArray[np.float64], error: ErrorModel, fixed: Sequence[NDArray[np.float64]],
    kept: float = 1.0,
) -> float:  # fmt: skip
    """Return the logarithm of the density of residuals: the mean over all widths, and over what else there may be."""
    scale = np.array([error.of(size).scale for size in rows.sizes])
    logs = log_densities(rows, residual, scale, error.likeness, fixed, kept)
    return float(np.logaddexp.reduce((logs + error.likeness.log_shares[..., None]).ravel())) - math.log(len(fixed))


def log_densities(
    rows: Rows, residual: NDArray[np.float64], scale: NDArray[np.float64], likeness: Likeness,
    fixed: Sequence[NDArray[np.float64]], kept: float = 1.0,
) -> NDArray[np.float64]:  # fmt: skip
    """Return the logarithm of the density of residuals with each width of the model's errors and of the runs' noise.

    Parameters
    ----------
    rows : Rows
        Measured.
    residual : float64[n]
        Logarithm of measured over predicted times, less the middle of such machines.
    scale : float64[n]
        Scale of the class of each row.
    likeness : Likeness
        Widths.
    fixed : sequence of float64[n, n]
        Further covariances, each by itself.
    kept : float
        Part of the model's errors' covariance that a healthy and a slow table have in common.

    Returns
    -------
    float64[n_common, n_near, n_small, n_large, n_fixed]
    """
    same = rows.slow[:, None] == rows.slow[None, :]
    common, near = (part * np.outer(scale, scale) * np.where(same, 1.0, kept) for part in likeness.parts(rows.sizes))
    models = [a.scale**2 * common + b.scale**2 * near for a, b in itertools.product(likeness.common, likeness.near)]
    runs = [
        more + _of_runs(rows, small.scale, large.scale)
        for small, large, more in itertools.product(likeness.small, likeness.large, fixed)
    ]
    every = np.array(models)[:, None] + np.array(runs)
    shape = (*(len(widths) for widths in likeness[1:]), len(fixed))
    return _logs_normal(residual, every.reshape(-1, *common.shape)).reshape(shape)


def _alike(rows: Rows, error: ErrorModel) -> NDArray[np.float64]:
    """Return how alike what depends on the size is at each two rows."""
    return error.likeness.parts(rows.sizes)[1]


def _of_runs(rows: Rows, small: float, large: float) -> NDArray[np.float64]:
    """Covariance of what two runs on the same machines differ by, and of numbers whose size is not known."""
    row = np.where(rows.sizes < STEADY_FROM, small, large)
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
    """Return the logarithm of the density of multivariate normal distributions, float64[n_covariances].

    With the residual as one more row and column, the last row of the Cholesky factor solves for it at once.
    """
    n = len(residual)
    bordered = np.empty((len(covariances), n + 1, n + 1))
    bordered[:, :n, :n], bordered[:, n, :n], bordered[:, :n, n] = covariances, residual, residual
    bordered[:, n, n] = CORNER
    lower = np.linalg.cholesky(bordered)
    far = (lower[:, n, :n] ** 2).sum(1)
    roots = np.log(np.diagonal(lower, axis1=1, axis2=2)[:, :n]).sum(1)
    found: NDArray[np.float64] = -far / 2 - roots - n / 2 * math.log(2 * math.pi)
    return found
