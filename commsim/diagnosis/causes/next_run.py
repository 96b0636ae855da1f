"""The run that tells two causes apart which the measured times do not: a size once more, or another operation.

An all-reduce of two machines sends half as much through its NICs as an all-gather of the same bus bandwidth does where
the NVSwitches add: half of the NICs cost it a quarter there, and the all-gather twice its time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from commsim.core.errors import InputError
from commsim.core.units import format_size, format_time
from commsim.diagnosis.causes.explain import RankedCause
from commsim.diagnosis.causes.ground import Ground

# Ratio of two causes' times from which on a further run tells them apart, beside 7 % of noise.
APART = 1.15
# What is measured beside an operation, of a size at which times are mostly bytes.
OTHERS, LARGE = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"), 2.0**30


def run_that_tells(first: RankedCause, second: RankedCause) -> list[str]:
    """Return a line that names the run at which two causes differ most; none where they differ nowhere.

    Parameters
    ----------
    first, second : RankedCause
        Causes of the same rows.
    """
    what, times = max((*_sizes_again(first, second), *_other_operations(first, second)), key=lambda run: _apart(run[1]))
    if _apart(times) < np.log(APART):
        return []
    return [f"measure next: {what}: {format_time(times[0])} (first) or {format_time(times[1])} (second)"]


def _apart(times: tuple[float, float]) -> float:
    return abs(float(np.log(times[0] / times[1])))


def _sizes_again(first: RankedCause, second: RankedCause) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the measured sizes, and the two times of each."""
    for size, *times in zip(first.sizes, first.times, second.times, strict=True):
        yield f"{format_size(float(size))} again", (float(times[0]), float(times[1]))


def _other_operations(first: RankedCause, second: RankedCause) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield other operations on the same ranks, and the two times of each, where the closed form has them."""
    for name in OTHERS:
        times = [_time_of(one, name) for one in (first, second)]
        if times[0] is not None and times[1] is not None:
            yield f"{name} of {format_size(LARGE)}", (times[0], times[1])


def _time_of(cause: RankedCause, name: str) -> float | None:
    """Return the time of another operation with a cause; None where it is the measured one, or has no closed form."""
    ground = cause.ground
    if not isinstance(ground, Ground) or ground.operation == name:
        return None
    try:
        return float(dataclasses.replace(ground, operation=name).times([LARGE])[0])
    except InputError:  # an algorithm that the operation does not have, costs that are not known
        return None
