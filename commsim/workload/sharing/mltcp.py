"""MLTCP: congestion control that favours who is ahead in its iteration, so that jobs slide apart by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Mltcp:
    """A job's weight is ``slope * f + intercept``, where f is the part of this iteration's bytes that it has sent.

    Weights move between events, so we move them in steps: whenever a job begins or ends a phase all that share with it
    get the weights of that time, and so they do whenever the weight of one of them has grown by the n-th root of what
    it grows by in an iteration. The error is of the first order in 1 / n_steps. The check is two jobs of equal bytes on
    one full link: the ratio of their weights stays as it is while both send, since d ln(weight) is equal.

    Parameters
    ----------
    slope, intercept : float
        Of the weight. The usual ones are those of an ns-3 implementation by one of the authors, where they multiply the
        additive increase of Reno; here they are the ratio of rates itself.
    n_steps : int
        Per iteration.

    Raises
    ------
    InputError
        If the intercept is not positive, the slope is negative, or there is no step.

    References
    ----------
    Rajasekaran, Narang, Zabreyko and Ghobadi, "MLTCP: congestion control for DNN training", arXiv 2402.09589.
    """

    slope: float = 4.0
    intercept: float = 0.25
    n_steps: int = 24

    def __post_init__(self) -> None:
        if not (1e-9 <= self.intercept <= 1e9 and 0 <= self.slope <= 1e9):
            raise InputError(
                f"MLTCP needs a slope of 0 or more and a positive intercept, got {self.slope} and {self.intercept}"
            )
        if self.n_steps < 1:
            raise InputError(f"MLTCP needs at least 1 step per iteration, got {self.n_steps}")
