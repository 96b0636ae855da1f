"""Predicted beside measured times of one algorithm, size by size, and their errors."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from commsim.core.errors import InputError
from commsim.formats.measurement import Measurement

# Sizes that differ by less are the same: programs round them to whole elements per rank.
SAME_SIZE = 1e-3


class PredictedTime(Protocol):
    """A predicted time, and between what 80 % of measurements are expected where that is known."""

    @property
    def time(self) -> float:
        """Seconds."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Seconds."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One size: what was measured, and what was predicted for it.

    Parameters
    ----------
    measured : Measurement
        Measurement; the median of several of one size.
    predicted : float, s
        What the model says.
    interval : (float, float), s, optional
        Between what 80 % of measurements are expected, where the model knows its errors.
    """

    measured: Measurement
    predicted: float
    interval: tuple[float, float] | None = None

    @property
    def error(self) -> float | None:
        """``predicted / measured - 1``; None where no time was measured."""
        return self.predicted / self.measured.time - 1 if self.measured.time else None

    @property
    def is_within(self) -> bool | None:
        """Whether the prediction lies in the spread of the measurements; None where that is not known."""
        low, high = self.measured.low, self.measured.high
        return None if low is None or high is None else low <= self.predicted <= high

    @property
    def is_expected(self) -> bool | None:
        """Whether the measured time lies in the interval of the prediction; None where there is none."""
        if self.interval is None or not self.measured.time:
            return None
        return self.interval[0] <= self.measured.time <= self.interval[1]

    def row(self) -> dict[str, Any]:
        """Return the JSON row of the command line's contract."""
        m, (low, high) = self.measured, self.interval or (None, None)
        return {
            "operation": m.operation, "size_B": m.size, "n_ranks": m.n_ranks, "measured_s": m.time, "low_s": m.low,
            "high_s": m.high, "predicted_s": self.predicted, "error": self.error, "within_spread": self.is_within,
            "predicted_low_s": low, "predicted_high_s": high, "within_predicted": self.is_expected,
            "algorithm": m.algorithm, "protocol": m.protocol, "busbw_Bps": m.busbw, "line": m.line,
        }  # fmt: skip


def one_per_size(rows: Sequence[Measurement], in_place: bool | None = None) -> tuple[Measurement, ...]:
    """Reduce measurements to one of each operation, number of ranks and size: the median, and the whole spread.

    Parameters
    ----------
    rows : sequence of Measurement
        Any.
    in_place : bool, optional
        Half of nccl-tests' table; by default the first that is there, out of place.

    Raises
    ------
    InputError
        If that half is not there.
    """
    wanted = in_place if in_place is not None else all(row.in_place for row in rows)
    chosen = [row for row in rows if row.in_place == wanted]
    if not chosen:
        raise InputError(f"{rows[0].source}: has no times {'in' if wanted else 'out of'} place")
    groups: dict[tuple[str, int, float], list[Measurement]] = {}
    for row in chosen:
        groups.setdefault((row.operation, row.n_ranks or 0, row.size), []).append(row)
    return tuple(_median(groups[key]) for key in sorted(groups))


def pair_up(
    measured: Sequence[Measurement], predict: Callable[[Measurement], PredictedTime | None]
) -> tuple[tuple[Pair, ...], tuple[Measurement, ...]]:
    """Put a prediction beside every measurement that has one.

    Parameters
    ----------
    measured : sequence of Measurement
        Measurements from :func:`one_per_size`.
    predict : callable
        Function from a measurement to its prediction, or None.

    Returns
    -------
    tuple of Pair, tuple of Measurement
        And those that have none.
    """
    pairs, alone = [], []
    for row in measured:
        prediction = predict(row)
        if prediction is None:
            alone.append(row)
        else:
            pairs.append(Pair(row, prediction.time, prediction.interval))
    return tuple(pairs), tuple(alone)


def predictions_of(
    rows: Sequence[Measurement], measured: Sequence[Measurement]
) -> Callable[[Measurement], Measurement | None]:
    """Return a function that looks predictions up among rows of a file.

    Raises
    ------
    InputError
        If the two have no operation in common, or are of different numbers of ranks.
    """
    ours, theirs = {row.operation for row in rows}, {row.operation for row in measured}
    if not ours & theirs:
        raise InputError(
            f"nothing to compare: {rows[0].source} has {', '.join(sorted(ours))}, "
            f"{measured[0].source} has {', '.join(sorted(theirs))}"
        )
    for operation in ours & theirs:
        predicted, seen = _ranks(rows, operation), _ranks(measured, operation)
        if predicted and seen and not predicted & seen:
            raise InputError(
                f"nothing to compare: {operation} was predicted for {_listed(predicted)} ranks "
                f"and measured on {_listed(seen)}"
            )

    def look_up(row: Measurement) -> Measurement | None:
        near = [
            other for other in rows
            if other.operation == row.operation and abs(other.size - row.size) <= SAME_SIZE * max(other.size, row.size)
            and (row.n_ranks is None or other.n_ranks in (None, row.n_ranks))
        ]  # fmt: skip
        return min(near, key=lambda other: abs(other.size - row.size)) if near else None

    return look_up


def _median(rows: Sequence[Measurement]) -> Measurement:
    lows = [row.low if row.low is not None else row.time for row in rows]
    highs = [row.high if row.high is not None else row.time for row in rows]
    spread = len(rows) > 1 or rows[0].low is not None
    return dataclasses.replace(
        rows[0],
        time=statistics.median(row.time for row in rows),
        low=min(lows) if spread else None,
        high=max(highs) if spread else None,
        interval=rows[0].interval if len({row.interval for row in rows}) == 1 else None,
    )


def _ranks(rows: Sequence[Measurement], operation: str) -> set[int]:
    return {row.n_ranks for row in rows if row.operation == operation and row.n_ranks is not None}


def _listed(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))


@dataclass(frozen=True, slots=True)
class Summary:
    """Absolute relative errors of all pairs.

    Parameters
    ----------
    n : int
        Pairs that have an error.
    median, p90, worst : float
        Median, 90th percentile and largest of these.
    worst_size : float, bytes
        Size with the largest error.
    bias : float
        Median of the errors with their signs: more than 0 when predictions are too slow.
    """

    n: int
    median: float
    p90: float
    worst: float
    worst_size: float
    bias: float


def summarise(pairs: Sequence[Pair]) -> Summary:
    """Summarise the errors.

    Raises
    ------
    InputError
        If no pair has one.
    """
    errors = [(pair.error, pair.measured.size) for pair in pairs if pair.error is not None]
    if not errors:
        raise InputError("nothing to compare: no measurement has a time that is not 0")
    sizes = np.array([abs(error) for error, _ in errors])
    worst = int(sizes.argmax())
    bias = float(np.median([error for error, _ in errors]))
    median, p90 = (float(q) for q in np.percentile(sizes, (50, 90)))
    return Summary(len(errors), median, p90, float(sizes[worst]), errors[worst][1], bias)


def several_algorithms(rows: Sequence[Measurement]) -> dict[str, tuple[str, ...]]:
    """Algorithms of each operation that has more than one, by name."""
    names_of: dict[str, set[str]] = {}
    for row in rows:
        names_of.setdefault(row.operation, set()).add(row.algorithm)
    return {operation: tuple(sorted(names)) for operation, names in names_of.items() if len(names) > 1}


def of_one_algorithm(rows: Sequence[Measurement], algorithm: str | None) -> list[Measurement]:
    """Choose the rows of an algorithm, since a prediction is of one.

    Parameters
    ----------
    rows : sequence of Measurement
        Predictions, of at least one.
    algorithm : str or None
        Its name, with or without parameters; None if there is only one.

    Raises
    ------
    InputError
        If there is none of that name, or several to choose from.
    """
    source = rows[0].source
    if algorithm is None:
        for operation, names in several_algorithms(rows).items():
            listed, first = ", ".join(names), names[0]
            raise InputError(f"{source}: has several algorithms of {operation}: {listed}; choose one, such as {first}")
        return list(rows)
    chosen = [row for row in rows if algorithm in (row.algorithm, row.algorithm.partition(":")[0])]
    if not chosen:
        known = ", ".join(sorted({row.algorithm for row in rows}))
        raise InputError(f"{source}: has no rows of {algorithm}; of {known or 'no named algorithm'}")
    return chosen
