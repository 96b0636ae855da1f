"""How far measured times of healthy machines lie from predicted ones: the distribution, and how alike near sizes are.

The logarithm of measured over predicted is taken to be Student's t around the middle of the interval of the machines
and sizes (:mod:`commsim.nccl.intervals`). Its width is a part of the interval's, and the weight of its tails one number
for all: those with which the errors of operators left out are as frequent as it says, each operator with the same
weight. (An interval has 80 % of the rows, whoever measured them, and is narrower.) The errors of two sizes of one table
are correlated, and the less so the more octaves lie between them; a factor that is common to a whole table is not seen
in the public ones. `python -m benchmarks.nccl_tables.intervals` finds these numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from .intervals import EVERY, intervals, shape_of_errors, size_class

# Sizes of one class from which on their middle has lighter tails than one of them.
SEVERAL = 3
# Angles at which the distribution is summed up: quantiles are then right to six digits.
N_ANGLES = 20_001


@dataclass(frozen=True, slots=True)
class ErrorModel:
    """Distribution of the logarithm of measured over predicted time, on healthy machines that nothing was fitted on.

    Parameters
    ----------
    kind : str
        Kind of machines whose tables it is of; that of all kinds where `is_of_kind` is false.
    is_of_kind : bool
        Whether there are tables of this kind. Where there are none, those of all kinds are taken.
    degrees : float
        Degrees of freedom of Student's t.
    width : float
        Its scale, as a part of half of the interval.
    middle_degrees, middle_width : float
        The same of the middle of several sizes of one class in a table.
    correlation : float
        Correlation of the errors of two calls of the same size in one table.
    octaves : float
        Distance of two sizes, in powers of two, at which that has fallen by ``exp(-1/2)``.
    """

    kind: str
    is_of_kind: bool
    degrees: float
    width: float
    middle_degrees: float
    middle_width: float
    correlation: float
    octaves: float

    def ends(self, size: float) -> tuple[float, float]:
        """Return the logarithms between which 80 % of the rows of a size in bytes lie."""
        low, high = intervals()[self.kind if self.is_of_kind else EVERY, size_class(size)]
        return math.log(low), math.log(high)

    def middle(self, size: float) -> float:
        """Return the logarithm that half of the rows of a size in bytes exceed."""
        return sum(self.ends(size)) / 2

    def scale(self, size: float) -> float:
        """Return the scale of Student's t at a size in bytes."""
        low, high = self.ends(size)
        return self.width * (high - low) / 2

    def exceeded(self, size: float, share: float) -> float:
        """Return the logarithm that a share of the rows of a size exceeds.

        Parameters
        ----------
        size : float, bytes
            Size of the operation.
        share : float
            Share of healthy rows that are slower: the rate of false alarms of a limit there.
        """
        return self.middle(size) + self.scale(size) * t_quantile(share, self.degrees)

    def middle_exceeded(self, sizes: Sequence[float], share: float) -> float:
        """Return the logarithm that the middle of the sizes of one class exceeds in a share of the tables.

        Parameters
        ----------
        sizes : sequence of float, bytes
            Sizes of one class; fewer than ``SEVERAL`` have the tails of one row.
        share : float
            Share of healthy tables that are slower.
        """
        if len(sizes) < SEVERAL:
            return self.exceeded(sizes[0], share)
        low, high = self.ends(sizes[0])
        return (low + high) / 2 + self.middle_width * (high - low) / 2 * t_quantile(share, self.middle_degrees)

    def share_slower(self, size: float, log: float) -> float:
        """Return the share of healthy rows of a size in bytes that are slower than a logarithm of the ratio."""
        return t_share((log - self.middle(size)) / self.scale(size), self.degrees)

    def correlations(self, sizes: Sequence[float]) -> NDArray[np.float64]:
        """Return the correlation of the errors of sizes in bytes of one table, float64[n, n]."""
        at = np.log2(np.asarray(sizes, np.float64))
        apart = (at[:, None] - at[None, :]) / self.octaves
        found: NDArray[np.float64] = self.correlation * np.exp(-(apart**2) / 2)
        np.fill_diagonal(found, 1.0)
        return found

    def log_likelihood(self, sizes: Sequence[float], logs: Sequence[float]) -> float:
        """Return the logarithm of the density of the errors of one table, all sizes together.

        Parameters
        ----------
        sizes : sequence of float, bytes
            Sizes.
        logs : sequence of float
            Logarithms of measured over predicted time.

        Notes
        -----
        Multivariate Student's t: the rows of a table share how unusual it is.
        """
        scales = np.array([self.scale(size) for size in sizes])
        off = (np.asarray(logs) - [self.middle(size) for size in sizes]) / scales
        factor = np.linalg.cholesky(self.correlations(sizes))
        far = float((np.linalg.solve(factor, off) ** 2).sum())
        n, nu = len(scales), self.degrees
        constant = math.lgamma((nu + n) / 2) - math.lgamma(nu / 2) - n / 2 * math.log(nu * math.pi)
        spread = float(np.log(scales).sum() + np.log(np.diagonal(factor)).sum())
        return constant - spread - (nu + n) / 2 * math.log1p(far / nu)


@functools.cache
def error_model(kind: str) -> ErrorModel:
    """Return the errors of a kind of machines.

    Parameters
    ----------
    kind : str
        As :func:`commsim.nccl.intervals.kind_of` says, or ``rccl``.
    """
    return ErrorModel(kind, any(kind == known for known, _ in intervals()), *shape_of_errors())


@functools.lru_cache(256)
def t_quantile(share: float, degrees: float) -> float:
    """Return what a share of Student's t exceeds.

    Parameters
    ----------
    share : float
        Share, between 0 and 1.
    degrees : float
        Degrees of freedom.

    Raises
    ------
    InputError
        If the share is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise InputError(f"a share must be between 0 and 1, got {share:g}")
    angles, below = _sums(degrees)
    return math.sqrt(degrees) * math.tan(float(np.interp(1 - share, below, angles)))


def t_share(value: float, degrees: float) -> float:
    """Return the share of Student's t that exceeds a value."""
    angles, below = _sums(degrees)
    return 1 - float(np.interp(math.atan(value / math.sqrt(degrees)), angles, below))


@functools.lru_cache(8)
def _sums(degrees: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return angles, and the share of Student's t below the tangent of each times the root of the degrees."""
    angles = np.linspace(-math.pi / 2, math.pi / 2, N_ANGLES)
    density = np.cos(angles).clip(0) ** (degrees - 1)
    sums = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return angles, sums / sums[-1]
