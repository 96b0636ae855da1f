"""Estimate of the time and memory of a sweep: points are counted, and some groups, spread over it, are measured.

Points that share their preparation are a group, and the sample has two stages. Groups are sorted by their text
parameters and their ranks, which decide most of what they take, and cut into strata; two are drawn of each stratum, and
of each of these the first point, which prepares, and a few others, spread over the group. The estimate is right on
average, and how far off it may be follows from how much the groups of a stratum, and the points of a group, differ.

References
----------
Cochran, Sampling Techniques, 3rd edition, 1977: chapters 5 (strata) and 11 (two stages).

What points take: measured one after the other in this process, with kernels that are loaded before.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from commsim.core.errors import InputError

from .check_names import check_specs
from .compute import Bench
from .config import SweepConfig
from .groups import PointGroup, walk_groups
from .points import MAX_POINTS, Point, count_candidates, count_points
from .worker import import_all, one_line

# Points that are measured of a group beside its first.
OTHERS = 3
# At most; fewer where groups are so slow that measuring these would take longer than ``SECONDS``.
STRATA = 64
SECONDS = 3.0
# How many standard errors hold 95 %, by degrees of freedom from 1; about 1.96 + 2.6 / n beyond.
_STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)


@dataclass(frozen=True, slots=True)
class GroupTime:
    """Measured time of a group.

    Parameters
    ----------
    n_others : int
        Points beside the first.
    first : float, s
        Time of the first point, with its preparation.
    others : tuple of float, s
        Times of some other points.
    """

    n_others: int
    first: float
    others: tuple[float, ...]

    @property
    def total(self) -> float:
        """Estimated time of the whole group."""
        return self.first + self.n_others * statistics.fmean(self.others or (0.0,))

    @property
    def variance(self) -> float:
        """Variance of that total, since not all other points were measured."""
        k = len(self.others)
        return self.n_others * (self.n_others - k) * statistics.variance(self.others) / k if k > 1 else 0.0


@dataclass(slots=True)
class Stopwatch:
    """Measures points.

    Parameters
    ----------
    bench : Bench
        Bench that computes them.
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

    def warm(self, group: PointGroup) -> None:
        """Compute a group's first point twice: loading kernels is no part of its later time."""
        before, again = self._first(group), self._first(group)
        self.start += max(0.0, before - again)

    def group(self, group: PointGroup, draw: random.Random) -> GroupTime:
        """Measure the first point, which prepares, and some others."""
        first = self._first(group)
        return GroupTime(group.n - 1, first, tuple(self._point(point) for point in group.some(OTHERS, draw)))

    def _first(self, group: PointGroup) -> float:
        self.bench.forget()
        return self._point(group.first)

    def _point(self, point: Point) -> float:
        began = self.clock()
        try:
            self.bench.row(point.seed, point.parameters)
        except Exception as error:  # a point may fail; the sweep says so in its row
            self.failed.append(one_line(error))
        return self.clock() - began


@dataclass(frozen=True, slots=True)
class SweepCost:
    """Estimated cost of a sweep.

    Parameters
    ----------
    n_candidates, n_points : int
        Points before and after filters.
    n_walked : int
        Points, the first ones, among which groups were drawn.
    n_groups : int
        Groups of points that are prepared together.
    n_measured : int
        Points that were measured.
    start : float, s
        What a worker does once: imports, and kernels that it loads.
    first, other : float, s
        Mean time of the first points of the measured groups, with preparation, and of the others.
    work, uncertain : float, s
        Processor time of all points, and by how much it may be off in 95 cases of 100.
    memory : float, bytes
        Most that this process needed; each worker needs about as much.
    failed : tuple of str
        Why measured points failed.
    load : float
        Other programs that want a core: the load of the last minute, before anything was measured.
    """

    n_candidates: int
    n_points: int
    n_walked: int
    n_groups: int
    n_measured: int
    start: float
    first: float
    other: float
    work: float
    uncertain: float
    memory: float
    failed: tuple[str, ...]
    load: float = 0.0

    def share(self, jobs: int, cores: int) -> float:
        """Return the part of a core that each worker has: less than 1 where they and other programs want more cores."""
        return min(1.0, cores / (jobs + self.load))

    def time(self, jobs: int, cores: int) -> float:
        """Return the seconds that a sweep takes with so many workers, beside what else runs on the cores."""
        return (self.start + self.work / jobs) / self.share(jobs, cores)


def plan_sweep(
    config: SweepConfig, max_points: int = MAX_POINTS, *, clock: Callable[[], float] = time.process_time, seed: int = 0
) -> SweepCost:
    """Count, and measure a few points in this process.

    Parameters
    ----------
    config : SweepConfig
        The sweep.
    max_points : int
        More points than that, before filters, are refused.
    clock : callable
        Returns the seconds of processor time so far.
    seed : int
        Seed of the sample that is measured.

    Raises
    ------
    InputError
        If the sweep is wrong.
    """
    load = load_of_others()
    check_specs(config)
    n_points = count_points(config, max_points)
    draw = random.Random(seed)
    groups, n_groups, n_walked = walk_groups(config, max_points, draw)
    if not groups:
        raise InputError(f"{config.path}: the filters leave none of {count_candidates(config)} points")
    n_groups = round(n_groups * n_points / n_walked)
    watch = Stopwatch(Bench(config.kinds), clock)
    strata = _strata(groups, _most_strata(max(groups, key=lambda group: group.ranks), watch, draw))
    samples = [_measured(stratum, watch, draw) for stratum in strata]
    sizes = [n_groups * len(stratum) / len(groups) for stratum in strata]
    measured = [group for sample in samples for group in sample]
    others = [seconds for group in measured for seconds in group.others]
    return SweepCost(
        n_candidates=count_candidates(config),
        n_points=n_points,
        n_walked=n_walked,
        n_groups=n_groups,
        n_measured=len(measured) + len(others),
        start=watch.start,
        first=statistics.fmean(group.first for group in measured),
        other=statistics.fmean(others or [0.0]),
        work=sum(size * statistics.fmean(g.total for g in s) for size, s in zip(sizes, samples, strict=True)),
        uncertain=_uncertain(sizes, samples),
        memory=_peak(),
        failed=tuple(dict.fromkeys(watch.failed)),
        load=load,
    )


def load_of_others() -> float:
    """Return how many processes wanted a core in the last minute; 0 where nobody counts them."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # not on every system
        return 0.0


def _most_strata(largest: PointGroup, watch: Stopwatch, draw: random.Random) -> int:
    """Return the number of strata within ``SECONDS``, if all groups were like the one with the most ranks."""
    watch.imports()
    watch.warm(largest)
    took = watch.group(largest, draw)
    seconds = 3 * took.first + 2 * sum(took.others)
    return max(1, int(min(STRATA, SECONDS / seconds if seconds else STRATA)))


def _strata(groups: list[PointGroup], most: int) -> list[list[PointGroup]]:
    n, n_strata = len(groups), max(1, min(most, len(groups) // 2))
    return [groups[i * n // n_strata : (i + 1) * n // n_strata] for i in range(n_strata)]


def _measured(stratum: list[PointGroup], watch: Stopwatch, draw: random.Random) -> list[GroupTime]:
    chosen = draw.sample(stratum, min(2, len(stratum)))
    watch.warm(chosen[0])
    return [watch.group(group, draw) for group in chosen]


def _uncertain(sizes: Sequence[float], samples: Sequence[Sequence[GroupTime]]) -> float:
    """Half the width of the interval; where all groups were measured, only their points are uncertain."""
    between = within = 0.0
    for size, sample in zip(sizes, samples, strict=True):
        n = len(sample)
        if size > n > 1:
            between += size * (size - n) * statistics.variance(group.total for group in sample) / n
        within += size / n * sum(group.variance for group in sample)
    n_free = len(samples) if between else sum(max(0, len(group.others) - 1) for s in samples for group in s)
    errors = _STUDENT[n_free - 1] if 1 <= n_free <= len(_STUDENT) else 1.96 + 2.6 / max(n_free, 1)
    return float(errors * (between + within) ** 0.5)


def _peak() -> float:
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
