"""Axes of plots: which unit they are in, where their ticks are, what is written on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.report.figures.figure import Figure
from commsim.report.format_value import format_value
from commsim.report.palette import INK

from .style import DASHES, SMALL, unit_scale

NARROW = 4.0
"""A range of less than this factor is drawn on a linear axis, since a logarithmic one would have hardly a number."""


def label_axis(axes: Any, figure: Figure, role: str, values: NDArray[np.float64]) -> float:
    """Write name and unit on the axis of a role, make it logarithmic if the figure says so.

    Returns
    -------
    float
        By what values of the role are divided before they are drawn.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    unit = figure.table[figure.roles[role]].unit
    finite = values[np.isfinite(values) & (values > 0)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (1.0, 1.0)
    axis, name = getattr(axes, f"{role}axis"), figure.wording[role]
    if role not in figure.logarithmic or high < NARROW * low:
        scale, written = unit_scale(unit, high)
        getattr(axes, f"set_{role}label")(f"{name} ({written})" if written else name)
        axes.ticklabel_format(axis=role, useOffset=False)  # numbers as they are, nothing to be added to them
        return scale
    getattr(axes, f"set_{role}scale")("log")
    if unit == "B" or (unit == "" and bool((finite == np.rint(finite)).all())):
        axis.set_major_locator(LogLocator(base=2, numticks=6))
        axis.set_minor_locator(NullLocator())
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value, unit)))
    axis.set_minor_formatter(NullFormatter())
    getattr(axes, f"set_{role}label")(name)
    return 1.0


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
