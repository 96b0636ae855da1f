"""How sure a fit is: the same fit to rows drawn with repetition, many times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DRAWS = 200
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class FittedValue:
    """A fitted number and the interval that it is in, with 95 % confidence.

    Parameters
    ----------
    value, low, high : float
        Value and interval in SI units.
    """

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Half of the interval, relative to the value; infinite for a value of 0."""
        return (self.high - self.low) / 2 / self.value if self.value else float("inf")


def bootstrap(
    fit: Callable[[NDArray[np.intp]], NDArray[np.float64]], sizes: NDArray[np.float64], seed: int
) -> tuple[FittedValue, ...]:
    """Fit all rows, then ``DRAWS`` times as many rows drawn with repetition.

    Parameters
    ----------
    fit : callable
        Function from the indices of rows to the fitted numbers.
    sizes : float64[n]
        Sizes of the rows: draws in which all have one size say nothing about a slope, and are drawn again.
    seed : int
        Seed of the draws.

    Returns
    -------
    tuple of FittedValue
        One per fitted number: that of all rows, and the percentiles of the others.

    References
    ----------
    Efron, "Bootstrap methods: another look at the jackknife", Ann. Statist. 7(1), 1979: pairs are drawn.
    """
    n = len(sizes)
    random = np.random.default_rng(seed)
    middle = fit(np.arange(n))
    fitted = np.empty((DRAWS, len(middle)))
    for i in range(DRAWS):
        rows = random.integers(0, n, n)
        while len(np.unique(sizes[rows])) < min(2, len(np.unique(sizes))):
            rows = random.integers(0, n, n)
        fitted[i] = fit(rows)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(fitted, (tail, 1 - tail), axis=0)
    return tuple(
        FittedValue(float(value), min(float(a), float(value)), max(float(b), float(value)))
        for value, a, b in zip(middle, low, high, strict=True)
    )
