"""A fault: the ground with it, the cause that it stands for, and how sure the model is of what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# How far the logarithm of a fault's effect may be off, as a part of it: what is counted (NICs, algorithms, rates of
# ports), what goes another way through a machine, and what is any factor at all.
COUNTED, ROUNDABOUT = 0.08, 0.25
__all__ = ["COUNTED", "ROUNDABOUT", "Fault", "Timed"]


class Timed(Protocol):
    """What gives times by size: a ground of the closed form, or a scenario that is simulated."""

    def times(self, sizes: Sequence[float]) -> NDArray[np.float64]:
        """Return the time of a call of each size in bytes, s."""
        ...


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that is injected into the model.

    Parameters
    ----------
    label : str
        Cause that it stands for, one of :data:`commsim.diagnosis.causes.labels.CAUSES`.
    text : str
        What is so, in the field's words.
    ground : Timed
        Ground with it.
    weight : float
        Likelihood beforehand among the faults of its cause, relative to the others.
    doubt : float
        Standard deviation of the logarithm of its effect, as a part of that.
    noise : float
        Further standard deviation of the logarithm of each row's time.
    other_way : bool
        Whether calls go by another transport, algorithm or protocol, so that the model's errors on the healthy machines
        say little of those on these.
    reference : Timed or None
        Ground of the healthy table, where that was changed and the slow one was left as it is; None: no change.
    number : float
        Number of it that a log may state: NICs, channels, rate of a port in Gb/s; 0: none.
    """

    label: str
    text: str
    ground: Timed
    weight: float = 1.0
    doubt: float = COUNTED
    noise: float = 0.0
    other_way: bool = False
    reference: Timed | None = None
    number: float = 0.0
