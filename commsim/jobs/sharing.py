"""What jobs and background traffic that share a network cost each other: slowdowns, and their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.result import Result

# Percentiles of the background messages' times and slowdowns.
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)
__all__ = ["PERCENTILES", "Sharing"]


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """What jobs and background traffic take together, and what they would take on their own.

    Parameters
    ----------
    alone : tuple of float, s
        Time of each job without the others.
    took, ideal : float64[n_messages], s
        Time of each background message, and its time without other traffic.
    transports : tuple of str
        How each job's packets are sent, where jobs differ; else empty.
    """

    alone: tuple[float, ...]
    took: NDArray[np.float64]
    ideal: NDArray[np.float64]
    transports: tuple[str, ...] = ()

    def slowdowns(self, results: Sequence[Result]) -> tuple[float, ...]:
        """Return how many times its time alone each job takes; 1 of one that takes no time alone."""
        each = zip(results, self.alone, strict=True)
        return tuple(result.time / alone if alone else 1.0 for result, alone in each)

    def background(self) -> dict[str, Any] | None:
        """Return completion times and slowdowns of background messages, in percentiles; None without messages."""
        if not len(self.took):
            return None
        slowdown = np.maximum(self.took / self.ideal, 1.0)
        return {
            "messages": len(self.took),
            "mean_s": float(self.took.mean()),
            "percentiles": list(PERCENTILES),
            "time_s": np.percentile(self.took, PERCENTILES).tolist(),
            "slowdown": np.percentile(slowdown, PERCENTILES).tolist(),
        }
