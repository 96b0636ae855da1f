"""What the agent at a worker does: start at the shift that was assigned, and come back to it after a drift."""

from __future__ import annotations

import math

from commsim.core.errors import InputError

THRESHOLD = 0.05
"""Part of the iteration by which a start may deviate (Rajasekaran et al., NSDI 2024, section 5.7)."""


def next_start(ready: float, shift: float, period: float, *, epoch: float = 0.0, threshold: float = THRESHOLD) -> float:
    """When the next iteration should start: at once, unless it would be too far from its place.

    Its places are ``epoch + shift + n period``. A job that is within `threshold` of one, early or late, goes on as it
    is; any other waits for the next one. It never starts before it is ready.

    Parameters
    ----------
    ready : float, s
        When the iteration before has ended.
    shift : float, s
        Assigned to the job.
    period : float, s
        Iteration time without contention.
    epoch : float, s
        From when all jobs count.
    threshold : float
        Part of the period.

    Returns
    -------
    float, s
        `ready` or later, by less than one period.

    Raises
    ------
    InputError
        If a number is not finite, the period not positive, or the threshold not within 0..0.5.
    """
    if not (all(map(math.isfinite, (ready, shift, epoch))) and 0 < period < math.inf):
        raise InputError(f"a start needs finite times and a positive period, got {ready}, {shift}, {epoch}, {period}")
    if not 0 <= threshold <= 0.5:
        raise InputError(f"the threshold is a part 0..0.5 of the iteration time, got {threshold}")
    late = (ready - epoch - shift) % period
    if min(late, period - late) <= threshold * period:
        return ready
    return max(ready, ready + (period - late))
