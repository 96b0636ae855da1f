"""What a step of a message costs, measured size by size: curves in place of the line ``o + bytes/B + L``.

On a real machine the time of a message depends on more than its bytes: whether its ends send and receive at once,
whether its data has just come from another rank or was written by its own core, and in which cache the memory lies. A
:class:`Curve` is one of these cases; :class:`Curves` are all that were measured on one machine.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError
from .units import format_size
from .value import Value, freeze

# `local` copies inside a rank; `start` is what a rank pays once, before its first message.
STEPS = ("copy", "reduce", "local", "start")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Curve(Value):
    """Time of one kind of step by size.

    Parameters
    ----------
    step : {"copy", "reduce", "local", "start"}
        What is done with what arrives; or a copy inside a rank; or what a rank pays once, by its working set.
    two_way : bool
        Whether both ends send and receive at the same time.
    relayed : bool
        Whether the data has come from another rank before, so that the caches of two cores must agree on it.
    working_set : float, bytes
        Memory of each rank in the run; 0 if only that of the messages.
    size : float64[n], bytes
        Sizes, at least two, ascending. For ``start``: the working sets.
    seconds : float64[n], s
        Time from the beginning of a step to its end, with no other step under way; not descending.
    occupancy : float64[n], s
        How long it keeps the next one of its kind from beginning; at most `seconds`, not descending.
    low, high : float64[n], s
        Bounds between which 80 % of the measured times lie.

    Raises
    ------
    InputError
        If there are fewer than two sizes, a number is not positive, or a curve descends.
    """

    step: str
    two_way: bool
    relayed: bool
    working_set: float
    size: Floats
    seconds: Floats
    occupancy: Floats = None  # type: ignore[assignment]  # by default `seconds`, like the next two
    low: Floats = None  # type: ignore[assignment]
    high: Floats = None  # type: ignore[assignment]

    if TYPE_CHECKING:  # what may be given is wider than what is kept

        def __init__(
            self,
            step: str,
            two_way: bool,
            relayed: bool,
            working_set: float,
            size: ArrayLike,
            seconds: ArrayLike,
            occupancy: ArrayLike | None = ...,
            low: ArrayLike | None = ...,
            high: ArrayLike | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.step not in STEPS:
            raise InputError(f"a curve is one of {', '.join(STEPS)}, got {self.step!r}")
        put = object.__setattr__
        put(self, "size", freeze(self.size, np.float64, name=f"{self}: size"))
        n = self.size.shape
        for name in ("seconds", "occupancy", "low", "high"):
            column = getattr(self, name)
            put(self, name, freeze(self.seconds if column is None else column, np.float64, n, f"{self}: {name}"))
        if self.size.ndim != 1 or len(self.size) < 2:
            raise InputError(f"{self} needs at least two sizes, got {self.size.size}: between sizes it is interpolated")
        if not 0 <= self.working_set < np.inf:
            raise InputError(f"{self}: a working set is 0 bytes or more, got {self.working_set}")
        for name in ("size", "seconds", "occupancy", "low", "high"):
            values = getattr(self, name)
            if not ((values > 0) & np.isfinite(values)).all():
                raise InputError(f"{self}: {name} must be positive and finite, got {values.tolist()}")
        if (np.diff(self.size) <= 0).any():
            raise InputError(f"{self}: sizes must ascend, got {', '.join(map(format_size, self.size))}")
        for name in ("seconds", "occupancy"):
            down = np.flatnonzero(np.diff(getattr(self, name)) < 0)
            if down.size:
                larger, smaller = (format_size(self.size[down[0] + k]) for k in (1, 0))
                raise InputError(f"{self}: {name} must not descend, and {larger} takes less than {smaller}")
        if (self.occupancy > self.seconds * (1 + 1e-12)).any():
            raise InputError(f"{self}: a step must not occupy its ports for longer than it lasts")
        if (self.low > self.seconds).any() or (self.high < self.seconds).any():
            raise InputError(f"{self}: seconds must lie between low and high")

    def __str__(self) -> str:
        """Name the case for messages."""
        if self.step in ("local", "start"):
            return f"the curve `{self.step}`"
        ways, data = "two ways" if self.two_way else "one way", "relayed" if self.relayed else "fresh"
        return f"the curve `{self.step}` {ways}, {data}"

    def memory(self, size: float) -> float:
        """Memory of each rank in the run of one size, bytes."""
        own = 2 * size if self.two_way or self.step == "local" else size
        return max(self.working_set, own, 1.0)

    def at(self, size: float, name: str) -> float:
        """Interpolate a column, logarithms over logarithms.

        Parameters
        ----------
        size : float, bytes
            Size of the step. Below the smallest size the time is that of the smallest; above the largest it is
            proportional to the size.
        name : {"seconds", "occupancy"}
            Name of the column.
        """
        within = min(max(size, self.size[0]), self.size[-1])
        inside = math.exp(np.interp(math.log(within), np.log(self.size), np.log(getattr(self, name))))
        return float(inside * max(1.0, size / self.size[-1]))


@dataclass(frozen=True, slots=True, eq=False)
class Curves(Value):
    """All curves of one machine.

    Parameters
    ----------
    curves : tuple of Curve
        Any of them may be missing: what two ways, relayed data or a reduction cost is then what the simpler case does,
        and local copies and starts are free. Copies, one way and fresh, must be there.
    machine : str
        Name of the machine that was measured, so that its curves are not taken for those of another.
    mark : str
        What was wrong when they were measured; nothing where all was well.
    bandwidth : float, bytes/s
        The most that any message gets between ranks, also where everything takes its `low`: by default found
        from the curves. A message occupies a link of this rate for as long as its curve says.

    Raises
    ------
    InputError
        If the curve of a fresh copy one way is missing, or two curves are of the same case.
    """

    curves: tuple[Curve, ...]
    machine: str = ""
    mark: str = ""
    bandwidth: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "curves", tuple(self.curves))
        cases = [_case(curve) for curve in self.curves]
        if ("copy", False, False) not in {case[:3] for case in cases}:
            raise InputError("curves must include one of `copy`, one way, with fresh data: the others fall back on it")
        for i, case in enumerate(cases):
            if case in cases[:i]:
                raise InputError(f"{self.curves[i]} at {format_size(case[3])} appears twice")
        if not self.bandwidth:
            between = [c for c in self.curves if c.step in ("copy", "reduce")]
            fastest = max((c.size / (c.occupancy * c.low / c.seconds)).max() for c in between)
            object.__setattr__(self, "bandwidth", float(fastest))

    @property
    def width(self) -> float:
        """Median relative width of the intervals of all curves of steps."""
        of_steps = [(curve.high - curve.low) / curve.seconds for curve in self.curves if curve.step != "start"]
        return float(np.median(np.concatenate(of_steps)))

    def start(self, working_set: float) -> float:
        """Time that every rank pays once, before its first message."""
        curve = next((c for c in self.curves if c.step == "start"), None)
        return 0.0 if curve is None else curve.at(min(working_set, float(curve.size[-1])), "seconds")

    def times(
        self, step: str, two_way: bool, relayed: bool, working_set: float, n_bytes: Floats
    ) -> tuple[Floats, Floats]:
        """Find what steps of one kind take, and how long they keep the next one waiting.

        Parameters
        ----------
        step : {"copy", "reduce", "local"}
            Kind of step.
        two_way, relayed, working_set
            Same as in :class:`Curve`.
        n_bytes : float64[n], bytes
            Size of each message.

        Returns
        -------
        seconds, occupancy : float64[n], s
        """
        curve = self._closest(step, two_way, relayed)
        if not curve:
            return np.zeros(len(n_bytes)), np.zeros(len(n_bytes))
        sizes, which = np.unique(n_bytes, return_inverse=True)
        seconds, occupancy = (
            np.array([_between_sets(curve, working_set, float(size), name) for size in sizes])
            for name in ("seconds", "occupancy")
        )
        return seconds[which], np.minimum(seconds, occupancy)[which]

    def _closest(self, step: str, two_way: bool, relayed: bool) -> list[Curve]:
        """Curves of a case by working set; of the simplest one that is nearest to it where it was not measured."""
        steps = ("local",) if step == "local" else (step, "copy")
        for kind in dict.fromkeys(steps):
            for ways, data in ((two_way, relayed), (two_way, False), (False, relayed), (False, False)):
                if curves := [c for c in self.curves if _case(c)[:3] == (kind, ways, data)]:
                    return sorted(curves, key=lambda c: c.working_set)
        return []

    def bound(self, which: str) -> Curves:
        """Return the curves as if everything took its `low`, or its `high`.

        Parameters
        ----------
        which : {"low", "high"}
            Side of the measured band.
        """
        return dataclasses.replace(self, curves=tuple(_on_side(curve, which) for curve in self.curves))


def _case(curve: Curve) -> tuple[str, bool, bool, float]:
    return curve.step, curve.two_way, curve.relayed, curve.working_set


def _on_side(curve: Curve, which: str) -> Curve:
    side = np.maximum.accumulate(getattr(curve, which))
    occupancy = np.maximum.accumulate(curve.occupancy * getattr(curve, which) / curve.seconds)
    return dataclasses.replace(
        curve,
        seconds=side,
        occupancy=np.minimum(occupancy, side),
        low=side.copy(),
        high=side.copy(),
    )


def _between_sets(curves: Sequence[Curve], working_set: float, size: float, name: str) -> float:
    """Interpolate between curves of neighbouring working sets, logarithms over logarithms; beyond them nothing changes.

    A curve says nothing about messages that are smaller than its smallest, nor about less memory than theirs.
    """
    memory, value = curves[0].memory(size), curves[0].at(size, name)
    for curve in curves[1:]:
        if size < curve.size[0] or curve.memory(size) <= memory:
            continue
        then = curve.at(size, name)
        share = math.log(max(working_set, memory) / memory) / math.log(curve.memory(size) / memory)
        if share < 1:
            return float(value * (then / value) ** share)
        memory, value = curve.memory(size), then
    return value
