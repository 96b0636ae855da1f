"""How plots for papers look: as wide as a column, letters of at least 7 points, colours that all can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commsim.core.errors import InputError
from commsim.report.palette import SERIES

WIDTHS = {"column": 3.33, "page": 7.0}
"""Inches: of one column of two, and of both."""
LEAST_WIDTH, MOST_WIDTH = 1.5, 40.0
MARKS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
SMALL, LETTERS = 7.0, 8.0
STYLE: Any = {
    "font.family": "DejaVu Sans", "font.size": LETTERS, "axes.labelsize": LETTERS, "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL, "legend.fontsize": SMALL, "axes.linewidth": 0.6, "lines.linewidth": 1.1,
    "lines.markersize": 3.2, "grid.linewidth": 0.4, "grid.color": "#dddddd", "axes.grid": True, "axes.axisbelow": True,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "legend.frameon": False, "legend.handlelength": 1.8,
    "axes.spines.top": False, "axes.spines.right": False, "savefig.dpi": 300, "pdf.fonttype": 42,
    "svg.hashsalt": "commsim",
    "axes.prop_cycle": "cycler('color', " + repr(list(SERIES)) + ")", "text.parse_math": False, "path.simplify": False,
}  # fmt: skip


def read_width(text: str) -> float:
    """Read ``column``, ``page`` or a number of inches.

    Raises
    ------
    InputError
        If it is none of these.
    """
    if text in WIDTHS:
        return WIDTHS[text]
    try:
        inches = float(text)
    except ValueError:
        inches = 0.0
    if not LEAST_WIDTH <= inches <= MOST_WIDTH:
        wanted = (
            f"column ({WIDTHS['column']} in), page ({WIDTHS['page']:g} in) or {LEAST_WIDTH} to {MOST_WIDTH:g} inches"
        )
        raise InputError(f"--width must be {wanted}, got {text!r}")
    return inches


def legend_columns(canvas: Any, names: Sequence[str]) -> int:
    """How many of the longest name fit side by side."""
    return max(1, min(len(names), int(canvas.get_figwidth() * 15 / (max(len(name) for name in names) + 5))))


def unit_scale(unit: str, largest: float) -> tuple[float, str]:
    """By what numbers of a unit are divided on an axis, and the unit that is then written on it."""
    if unit == "B/s":
        return next(((s, u) for s, u in ((1e9, "GB/s"), (1e6, "MB/s")) if largest >= s), (1e3, "kB/s"))
    if unit == "s":
        return next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if largest >= s), (1e-9, "ns"))
    return 1.0, unit
