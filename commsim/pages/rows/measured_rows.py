"""Measurements as a table of columns beside a study, with their bus bandwidths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from commsim.core.operations import operation
from commsim.formats.measurement import Measurement
from commsim.pages.figure_tables import FigureTable, distinct, number_column, word_column

if TYPE_CHECKING:
    from commsim.pages.study import Study


def measured_table(rows: Sequence[Measurement], study: Study) -> FigureTable:
    """Return measurements as a table, with bus bandwidths.

    Parameters
    ----------
    rows : sequence of Measurement
        Measurements.
    study : Study
        Study whose number of ranks, if it has one only, is that of measurements without one.
    """
    usual = distinct(study.rows["n_ranks"]).tolist() if "n_ranks" in study.rows else []
    ranks = [row.n_ranks or (int(usual[0]) if len(usual) == 1 else None) for row in rows]
    factor = [
        np.nan if n is None else operation(row.operation).busbw_factor(n) for row, n in zip(rows, ranks, strict=True)
    ]
    size, time, low, high = (
        np.array([np.nan if (v := getattr(row, name)) is None else v for row in rows], np.float64)
        for name in ("size", "time", "low", "high")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        busbw = [np.where(t > 0, size / t * np.array(factor), np.nan) for t in (time, high, low)]
    return FigureTable.of((
        word_column("operation", [row.operation for row in rows]),
        word_column("collective", [row.algorithm or None for row in rows]),
        word_column("source", [row.source for row in rows]),
        number_column("n_ranks", [np.nan if n is None else n for n in ranks]),
        number_column("size_B", size),
        number_column("time_s", time),
        number_column("p5_s", low),
        number_column("p95_s", high),
        *(number_column(f"busbw{name}_Bps", v) for name, v in zip(("", "_low", "_high"), busbw, strict=True)),
    ))  # fmt: skip
