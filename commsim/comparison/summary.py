"""How far predictions are from measurements, in a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError

from .pairs import Pair


@dataclass(frozen=True, slots=True)
class Summary:
    """Absolute relative errors of all pairs.

    Parameters
    ----------
    n : int
        Pairs that have an error.
    median, p90, worst : float
        Of these.
    worst_size : float, bytes
        Where the worst is.
    bias : float
        Median of the errors with their signs: more than 0 when predictions are too slow.
    """

    n: int
    median: float
    p90: float
    worst: float
    worst_size: float
    bias: float


def summarise(pairs: Sequence[Pair]) -> Summary:
    """Summarise the errors.

    Raises
    ------
    InputError
        If no pair has one.
    """
    errors = [(pair.error, pair.measured.size) for pair in pairs if pair.error is not None]
    if not errors:
        raise InputError("nothing to compare: no measurement has a time that is not 0")
    sizes = np.array([abs(error) for error, _ in errors])
    worst = int(sizes.argmax())
    bias = float(np.median([error for error, _ in errors]))
    median, p90 = (float(q) for q in np.percentile(sizes, (50, 90)))
    return Summary(len(errors), median, p90, float(sizes[worst]), errors[worst][1], bias)
