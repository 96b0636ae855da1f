"""What points take: measured one after the other in this process, with kernels that are loaded before."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from .compute import Bench
from .groups import Group
from .points import Point
from .worker import import_all, one_line

OTHERS = 3
"""Points that are measured of a group beside its first."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a group took.

    Parameters
    ----------
    n_others : int
        Points beside the first.
    first : float, s
        Of the first point, with its preparation.
    others : tuple of float, s
        Of some others.
    """

    n_others: int
    first: float
    others: tuple[float, ...]

    @property
    def total(self) -> float:
        """Of the whole group, as far as one can tell."""
        return self.first + self.n_others * statistics.fmean(self.others or (0.0,))

    @property
    def variance(self) -> float:
        """Of that total, since not all others were measured."""
        k = len(self.others)
        return self.n_others * (self.n_others - k) * statistics.variance(self.others) / k if k > 1 else 0.0


@dataclass(slots=True)
class Stopwatch:
    """Measures points.

    Parameters
    ----------
    bench : Bench
        Where they are computed.
    clock : callable
        Returns the seconds so far.
    start : float, s
        What was done once: imports, and kernels that were loaded or compiled.
    failed : list of str
        Why points failed.
    """

    bench: Bench
    clock: Callable[[], float]
    start: float = 0.0
    failed: list[str] = field(default_factory=list)

    def imports(self) -> None:
        """Import what a worker imports."""
        began = self.clock()
        import_all()
        self.start += self.clock() - began

    def warm(self, group: Group) -> None:
        """Compute a group's first point twice: kernels that it needs first are no part of what it takes later."""
        before, again = self._first(group), self._first(group)
        self.start += max(0.0, before - again)

    def group(self, group: Group, draw: random.Random) -> Measured:
        """Measure the first point, which prepares, and some others."""
        first = self._first(group)
        return Measured(group.n - 1, first, tuple(self._point(point) for point in group.some(OTHERS, draw)))

    def _first(self, group: Group) -> float:
        self.bench.forget()
        return self._point(group.first)

    def _point(self, point: Point) -> float:
        began = self.clock()
        try:
            self.bench.row(point.seed, point.parameters)
        except Exception as error:  # a point may fail; the sweep says so in its row
            self.failed.append(one_line(error))
        return self.clock() - began
