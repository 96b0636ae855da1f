"""Measure schedules for real and put a prediction beside each."""

from __future__ import annotations

import dataclasses
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from commsim.core.errors import BackendError
from commsim.core.result import Result
from commsim.core.schedule import Schedule

from .busy import Busy, quiet_ones
from .measure import ITERATIONS, measure_native, measure_schedule
from .steps import SHORT, SHORT_TIMES
from .transport import RankTransport

# Rows are summed up from here on, and below, where times are those of software.
LARGE = 65536
# Rows are measured pass by pass, in memory of their own each time, the small ones several times in each.
PASSES = 10
ROW_WARMUP = 2


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """One algorithm at one size.

    Parameters
    ----------
    ours, native : Result, Result or None
        Our schedule, and the library's collective where it has one.
    predicted : Result or None
        Prediction for our schedule; on rank 0 only.
    oversubscribed : bool
        Whether ranks had to share cores; such a row does not count.
    """

    ours: Result
    native: Result | None
    predicted: Result | None
    oversubscribed: bool

    @property
    def error(self) -> float | None:
        """Relative error of the prediction, ``predicted / measured - 1``; None where nothing was sent."""
        if self.predicted is None or not self.predicted.time:
            return None
        return self.predicted.time / self.ours.time - 1

    @property
    def counts(self) -> bool:
        """Whether the row belongs into the summary: a message was sent, and no rank waited for a core."""
        return self.error is not None and not self.oversubscribed

    @property
    def is_inside(self) -> bool | None:
        """Whether the measured median lies in the interval of the prediction; None without one."""
        if self.predicted is None or self.predicted.interval is None:
            return None
        low, high = self.predicted.interval
        return low <= self.ours.time <= high

    @property
    def spread(self) -> tuple[float, float]:
        """5th and 95th percentile of our times, in seconds."""
        low, high = np.percentile(self.ours.samples, (5, 95))
        return float(low), float(high)

    @property
    def n_wrong(self) -> int:
        """Elements that were wrong on the worst rank, ours and native."""
        results = (self.ours, *((self.native,) if self.native else ()))
        return int(max(r.counters.get("wrong", 0) for r in results))

    def json(self) -> dict[str, Any]:
        """Return the row of the command line's contract."""
        interval = self.predicted.interval if self.predicted else None
        return self.ours.row() | {
            "predicted_s": self.predicted.time if self.predicted else None,
            "low_s": interval[0] if interval else None,
            "high_s": interval[1] if interval else None,
            "error": self.error,
            "native_s": self.native.time if self.native else None,
            "oversubscribed": self.oversubscribed,
        }


def measure_rows(
    transport: RankTransport,
    schedules: Iterable[Schedule | Callable[[float], Schedule]],
    sizes: Sequence[int],
    predict: Callable[[Schedule, float], Result | None],
    *,
    native: bool = True,
    warmup: int = ROW_WARMUP,
    iterations: int = ITERATIONS,
    before_pass: Callable[[], None] = lambda: None,
    keep: Callable[[int, list[ValidationRow]], None] | None = None,
) -> list[ValidationRow]:
    """Measure every schedule at every size, then predict.

    Parameters
    ----------
    transport : RankTransport
        All of its ranks call this.
    schedules : iterable of Schedule, or of callable
        Schedules with as many participants as the transport has ranks; or functions that build one for a size.
    sizes : sequence of int, bytes
        Sizes as nccl-tests counts them.
    predict : callable
        ``predict(schedule, n_bytes)``, None where nothing is sent; called on rank 0 only, when all has been measured,
        because a simulation would take the cores from the ranks.
    native : bool
        Whether to run the library's own collective too; not beside a schedule with helpers, which has fewer ranks.
    warmup, iterations : int
        Same as in :func:`commsim.real.measure.timed`.
    before_pass : callable
        Called by all ranks before each pass over all rows: a calibration in between meets the same minutes.
    keep : callable, optional
        Called by rank 0 after each pass but the last, with their number and the rows so far, without predictions.
    """
    wanted = [
        (schedule if isinstance(schedule, Schedule) else schedule(size), size)
        for schedule in schedules
        for size in sizes
    ]
    passes, busy, parts, shared = [], [], parts_of(iterations), oversubscribed(transport)
    for number, part in enumerate(parts, 1):
        before_pass()
        meter = Busy(transport)
        for again in range(SHORT_TIMES):
            measured: list[tuple[Result, Result | None] | None] = [
                _measure_both(transport, schedule, size, native, warmup, part) if again == 0 or size <= SHORT else None
                for schedule, size in wanted
            ]
            passes.append(measured)
        busy.append(meter.share())
        if keep is not None and number < len(parts) and transport.rank == 0:
            keep(number, _pooled(wanted, passes, lambda *_: None, shared))
    # As a calibration does, so that both are of a machine that is equally quiet. Every pass has a first part with all
    # rows, so that no row is left without a measurement.
    kept = set(quiet_ones(busy))
    passes = [part for i, part in enumerate(passes) if i // SHORT_TIMES in kept]
    return _pooled(wanted, passes, predict if transport.rank == 0 else lambda *_: None, shared)


def _pooled(
    wanted: Sequence[tuple[Schedule, int]],
    passes: Sequence[Sequence[tuple[Result, Result | None] | None]],
    predict: Callable[[Schedule, float], Result | None],
    shared: bool,
) -> list[ValidationRow]:
    """Make a row of what the passes measured of each schedule and size."""
    rows = []
    for (schedule, _), *of_row in zip(wanted, *passes, strict=True):
        pairs = [pair for pair in of_row if pair is not None]
        ours = merge([pair[0] for pair in pairs])
        beside = [pair[1] for pair in pairs if pair[1] is not None]
        rows.append(ValidationRow(ours, merge(beside) if beside else None, predict(schedule, ours.size), shared))
    return rows


def errors_of(rows: Iterable[ValidationRow], large: bool) -> list[float]:
    """Absolute relative errors of the rows that count, of those from ``LARGE`` on or of the others."""
    return [
        abs(row.error) for row in rows if row.counts and row.error is not None and (row.ours.size >= LARGE) == large
    ]


def alike(rows: Sequence[ValidationRow]) -> list[float]:
    """Errors that large rows of the same steps would have as predictions of each other: the noise of the machine.

    Some algorithms are the same for a few ranks, such as all-reduces of two: the prediction does not tell them apart.
    """
    same = defaultdict[tuple[str, float, float], list[float]](list)
    for row in rows:
        if row.counts and row.predicted is not None and row.ours.size >= LARGE:
            same[row.ours.operation, row.ours.size, row.predicted.time].append(row.ours.time)
    groups = [times for times in same.values() if len(times) > 1]
    return [abs((sum(times) - own) / (len(times) - 1) / own - 1) for times in groups for own in times]


def about_sums(rows: Sequence[ValidationRow]) -> list[str]:
    """Say whether what was received and added is what the reference has, in all rows."""
    wrong = [row for row in rows if row.n_wrong]
    if not rows:
        return []
    if not wrong:
        return [f"what each rank received equals the reference in all rows: 0 wrong elements of {len(rows)} rows"]
    return [f"WRONG: {len(wrong)} of {len(rows)} rows have elements that differ from the reference"]


def summary_of(rows: Sequence[ValidationRow]) -> list[str]:
    """Describe the errors of large and small rows, and how many times lie in the interval of their prediction."""
    lines = []
    for large, which in ((True, f"{LARGE // 1024} KiB and more"), (False, "less")):
        if errors := errors_of(rows, large):
            median, p90 = np.percentile(errors, (50, 90))
            lines.append(f"error of {len(errors)} rows of {which}: median {median:.1%}, p90 {p90:.1%}")
    if noise := alike(rows):
        median, p90 = np.percentile(noise, (50, 90))
        lines.append(
            f"noise: {len(noise)} of the large rows are the same steps under other names; measured, they differ from "
            f"each other by median {median:.1%}, p90 {p90:.1%}"
        )
    judged = [row.is_inside for row in rows if row.is_inside is not None and not row.oversubscribed]
    if judged:
        lines.append(f"{sum(judged)} of {len(judged)} measured medians lie between low and high, which -v shows")
    return lines


def oversubscribed(transport: RankTransport) -> bool:
    """Whether ranks have to share cores; all ranks call this, since a launcher may have bound each to its own."""
    own = sorted(os.sched_getaffinity(0))
    last = int(transport.max_over_ranks(np.array([float(own[-1])]))[0])
    used = transport.max_over_ranks(np.isin(np.arange(last + 1), own).astype(np.float64))
    return transport.ranks_per_host > int(used.sum())


def merge(results: Sequence[Result]) -> Result:
    """Pool the samples of several measurements of the same thing."""
    samples = np.concatenate([r.samples for r in results])
    middle = float(np.median(samples))
    counters = {name: max(r.counters[name] for r in results) for name in results[0].counters}
    return dataclasses.replace(results[0], time=middle, time_from_last_start=middle, samples=samples, counters=counters)


def memory_of(schedule: Schedule, size: float) -> float:
    """Memory of a rank that runs a schedule, bytes."""
    return size * schedule.n_addresses / schedule.n_chunks


def parts_of(iterations: int) -> list[int]:
    """Share the iterations among passes over all rows: what disturbs the machine for a moment must not spoil a row.

    Parameters
    ----------
    iterations : int
        Iterations of each row.

    Returns
    -------
    list of int
        Iterations in each pass.
    """
    n_passes = min(PASSES, iterations)
    return [iterations * (i + 1) // n_passes - iterations * i // n_passes for i in range(n_passes)]


def _measure_both(
    transport: RankTransport, schedule: Schedule, size: int, native: bool, warmup: int, iterations: int
) -> tuple[Result, Result | None]:
    ours = measure_schedule(transport, schedule, size, warmup=warmup, iterations=iterations)
    if not native or schedule.n_helpers:
        return ours, None
    try:
        return ours, measure_native(
            transport,
            ours.operation,
            int(ours.size) // 4,
            root=schedule.root,
            warmup=warmup,
            iterations=iterations,
        )
    except BackendError:  # the library has no such collective, which every rank finds before it sends anything
        return ours, None
