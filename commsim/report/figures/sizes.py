"""Busbw and time against size, with the line rate and what was measured."""

from __future__ import annotations

from commsim.report.read_rows import distinct
from commsim.report.study import Study

from .figure import Figure, NothingToDraw

LOG_BOTH = frozenset(("x", "y"))


def busbw(study: Study) -> Figure:
    """Bus bandwidth against size: curves per algorithm, the line rate dashed, measurements as marks."""
    _require_sizes(study)
    roles = {"x": "size_B", "y": "busbw_Bps", **study.series("size_B")}
    if "busbw_low_Bps" in study.rows:
        roles |= {"low": "busbw_low_Bps", "high": "busbw_high_Bps"}
    caption = "Lines are medians of the rows shown, bands reach from the least to the greatest."
    if "line_rate_Bps" in study.rows:
        roles["rule"] = "line_rate_Bps"
        caption += " Dashed: the rate at which a rank's own links send, the slowest rank's where they differ."
        caption += " Switches that add may be above it, and algorithms in which that rank sends less than others."
    if study.measured is not None:
        caption += " Marks are measurements."
    words = {"x": "size", "y": "bus bandwidth"}
    return Figure("busbw", "curves", "Bus bandwidth against size", caption, study.rows, roles, words,
                  frozenset("x"), points=study.measured)  # fmt: skip


def time(study: Study) -> Figure:
    """Time against size on two logarithmic axes."""
    _require_sizes(study)
    roles = {"x": "size_B", "y": "time_s", **study.series("size_B")}
    if "p5_s" in study.rows:
        roles |= {"low": "p5_s", "high": "p95_s"}
    caption = "Lines are medians of the rows shown, bands reach from the least to the greatest."
    return Figure("time", "curves", "Time against size", caption, study.rows, roles, {"x": "size", "y": "time"},
                  LOG_BOTH, points=study.measured)  # fmt: skip


def _require_sizes(study: Study) -> None:
    if "size_B" not in study.rows or "busbw_Bps" not in study.rows:
        raise NothingToDraw("the rows have no sizes and rates")
    if len(distinct(study.rows["size_B"])) < 2:
        raise NothingToDraw("there is only one size")
