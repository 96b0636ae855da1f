"""A threshold that is found exactly now and then, and taken as it is in between: selection for one comparison each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from .sparse_vector import SparseVector

EVERY = 32
"""Iterations that a threshold serves: the least of the authors' choices; the others are 64 and 128."""


class ReusedThreshold:
    """The magnitude of the k-th largest element in one iteration, taken for those after it too.

    Gradients change slowly from one iteration to the next, and so does this magnitude. So in between about k elements
    are selected, not exactly k.

    Parameters
    ----------
    k : int
        Elements to select.
    every : int
        Iterations after which it is found again.

    Raises
    ------
    InputError
        If one of them is below 1.

    References
    ----------
    Li and Hoefler (Ok-Topk), PPoPP 2022: thresholds are re-used, of a worker's own elements and of those of the sum.
    """

    def __init__(self, k: int, every: int = EVERY) -> None:
        if k < 1 or every < 1:
            raise InputError(f"a re-used threshold needs k and every of at least 1, got k={k}, every={every}")
        self.k, self.every = k, every
        self._iteration, self._value = 0, 0.0

    def of(self, values: NDArray[Any]) -> float:
        """Return the threshold of this iteration, and go on to the next.

        Parameters
        ----------
        values : [n]
            Elements to select from; looked at only when the threshold is due.

        Raises
        ------
        InputError
            If k is larger than n, or a value is NaN or infinite when the threshold is due.
        """
        n = len(values)
        if self.k > n:
            raise InputError(f"top-k of {n} elements needs k of 1..{n}, got k={self.k}")
        if self._iteration % self.every == 0:
            if not np.isfinite(values).all():
                raise InputError(f"a threshold needs finite values, got {values[~np.isfinite(values)][0]}")
            self._value = float(np.partition(np.abs(values.astype(np.float64)), n - self.k)[n - self.k])
        self._iteration += 1
        return self._value

    def select(self, values: NDArray[Any]) -> SparseVector:
        """Return the elements that are not 0 and have the threshold's magnitude at least.

        Raises
        ------
        InputError
            If k is larger than n, or a value is NaN or infinite.
        """
        threshold = self.of(values)
        vector = SparseVector.from_dense(values)
        return vector.at(np.abs(vector.value.astype(np.float64)) >= threshold)
