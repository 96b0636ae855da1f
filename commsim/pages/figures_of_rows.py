"""Figures of results: rates, times, speed-up, algorithm choice, distribution, scaling, accuracy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from commsim.pages.figure_tables import FigureTable, distinct, number_column
from commsim.pages.rows.algorithms import is_algorithm
from commsim.pages.rows.row_selection import number_in_names
from commsim.pages.study import Study
from commsim.real.comparison.pairs import SAME_SIZE

from .figure import Figure, NothingToDraw

LEAST_POINTS = 8
BAND = 0.1
Numbers = NDArray[np.int64]


def busbw(study: Study) -> Figure:
    """Bus bandwidth against size, or what varies in its place: curves per algorithm, the line rate dashed, marks."""
    study, x, word = _axis(study, "busbw_Bps")
    roles = {"x": x, "y": "busbw_Bps", **study.series(x)}
    if "busbw_low_Bps" in study.rows:
        roles |= {"low": "busbw_low_Bps", "high": "busbw_high_Bps"}
    caption = "Lines are medians of the rows shown, bands reach from the least to the greatest."
    if "line_rate_Bps" in study.rows:
        roles["rule"] = "line_rate_Bps"
        caption += " Dashed: the rate at which a rank's own links send, the slowest rank's where they differ."
        caption += " Switches that add may be above it, and algorithms in which that rank sends less than others."
    points = study.measured if x == "size_B" else None
    if points is not None:
        caption += " Marks are measurements."
    words = {"x": word, "y": "bus bandwidth"}
    return Figure("busbw", "curves", f"Bus bandwidth against {word}", caption, study.rows, roles, words,
                  _logarithmic(study, x), points=points)  # fmt: skip


def time(study: Study) -> Figure:
    """Time against size, or what varies in its place, on two logarithmic axes."""
    study, x, word = _axis(study, "time_s")
    roles = {"x": x, "y": "time_s", **study.series(x)}
    if {"p5_s", "p95_s"} <= set(study.rows):
        roles |= {"low": "p5_s", "high": "p95_s"}
    caption = "Lines are medians of the rows shown, bands reach from the least to the greatest."
    return Figure("time", "curves", f"Time against {word}", caption, study.rows, roles, {"x": word, "y": "time"},
                  _logarithmic(study, x) | {"y"}, points=study.measured if x == "size_B" else None)  # fmt: skip


def _axis(study: Study, column: str) -> tuple[Study, str, str]:
    """Return the study, the column of x and its word: the sizes; of one size the ranks, or a parameter with numbers.

    Where one collective was run with several values of one parameter, these are a column of the study that is returned.
    """
    rows = study.rows
    if not {"size_B", column} <= set(rows):
        raise NothingToDraw(f"the rows do not all have numbers in size_B and {column}")
    if len(distinct(rows["size_B"])) > 1:
        return study, "size_B", "size"
    for name in sorted(study.parameters, key=lambda name: name != "n_ranks"):
        if name != study.by and rows[name].labels is None and (rows[name].values > 0).all():
            return study, name, "ranks" if name == "n_ranks" else name.rpartition(".")[2]
    found = number_in_names(rows["collective"].text()) if "collective" in study.parameters and not study.by else None
    if found is None:
        raise NothingToDraw("there is only one size, and no other number varies; -b 1M -e 1G runs several sizes")
    name, numbers = found
    others = tuple(parameter for parameter in study.parameters if parameter != "collective")
    beside = rows.beside(number_column(name, numbers, ""))
    return dataclasses.replace(study, rows=beside, parameters=(*others, name)), name, name


def _logarithmic(study: Study, x: str) -> frozenset[str]:
    """Return the axis of x if it is logarithmic: that of numbers above 0."""
    return frozenset("x" if (study.rows[x].values > 0).all() else "")


def speedup(study: Study) -> Figure:
    """How many times faster than the baseline each algorithm is, by size and ranks."""
    _require_algorithms(study)
    if "speedup" not in study.rows or not np.isfinite(study.rows["speedup"].values).any():
        wanted = study.baseline or "whose name begins with ring"
        raise NothingToDraw(f"no algorithm {wanted} is among the rows to compare with")
    axes = _axes(study)
    both = axes["y"] != "operation"
    roles = {**axes, "value": "speedup", "facet" if both else "y": "collective"}
    base = study.baseline or "the ring"
    caption = f"Time of {base} over the time of the algorithm, all else being equal (median of the rows shown)."
    words = {"value": f"times as fast as {base}", "facet" if both else "y": "algorithm"}
    return Figure("speedup", "heat", "Speed-up", caption, study.rows, roles, words, scale="ratio")


def choice(study: Study) -> Figure:
    """Which algorithm is fastest, by size and ranks."""
    _require_algorithms(study)
    roles = {**_axes(study), "value": "time_s", "by": "collective"}
    if "operation" in study.rows and len(distinct(study.rows["operation"])) > 1:
        roles["facet"] = "operation"
    caption = "The algorithm with the least median time of the rows shown; pale where it leads by less than 1 %."
    return Figure("choice", "choice", "Algorithm choice", caption, study.rows, roles)


def _axes(study: Study) -> dict[str, str]:
    """Columns for x and y: size, and what was asked for or ranks, where they vary; else other parameters."""
    order = [name for name in ("size_B", "n_ranks", *study.parameters) if name != study.by]
    if study.by:
        order.insert(1 if order[:1] == ["size_B"] and "size_B" in study.parameters else 0, study.by)
    varying = [n for n in dict.fromkeys(order) if n in study.parameters and not is_algorithm(n) and n != "operation"]
    if not varying:
        raise NothingToDraw("only the algorithm varies")
    return {"x": varying[0], "y": varying[1] if len(varying) > 1 else "operation"}


def _require_algorithms(study: Study) -> None:
    rows = study.rows
    if "collective" not in rows or "operation" not in rows or "time_s" not in rows:
        raise NothingToDraw("the rows do not name the algorithm and its time")
    pairs = {*zip(rows["operation"].values.tolist(), rows["collective"].values.tolist(), strict=True)}
    if len(pairs) == len({operation for operation, _ in pairs}):
        raise NothingToDraw("there is only one algorithm per operation")


def cdf(study: Study) -> Figure:
    """Which share of the results took at most a time."""
    rows = study.rows
    if "time_s" not in rows or rows.n_rows < LEAST_POINTS:
        raise NothingToDraw(f"there are fewer than {LEAST_POINTS} rows")
    caption = "Which share of the rows shown is complete within a time."
    roles = {"x": "time_s", **study.series()}
    words = {"x": "completion time", "y": "share of rows"}
    return Figure("cdf", "cdf", "Completion times", caption, rows, roles, words, frozenset("x"))


def strong(study: Study) -> Figure:
    """Efficiency against ranks at a fixed size."""
    return _scaling(study, "strong", "strong_efficiency", "size_B", "the size is the same")


def weak(study: Study) -> Figure:
    """Efficiency against ranks when the size grows with them."""
    return _scaling(study, "weak", "weak_efficiency", "size_per_rank_B", "the size per rank is the same")


def _scaling(study: Study, name: str, y: str, fixed: str, what: str) -> Figure:
    rows = study.rows
    if "n_ranks" not in rows or len(distinct(rows["n_ranks"])) < 2:
        raise NothingToDraw("there is only one number of ranks")
    if y not in rows or not np.isfinite(rows[y].values).any():
        raise NothingToDraw(f"no two rows differ in ranks while {what}")
    caption = f"Bus bandwidth over that with the fewest ranks, where {what} ({fixed}) and all else is equal."
    roles = {"x": "n_ranks", "y": y, **study.series("n_ranks")}
    words = {"x": "ranks", "y": f"{name} scaling efficiency", "level": "ideal"}
    return Figure(name, "curves", f"{name.capitalize()} scaling", caption, rows, roles, words, frozenset("x"),
                  level=1.0)  # fmt: skip


def accuracy(study: Study) -> Figure:
    """Every prediction over the measurement of the same operation, size and number of ranks."""
    if study.measured is None:
        raise NothingToDraw("nothing measured was given (--measured FILE)")
    predicted, measured = pairs(study.rows, study.measured)
    if not len(predicted):
        raise NothingToDraw("no prediction has the operation, size and ranks of a measurement")
    seconds = study.measured["time_s"].values[measured]
    time = study.rows["time_s"].values[predicted]
    table = study.rows.take(predicted).beside(
        number_column("measured_s", seconds),
        number_column("predicted_s", time),
        number_column("predicted_over_measured", time / seconds, ""),
    )
    inside = float(np.mean(np.abs(time / seconds - 1) <= BAND))
    caption = f"{inside:.0%} of {len(time)} predictions are within 10 % (the band) of what was measured."
    if not any(study.measured["collective"].text() if "collective" in study.measured else ()):
        caption += " The measurements do not name the algorithm: each is compared with all algorithms."
    roles = {"x": "measured_s", "y": "predicted_over_measured", **study.series()}
    words = {"x": "measured time", "y": "predicted / measured"}
    return Figure("accuracy", "scatter", "Predicted against measured", caption, table, roles, words,
                  frozenset(("x", "y")))  # fmt: skip


def pairs(rows: FigureTable, measured: FigureTable) -> tuple[Numbers, Numbers]:
    """Rows and measurements of the same operation, size and ranks; what a measurement leaves open matches any row.

    Returns
    -------
    int64[m], int64[m]
        Row of the prediction, and of the measurement.
    """
    if not {"size_B", "time_s"} <= set(rows):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    sizes, operations = rows["size_B"].values, rows["operation"].text() if "operation" in rows else []
    words = np.array(operations, object)
    names = np.array([name.partition(":")[0] for name in rows["collective"].text()]) if "collective" in rows else None
    matches: list[tuple[int, int]] = []
    ranks = measured["n_ranks"].values if "n_ranks" in measured else np.full(measured.n_rows, np.nan)
    algorithm = measured["collective"].text() if "collective" in measured else [""] * measured.n_rows
    for i, operation in enumerate(measured["operation"].text()):
        size = measured["size_B"].values[i]
        same = (np.abs(sizes - size) <= SAME_SIZE * np.maximum(sizes, size)) & (rows["time_s"].values > 0)
        if len(words):
            same &= words == operation
        if "n_ranks" in rows and np.isfinite(ranks[i]):
            same &= rows["n_ranks"].values == ranks[i]
        if names is not None and algorithm[i] in set(names):
            same &= names == algorithm[i]
        if measured["time_s"].values[i] > 0:
            matches += [(int(row), i) for row in np.flatnonzero(same)]
    out = np.array(matches, np.int64).reshape(-1, 2)
    return out[:, 0], out[:, 1]


OF_ROWS: Mapping[str, Callable[[Study], Figure]] = {
    "busbw": busbw, "time": time, "speedup": speedup, "choice": choice, "accuracy": accuracy,
    "cdf": cdf, "strong": strong, "weak": weak,
}  # fmt: skip
