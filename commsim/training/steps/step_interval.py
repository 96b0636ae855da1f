"""Intervals of predicted steps (``intervals.toml``): where 80 % of published steps lie, nothing calibrated on them."""

from __future__ import annotations

import functools
import importlib.resources
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepInterval:
    """Interval of one class of steps.

    Parameters
    ----------
    calibrated, experts : bool
        Whether some published step of the model on the GPU is calibrated, and whether the model has experts.
    low, high : float
        Factors of the predicted time.
    setups : int
        Published setups that they are from.
    """

    calibrated: bool
    experts: bool
    low: float
    high: float
    setups: int


@functools.cache
def step_intervals() -> tuple[StepInterval, ...]:
    """Read all of them."""
    import tomllib

    text = importlib.resources.files("commsim.training").joinpath("intervals.toml").read_text("utf-8")
    return tuple(StepInterval(**row) for row in tomllib.loads(text)["intervals"])


def spread_of(*, calibrated: bool, experts: bool) -> tuple[float, float] | None:
    """Return the factors of a step's time between which 80 % of its class lie; None where the class has no interval."""
    alike = (one for one in step_intervals() if (one.calibrated, one.experts) == (calibrated, experts))
    return next(((one.low, one.high) for one in alike), None)
