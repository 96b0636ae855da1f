"""What a sweep will take: its points are counted, and a few of them, spread over it and with the largest, measured."""

from __future__ import annotations

import itertools
import statistics
import time
from dataclasses import dataclass

from commsim.core.errors import InputError

from .compute import Bench
from .config import Config
from .points import MAX_POINTS, Point, count_candidates, count_points, points, structure
from .specs import check_specs
from .worker import one_line

MEASURED = 12
"""Groups of points that are measured, at least, if there are so many; up to twice as many."""
SECONDS = 20.0
"""After which no further one is begun."""
MAX_WALKED = 1_000_000
"""Points among which groups are counted; of more points they are taken to be like these."""

Group = tuple[Point, Point | None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sweep will take.

    Parameters
    ----------
    n_candidates, n_points : int
        Points before and after filters.
    n_groups : int
        Groups of points that are prepared together.
    n_measured : int
        Points that were measured.
    first, other : float, s
        Mean time of the first point of a group with its preparation, and of another one.
    work, uncertain : float, s
        Of the whole sweep on one worker, and twice its standard error.
    largest : float, s
        Of the first point of the group with the most ranks.
    memory : float, bytes
        Most that this process needed; each worker needs about as much.
    failed : tuple of str
        Why measured points failed.
    """

    n_candidates: int
    n_points: int
    n_groups: int
    n_measured: int
    first: float
    other: float
    work: float
    uncertain: float
    largest: float
    memory: float
    failed: tuple[str, ...]


def plan_sweep(config: Config, max_points: int = MAX_POINTS) -> Plan:
    """Count, and measure a few points in this process.

    Raises
    ------
    InputError
        If the sweep is wrong.
    """
    check_specs(config)
    n_points = count_points(config, max_points)
    groups, n_groups = _groups(config, n_points, max_points)
    bench = Bench(config.kinds)
    failed: list[str] = []
    _measure(bench, groups[0][0], failed)  # compiles, or loads what was compiled
    firsts, others, largest = _measure_groups(bench, groups, failed)
    first, other = statistics.fmean(firsts), statistics.fmean(others or [0.0])
    n_others = n_points - n_groups
    return Plan(
        n_candidates=count_candidates(config),
        n_points=n_points,
        n_groups=n_groups,
        n_measured=len(firsts) + len(others),
        first=first,
        other=other,
        work=n_groups * first + n_others * other,
        uncertain=2 * (n_groups * _error(firsts) + n_others * _error(others)),
        largest=largest,
        memory=_peak(),
        failed=tuple(dict.fromkeys(failed)),
    )


def _measure_groups(bench: Bench, groups: list[Group], failed: list[str]) -> tuple[list[float], list[float], float]:
    """Return the times of first points, of others, and of the first group; that one is not typical and not among them.

    Where there is only one group, it is.
    """
    firsts: list[float] = []
    others: list[float] = []
    largest = 0.0
    began = time.perf_counter()
    for number, (first, second) in enumerate(groups):
        if firsts and time.perf_counter() - began > SECONDS:
            break
        bench.forget()
        took = _measure(bench, first, failed)
        largest = max(largest, took if not number else 0.0)
        if number or len(groups) == 1:
            firsts.append(took)
            others += [] if second is None else [_measure(bench, second, failed)]
    return firsts, others, largest


def _groups(config: Config, n_points: int, max_points: int) -> tuple[list[Group], int]:
    """Choose the group with the most ranks, and then groups spread over the sweep; and count all groups."""
    chosen: list[Group] = []
    largest: Group | None = None
    n_groups, n_walked, step = 0, 0, 1
    shared: object = None
    for point in itertools.islice(points(config, max_points), MAX_WALKED):
        n_walked += 1
        if shared == (shared := structure(point)):
            if chosen and n_groups - 1 == step * (len(chosen) - 1) and chosen[-1][1] is None:
                chosen[-1] = (chosen[-1][0], point)
            continue
        if largest is None or _ranks(point) > _ranks(largest[0]):
            largest = (point, None)
        if n_groups == step * len(chosen):
            chosen.append((point, None))
        if len(chosen) == 2 * MEASURED:  # keep every other one, so that they stay spread evenly
            chosen, step = chosen[::2], 2 * step
        n_groups += 1
    if largest is None:
        raise InputError(f"{config.path}: the filters leave no point of {count_candidates(config)}")
    return [largest, *chosen], round(n_groups * n_points / n_walked)


def _ranks(point: Point) -> float:
    return float(point.parameters.get("collective.ranks") or point.parameters.get("workload.workers") or 0)


def _measure(bench: Bench, point: Point, failed: list[str]) -> float:
    began = time.perf_counter()
    try:
        bench.row(point.seed, point.parameters)
    except Exception as error:  # a point may fail; the sweep says so in its row
        failed.append(one_line(error))
    return time.perf_counter() - began


def _error(times: list[float]) -> float:
    return statistics.stdev(times) / len(times) ** 0.5 if len(times) > 1 else 0.0


def _peak() -> float:
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
