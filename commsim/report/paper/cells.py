"""Cells of maps: where they are, one map per value of the facet, and what is written beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.report.columns import Column, Table
from commsim.report.figures.drawn import drawn
from commsim.report.figures.figure import Figure
from commsim.report.format_value import format_value
from commsim.report.read_rows import distinct

from .style import SMALL, unit_scale

MOST_PANELS = 6
LETTER, MARGIN = 0.058, 0.4
"""Inches that a letter at an axis takes on average, and what else there is beside the axes."""
MANY = 20
"""Times that are more are labelled with round numbers."""
Reals = NDArray[np.float64]


def panels(canvas: Any, figure: Figure, table: Table) -> list[tuple[Any, Table]]:
    """One pair of axes per value of the facet, one above the other; the height suits the rows."""
    parts = _parts(figure, table)
    if len(parts) > MOST_PANELS:
        raise InputError(
            f"{figure.name}: {len(parts)} values of {figure.roles['facet']} are more than {MOST_PANELS} maps"
        )
    across, up = table[figure.roles["x"]], table[figure.roles["y"]]
    rows = len(distinct(up))
    each = min(2.4, max(0.7, 0.16 * rows)) if up.labels is None else max(0.5, 0.13 * rows)
    canvas.set_size_inches(canvas.get_figwidth(), 0.75 + len(parts) * (each + 0.25))
    axes = np.atleast_1d(canvas.subplots(len(parts), 1, sharex=True, sharey=True))
    for one, name in zip(axes, parts, strict=True):
        one.annotate(name, (0, 1), xycoords="axes fraction", fontsize=SMALL, va="bottom")
        one.set_ylabel(figure.wording["y"])
    beside = max(map(len, up.labels)) * LETTER if up.labels else 0.0
    unit = _ticks(axes[-1], "x", across, canvas.get_figwidth() - MARGIN - beside)
    _ticks(axes[0], "y", up)
    axes[-1].set_xlabel(figure.wording["x"] + (f" ({unit})" if unit else ""))
    return list(zip(axes, parts.values(), strict=True))


def _parts(figure: Figure, table: Table) -> dict[str, Table]:
    """Rows of each value of the facet; of speed-ups without the baseline itself, which is 1 everywhere."""
    if "facet" not in figure.roles:
        return {"": table}
    facet = table[figure.roles["facet"]]
    parts = {(facet.labels or ())[int(v)]: table.take(facet.values == v) for v in distinct(facet)}
    value = figure.roles["value"]
    shown = {name: part for name, part in parts.items() if (part[value].values != 1).any()}
    return shown if figure.scale == "ratio" and shown else parts


def cells_of(axes: Any, figure: Figure, part: Table, values: Reals) -> Reals:
    """Lay values out by row and column; what is missing is masked. The labels are those of the whole figure."""
    whole = drawn(figure)
    xs, ys = (distinct(whole[figure.roles[r]]) for r in ("x", "y"))
    out = np.full((len(ys), len(xs)), np.nan)
    at = np.searchsorted(ys, part[figure.roles["y"]].values), np.searchsorted(xs, part[figure.roles["x"]].values)
    out[at] = values
    axes.grid(False)
    return np.ma.masked_invalid(out)


def _ticks(axes: Any, which: str, column: Column, room: float = 0.0) -> str:
    """Label the middles of cells, as many as there is room for in inches; returns the unit written on the axis."""
    values = distinct(column)
    unit = ""
    if column.unit == "s" and len(values) > MANY:
        return _round_times(axes, which, values, room)
    if column.labels is not None:
        names = [column.labels[int(v)] for v in values]
    elif column.unit in ("s", "B/s"):
        scale, unit = unit_scale(column.unit, float(values.max()))
        names = [f"{v / scale:.3g}" for v in values]
    else:
        names = [format_value(v, column.unit) for v in values]
    most = 48 if column.labels else 8
    if which == "x":
        most = max(1, int(room / (LETTER * (max(map(len, names)) + 1))))
    every = -(-len(names) // most)
    shown = np.arange(0, len(names), every)
    getattr(axes, f"set_{which}ticks")(shown + 0.5, [names[i] for i in shown])
    if which == "y" and column.labels is not None:
        axes.invert_yaxis()
    return unit


def _round_times(axes: Any, which: str, begins: Reals, room: float) -> str:
    """Label round times between the first and the last of many equal parts; returns the unit."""
    from matplotlib.ticker import MaxNLocator

    step = float(begins[-1] - begins[0]) / (len(begins) - 1)
    end = float(begins[-1]) + step
    scale, unit = unit_scale("s", end)
    found = MaxNLocator(max(3, int(room / 0.4))).tick_values(float(begins[0]) / scale, end / scale)
    ticks = [t for t in found if t * scale <= end * (1 + 1e-9)]
    places = [(t * scale - float(begins[0])) / step for t in ticks]
    getattr(axes, f"set_{which}ticks")(places, [f"{t:g}" for t in ticks])
    return unit
