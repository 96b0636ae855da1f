"""Measured rows of one table, or of a healthy and a slow one, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table, or of a healthy one and a slow one.

    Parameters
    ----------
    sizes : float64[n], bytes
        Sizes.
    times : float64[n], s
        Measured times.
    slow : bool[n]
        Whether a row is of the slow table.
    vague : bool[n]
        Whether the size of a row is not known: one number of a sweep.
    """

    sizes: NDArray[np.float64]
    times: NDArray[np.float64]
    slow: NDArray[np.bool_]
    vague: NDArray[np.bool_]

    @property
    def has_reference(self) -> bool:
        """Whether there are rows of a healthy table."""
        return bool((~self.slow).any())

    @property
    def shares_sizes(self) -> bool:
        """Whether a healthy row has the size of a slow one."""
        return bool(np.isin(self.sizes[self.slow], self.sizes[~self.slow]).any())

    def at(self, which: NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        return Rows(self.sizes[which], self.times[which], self.slow[which], self.vague[which])

    def runs(self) -> list[NDArray[np.intp]]:
        """Return the rows of each slow run, with all healthy ones: numbers of sweeps are of a run each."""
        slow, healthy = np.flatnonzero(self.slow), np.flatnonzero(~self.slow)
        if len(slow) > 1 and self.vague[slow].all():
            return [np.append(healthy, one) for one in slow]
        return [np.arange(len(self.sizes))]
