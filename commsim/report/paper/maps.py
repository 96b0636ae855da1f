"""Maps for papers: a cell per value of x and y, coloured by a number or by which algorithm is fastest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.report.columns import Column, Table
from commsim.report.figures.drawn import drawn
from commsim.report.figures.figure import Figure
from commsim.report.palette import LOAD_RAMP, RATIO_RAMP, SERIES
from commsim.report.read_rows import distinct

from .axes import format_value
from .style import SMALL, unit_scale

MOST_PANELS = 6
Reals = NDArray[np.float64]


def draw_heat(canvas: Any, figure: Figure) -> None:
    """Draw a map per value of the facet, and the bar of colours."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

    table, value = drawn(figure), figure.roles["value"]
    ratio = figure.scale == "ratio"
    ramp = np.array(RATIO_RAMP if ratio else ((217, 217, 217), *LOAD_RAMP)) / 255
    colours = LinearSegmentedColormap.from_list("ramp", ramp)
    values = table[value].values
    most = max(1.25, float(np.exp(np.abs(np.log(values)).max()))) if ratio else 1.0
    norm = LogNorm(1 / most, most) if ratio else Normalize(0, 1)
    panels = _panels(canvas, figure, table)
    for axes, part in panels:
        cells = _cells(axes, figure, part, part[value].values)
        mesh = axes.pcolormesh(cells, cmap=colours, norm=norm, rasterized=cells.size > 4000)
    bar = canvas.colorbar(mesh, ax=[axes for axes, _ in panels], aspect=30, pad=0.02)
    bar.set_label(figure.wording["value"])
    if ratio:
        ticks = [t for t in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if 1 / most <= t <= most]
        bar.set_ticks(ticks, labels=[f"{t:g}" for t in ticks])
        bar.minorticks_off()


def draw_choice(canvas: Any, figure: Figure) -> None:
    """Draw a map per value of the facet, and say which colour is which algorithm."""
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Patch

    table, by = drawn(figure), figure.roles["by"]
    place = {value: i for i, value in enumerate(distinct(figure.table[by]).tolist())}
    colours = [SERIES[i % len(SERIES)] for i in range(len(place))]
    ramp = ListedColormap([*colours, colours[0]][: max(2, len(place))])
    norm = BoundaryNorm(np.arange(len(place) + 1) - 0.5, max(2, len(place)))
    for axes, part in _panels(canvas, figure, table):
        code = np.array([place[v] for v in part[by].values.tolist()], np.float64)
        cells = _cells(axes, figure, part, code)
        axes.pcolormesh(cells, cmap=ramp, norm=norm, edgecolors="white", linewidth=0.3)
    used = sorted({place[v] for v in table[by].values.tolist()})
    labels = figure.table[by].labels or ()
    names = [labels[int(distinct(figure.table[by])[i])] for i in used]
    columns = max(1, int(canvas.get_figwidth() * 15 / (max(len(name) for name in names) + 5)))
    canvas.legend([Patch(color=colours[i]) for i in used], names, loc="outside upper left", ncols=columns)


def _panels(canvas: Any, figure: Figure, table: Table) -> list[tuple[Any, Table]]:
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
    unit = _ticks(axes[-1], "x", across)
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


def _cells(axes: Any, figure: Figure, part: Table, values: Reals) -> Reals:
    """Lay values out by row and column; what is missing is masked. The labels are those of the whole figure."""
    whole = drawn(figure)
    xs, ys = (distinct(whole[figure.roles[r]]) for r in ("x", "y"))
    out = np.full((len(ys), len(xs)), np.nan)
    at = np.searchsorted(ys, part[figure.roles["y"]].values), np.searchsorted(xs, part[figure.roles["x"]].values)
    out[at] = values
    axes.grid(False)
    return np.ma.masked_invalid(out)


def _ticks(axes: Any, which: str, column: Column) -> str:
    """Label the middles of cells, as many as there is room for; returns the unit written on the axis."""
    values = distinct(column)
    unit = ""
    if column.labels is not None:
        names = [column.labels[int(v)] for v in values]
    elif column.unit in ("s", "B/s"):
        scale, unit = unit_scale(column.unit, float(values.max()))
        names = [f"{v / scale:.3g}" for v in values]
    else:
        names = [format_value(v, column.unit) for v in values]
    every = max(1, -(-len(names) // (5 if which == "x" else 48 if column.labels else 8)))
    shown = np.arange(0, len(names), every)
    getattr(axes, f"set_{which}ticks")(shown + 0.5, [names[i] for i in shown])
    if which == "y" and column.labels is not None:
        axes.invert_yaxis()
    return unit
