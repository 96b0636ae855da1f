"""Predicted against measured, with a band of 10 %."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.comparison.pairs import SAME_SIZE
from commsim.report.columns import Table, number_column
from commsim.report.study import Study

from .figure import Figure, NothingToDraw

BAND = 0.1
Numbers = NDArray[np.int64]


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
        caption += " The measurements do not say which algorithm ran: each is compared with all of them."
    roles = {"x": "measured_s", "y": "predicted_over_measured", **study.series()}
    words = {"x": "measured time", "y": "predicted / measured"}
    return Figure("accuracy", "scatter", "Predicted against measured", caption, table, roles, words,
                  frozenset(("x", "y")))  # fmt: skip


def pairs(rows: Table, measured: Table) -> tuple[Numbers, Numbers]:
    """Rows and measurements that tell of the same; what a measurement does not say is no reason not to match.

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
    found: list[tuple[int, int]] = []
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
            found += [(int(row), i) for row in np.flatnonzero(same)]
    out = np.array(found, np.int64).reshape(-1, 2)
    return out[:, 0], out[:, 1]
