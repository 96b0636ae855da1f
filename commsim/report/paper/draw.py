"""Draw figures with matplotlib: what is drawn is what :mod:`commsim.report.figures.drawn` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.report.columns import Column, Table
from commsim.report.figures.accuracy import BAND
from commsim.report.figures.drawn import drawn
from commsim.report.figures.figure import Figure
from commsim.report.format_value import format_value
from commsim.report.palette import INK, SERIES
from commsim.report.png import matplotlib_figure
from commsim.report.read_rows import distinct

from .axes import draw_rules, label_axis
from .maps import draw_choice, draw_heat
from .spans import draw_spans
from .style import DASHES, MARKS, legend_columns

MOST_SERIES, MOST_RANKS = 14, 4
LEGEND_ROW = 0.15


def draw(figure: Figure, width: float) -> Any:
    """Return a matplotlib figure; a picture of a network has the size that it has, whatever the width."""
    from matplotlib.figure import Figure as Canvas

    kinds: Mapping[str, Callable[[Any, Figure], None]] = {
        "curves": _curves, "cdf": _cdf, "scatter": _scatter, "heat": draw_heat, "choice": draw_choice,
        "spans": draw_spans,
    }  # fmt: skip
    if figure.picture is not None:
        return matplotlib_figure(figure.picture)
    canvas = Canvas(figsize=(width, 0.68 * min(width, 4.5)), layout="constrained")
    kinds[figure.kind](canvas, figure)
    return canvas


def by_series(table: Table, by: str | None) -> list[tuple[str, int, Table]]:
    """Split a table by the values of a column: name, number of the colour, rows.

    Raises
    ------
    InputError
        If there are too many to tell apart.
    """
    if by is None:
        return [("", 0, table)]
    values = distinct(table[by])
    if len(values) > MOST_SERIES:
        raise InputError(f"{len(values)} values of {by} are too many for one plot (at most {MOST_SERIES}); choose --by")
    return [(label_of(table[by], v), i, table.take(table[by].values == v)) for i, v in enumerate(values)]


def label_of(column: Column, value: float) -> str:
    """Write a value for people."""
    if column.labels is not None:
        return column.labels[int(value)]
    return format_value(value, column.unit)


def _curves(canvas: Any, figure: Figure) -> None:
    axes = canvas.add_subplot()
    x, y = figure.roles["x"], figure.roles["y"]
    table = drawn(figure)
    to_x, to_y = label_axis(axes, figure, "x", table[x].values), label_axis(axes, figure, "y", table[y].values)
    for name, i, part in by_series(table, figure.roles.get("by")):
        at = part[x].values / to_x
        low, high = (part[f"{end}_{y}"].values / to_y for end in ("least", "greatest"))
        if (low < high).any():
            axes.fill_between(at, low, high, color=SERIES[i % 7], alpha=0.15, linewidth=0)
        axes.plot(
            at, part[y].values / to_y, color=SERIES[i % 7], marker=MARKS[i % 6], label=name or None, clip_on=False
        )
    points = figure.points
    if points is not None and {x, y} <= set(points):
        at, of = points[x].values / to_x, points[y].values / to_y
        axes.plot(at, of, "x", color=INK, markersize=4, label=f"measured{_on_ranks(points)}", zorder=5)
    if "y" not in figure.logarithmic:
        axes.set_ylim(bottom=0)
    rates = distinct(figure.table[figure.roles["rule"]])[:6].tolist() if "rule" in figure.roles else []
    if rates:
        axes.set_ylim(top=max(axes.get_ylim()[1], 1.06 * rates[-1] / to_y))
    draw_rules(axes, {rate / to_y: f"line rate {format_value(rate, 'B/s')}" for rate in rates})
    if figure.level is not None:
        draw_rules(axes, {figure.level / to_y: figure.wording["level"]})
    _legend(canvas, axes)


def _on_ranks(points: Table) -> str:
    ranks = distinct(points["n_ranks"]).tolist() if "n_ranks" in points else []
    return f" on {', '.join(f'{n:g}' for n in ranks)} ranks" if 0 < len(ranks) <= MOST_RANKS else ""


def _cdf(canvas: Any, figure: Figure) -> None:
    axes = canvas.add_subplot()
    x, table = figure.roles["x"], drawn(figure)
    scale = label_axis(axes, figure, "x", table[x].values)
    for name, i, part in by_series(table, figure.roles.get("by")):
        values = part[x].values / scale
        axes.step(np.r_[values[:1], values], np.r_[0.0, part["share"].values], where="post", color=SERIES[i % 7],
                  linestyle=DASHES[i % 4], label=name or None)  # fmt: skip
    axes.set_ylim(0, 1.02)
    axes.set_ylabel(figure.wording.get("y", "share"))
    _legend(canvas, axes)


def _scatter(canvas: Any, figure: Figure) -> None:
    axes = canvas.add_subplot()
    x, y, table = figure.roles["x"], figure.roles["y"], figure.table
    to_x = label_axis(axes, figure, "x", table[x].values)
    label_axis(axes, figure, "y", np.r_[table[y].values, 1 - 2 * BAND, 1 + 2 * BAND])
    axes.axhspan(1 - BAND, 1 + BAND, color="#dddddd", linewidth=0)
    axes.axhline(1, color=INK, linewidth=0.8, linestyle=DASHES[1])
    for name, i, part in by_series(table, figure.roles.get("by")):
        axes.plot(part[x].values / to_x, part[y].values, MARKS[i % 6], color=SERIES[i % 7], label=name or None)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 1 - 2 * BAND), max(high, 1 + 2 * BAND))
    _legend(canvas, axes)


def _legend(canvas: Any, axes: Any) -> None:
    """Write names above the axes, where they cover no data; the plot becomes higher, the axes no smaller."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1 or any(name.startswith("measured") for name in names):
        columns = legend_columns(canvas, names)
        canvas.legend(handles, names, loc="outside upper left", ncols=columns, columnspacing=1.0)
        rows = -(-len(names) // columns)
        canvas.set_size_inches(canvas.get_figwidth(), canvas.get_figheight() + LEGEND_ROW * (rows - 1))
