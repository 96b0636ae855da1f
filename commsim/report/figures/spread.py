"""How completion times are spread, and how they change with the number of ranks."""

from __future__ import annotations

import numpy as np

from commsim.report.read_rows import distinct
from commsim.report.study import Study

from .figure import Figure, NothingToDraw

LEAST_POINTS = 8


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
    caption = f"Bus bandwidth over that with the fewest ranks, where {what} ({fixed}) and all else too."
    roles = {"x": "n_ranks", "y": y, **study.series("n_ranks")}
    words = {"x": "ranks", "y": f"{name} scaling efficiency", "level": "ideal"}
    return Figure(name, "curves", f"{name.capitalize()} scaling", caption, rows, roles, words, frozenset("x"),
                  level=1.0)  # fmt: skip
