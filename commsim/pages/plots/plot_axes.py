"""The look of plots for papers: units, ticks and labels of axes, letters from 7 points, marks and line styles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.spec import as_number
from commsim.pages.figure import Figure
from commsim.pages.figure_tables import format_value
from commsim.pages.palette import INK, SERIES

# Inches: of one column of two, and of both.
WIDTHS = {"column": 3.33, "page": 7.0}
LEAST_WIDTH, MAX_WIDTH = 1.5, 40.0
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
# Most values of an axis that get a tick each.
MAX_TICKS = 64
# Inches that a letter at an axis takes on average, and that names and margins beside axes take.
LETTER, BESIDE = 0.058, 0.8
# A range of less than this factor is drawn on a linear axis, since a logarithmic one would have hardly a number.
NARROW = 4.0


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
        inches = as_number(text)
    except ValueError:
        inches = 0.0
    if not LEAST_WIDTH <= inches <= MAX_WIDTH:
        wanted = (
            f"column ({WIDTHS['column']} in), page ({WIDTHS['page']:g} in) or {LEAST_WIDTH} to {MAX_WIDTH:g} inches"
        )
        raise InputError(f"--width must be {wanted}, got {text!r}")
    return inches


def legend_columns(canvas: Any, names: Sequence[str]) -> int:
    """How many of the longest name fit side by side."""
    return max(1, min(len(names), int(canvas.get_figwidth() * 15 / (max(len(name) for name in names) + 5))))


def unit_scale(unit: str, largest: float) -> tuple[float, str]:
    """Divisor of the values on an axis, and the unit written on it."""
    if unit == "B/s":
        return next(((s, u) for s, u in ((1e9, "GB/s"), (1e6, "MB/s")) if largest >= s), (1e3, "kB/s"))
    if unit == "s":
        return next(((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if largest >= s), (1e-9, "ns"))
    return 1.0, unit


def label_axis(axes: Any, figure: Figure, role: str, values: NDArray[np.float64]) -> float:
    """Write name and unit on the axis of a role; make it logarithmic if the figure says so.

    Parameters
    ----------
    axes : matplotlib Axes
        Written to.
    figure : Figure
        What is drawn.
    role : {"x", "y"}
        Name of the axis.
    values : float64[n]
        Values that the axis shows.

    Returns
    -------
    float
        By what values of the role are divided before they are drawn.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    unit = figure.table[figure.roles[role]].unit
    finite = values[np.isfinite(values) & (values > 0)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (1.0, 1.0)
    axis, name = getattr(axes, f"{role}axis"), figure.wording[role]
    exact = role == "x" and _is_counted(unit, finite) and len(np.unique(finite)) <= MAX_TICKS
    if exact and role in figure.logarithmic:
        if high >= NARROW * low:
            axes.set_xscale("log")
        _ticks_at(axes, np.unique(finite), unit, logarithmic=high >= NARROW * low)
        axes.set_xlabel(name)
        return 1.0
    if role not in figure.logarithmic or high < NARROW * low:
        scale, written = unit_scale(unit, high)
        getattr(axes, f"set_{role}label")(f"{name} ({written})" if written else name)
        axes.ticklabel_format(axis=role, useOffset=False)  # numbers as they are, nothing to be added to them
        return scale
    getattr(axes, f"set_{role}scale")("log")
    if _is_counted(unit, finite):
        axis.set_major_locator(LogLocator(base=2, numticks=6))
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value, unit)))
    axis.set_minor_formatter(NullFormatter())
    getattr(axes, f"set_{role}label")(name)
    return 1.0


def _is_counted(unit: str, values: NDArray[np.float64]) -> bool:
    """Whether values are bytes or whole numbers, such as ranks."""
    return unit == "B" or (unit == "" and bool((values == np.rint(values)).all()))


def _ticks_at(axes: Any, values: NDArray[np.float64], unit: str, *, logarithmic: bool) -> None:
    """Put a tick at each value, and its name where that does not cover the one before."""
    from matplotlib.ticker import NullLocator

    at = np.log(values) if logarithmic else values
    inches = (at - at[0]) / ((at[-1] - at[0]) or 1.0) * (axes.figure.get_figwidth() - BESIDE)
    names, free = [], -np.inf
    for place, value in zip(inches.tolist(), values.tolist(), strict=True):
        name = format_value(value, unit)
        half = LETTER * (len(name) + 2) / 2
        names.append(name if place - half >= free else "")
        free = place + half if names[-1] else free
    axes.set_xticks(values, names)
    axes.xaxis.set_minor_locator(NullLocator())


def draw_rules(axes: Any, rules: Mapping[float, str]) -> None:
    """Draw dashed lines at values of y, with their names as far as these do not cover each other."""
    from matplotlib.patheffects import withStroke

    low, high = axes.get_ylim()
    room = (high - low) * 1.5 * SMALL / 72 / (0.7 * axes.figure.get_figheight())
    free = -np.inf
    for value, text in sorted(rules.items()):
        axes.axhline(value, color=INK, linewidth=0.8, linestyle=DASHES[1])
        if value < free:
            continue
        edge = [withStroke(linewidth=2, foreground="white")]
        axes.annotate(
            text, (0.02, value), (0, 1), ("axes fraction", "data"), "offset points",
            fontsize=SMALL, va="bottom", path_effects=edge,
        )  # fmt: skip
        free = value + room
