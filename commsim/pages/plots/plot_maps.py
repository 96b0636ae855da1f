"""Maps for papers: a cell per value of x and y, coloured by a number or by the fastest algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.pages.figure import Figure, drawn_table
from commsim.pages.figure_tables import Column, FigureTable, distinct, format_value
from commsim.pages.palette import IDLE, LOAD_RAMP, RATIO_ENDS, RATIO_RAMP, SERIES
from commsim.pages.plots.plot_axes import LETTER, LETTERS, MARKS, SMALL, legend_columns, unit_scale

MAX_PANELS = 6
# Inches beside the axes.
MARGIN = 0.4
# Times that are more are labelled with round numbers.
MANY = 20
Reals = NDArray[np.float64]
MAX_MARKED = 400
# Inches that the bar of colours takes.
BAR = 0.45
# An algorithm that leads by less is drawn pale.
CLOSE = 1.01


def _panels(canvas: Any, figure: Figure, table: FigureTable) -> list[tuple[Any, FigureTable]]:
    """One pair of axes per value of the facet, one above the other; the height suits the rows."""
    parts = _parts(figure, table)
    if len(parts) > MAX_PANELS:
        raise InputError(
            f"{figure.name}: {len(parts)} values of {figure.roles['facet']} are more than {MAX_PANELS} maps"
        )
    across, up = table[figure.roles["x"]], table[figure.roles["y"]]
    rows = len(distinct(up))
    each = min(2.4, max(0.7, 0.16 * rows)) if up.labels is None else max(0.5, 0.13 * rows)
    canvas.set_size_inches(canvas.get_figwidth(), 0.75 + len(parts) * (each + 0.25))
    axes = np.atleast_1d(canvas.subplots(len(parts), 1, sharex=True, sharey=True))
    for ax, name in zip(axes, parts, strict=True):
        ax.annotate(name, (0, 1), xycoords="axes fraction", fontsize=SMALL, va="bottom")
    canvas.supylabel(figure.wording["y"], fontsize=LETTERS)  # once: it may be longer than one map is high
    beside = max(map(len, up.labels)) * LETTER if up.labels else 0.0
    unit = _ticks(axes[-1], "x", across, canvas.get_figwidth() - MARGIN - beside)
    _ticks(axes[0], "y", up)
    axes[-1].set_xlabel(figure.wording["x"] + (f" ({unit})" if unit else ""))
    return list(zip(axes, parts.values(), strict=True))


def _parts(figure: Figure, table: FigureTable) -> dict[str, FigureTable]:
    """Rows of each value of the facet; without the baseline of speed-ups, which is 1 everywhere."""
    if "facet" not in figure.roles:
        return {"": table}
    facet = table[figure.roles["facet"]]
    parts = {(facet.labels or ())[int(v)]: table.take(facet.values == v) for v in distinct(facet)}
    value = figure.roles["value"]
    shown = {name: part for name, part in parts.items() if (part[value].values != 1).any()}
    return shown if figure.scale == "ratio" and shown else parts


def _cells_of(axes: Any, figure: Figure, part: FigureTable, values: Reals) -> Reals:
    """Lay values out by row and column; what is missing is masked. The labels are those of the whole figure."""
    whole = drawn_table(figure)
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
    round_times = MaxNLocator(max(3, int(room / 0.4))).tick_values(float(begins[0]) / scale, end / scale)
    ticks = [t for t in round_times if t * scale <= end * (1 + 1e-9)]
    places = [(t * scale - float(begins[0])) / step for t in ticks]
    getattr(axes, f"set_{which}ticks")(places, [f"{t:g}" for t in ticks])
    return unit


def draw_heat(canvas: Any, figure: Figure) -> None:
    """Draw a map per value of the facet, and the bar of colours."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

    table, value = drawn_table(figure), figure.roles["value"]
    ratio = figure.scale == "ratio"
    ramp = np.array(RATIO_RAMP if ratio else LOAD_RAMP) / 255
    colours = LinearSegmentedColormap.from_list("ramp", ramp).with_extremes(under=IDLE)
    far = float(np.exp(np.abs(np.log(table[value].values)).max())) if ratio else 1.0
    most = next((end for end in RATIO_ENDS if end >= far), far)
    norm = LogNorm(1 / most, most) if ratio else Normalize(np.finfo(float).tiny, 1)
    maps = _panels(canvas, figure, table)
    for axes, part in maps:
        cells = _cells_of(axes, figure, part, part[value].values)
        mesh = axes.pcolormesh(cells, cmap=colours, norm=norm, rasterized=cells.size > 4000)
    bar = canvas.colorbar(mesh, ax=[axes for axes, _ in maps], location="bottom", aspect=30, pad=0.02)
    canvas.set_size_inches(canvas.get_figwidth(), canvas.get_figheight() + BAR)
    if not ratio:
        bar.set_label(f"{figure.wording['value']} (grey: none)")
        bar.set_ticks(np.linspace(0, 1, 5), labels=[f"{percent} %" for percent in range(0, 101, 25)])
        return
    bar.set_label(figure.wording["value"])
    ticks = [1 / most, most**-0.5, 1, most**0.5, most]
    bar.set_ticks(ticks, labels=[f"{t:.3g}" for t in ticks])
    bar.minorticks_off()


def draw_choice(canvas: Any, figure: Figure) -> None:
    """Draw a map per value of the facet: a colour and a mark per algorithm, pale where its lead is small."""
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    table, by = drawn_table(figure), figure.roles["by"]
    place = {value: i for i, value in enumerate(distinct(figure.table[by]).tolist())}
    colours = [SERIES[i % len(SERIES)] for i in range(len(place))]
    ramp = ListedColormap([*colours, colours[0]][: max(2, len(place))])
    norm = BoundaryNorm(np.arange(len(place) + 1) - 0.5, max(2, len(place)))
    for axes, part in _panels(canvas, figure, table):
        code = np.array([place[v] for v in part[by].values.tolist()], np.float64)
        cells = _cells_of(axes, figure, part, code)
        lead = _cells_of(axes, figure, part, part["times_best_of_second"].values)
        pale = np.where(np.ma.filled(lead, np.inf) < CLOSE, 0.45, 1.0)
        axes.pcolormesh(cells, cmap=ramp, norm=norm, edgecolors="white", linewidth=0.3, alpha=pale)
        _marks(axes, cells, pale)
    used = sorted({place[v] for v in table[by].values.tolist()})
    labels = figure.table[by].labels or ()
    names = [labels[int(distinct(figure.table[by])[i])] for i in used]
    handles: list[Any] = [
        (Patch(color=colours[i]), Line2D([], [], marker=MARKS[i % len(MARKS)], color="white", linestyle="none"))
        for i in used
    ]
    if (table["times_best_of_second"].values < CLOSE).any():
        handles, names = [*handles, Patch(color="#cccccc")], [*names, "pale: another within 1 %"]
    columns = legend_columns(canvas, names)
    canvas.legend(handles, names, loc="outside upper left", ncols=columns)
    canvas.set_size_inches(canvas.get_figwidth(), canvas.get_figheight() + 0.15 * (-(-len(names) // columns) - 1))


def _marks(axes: Any, cells: Reals, pale: Reals) -> None:
    """Put the mark of its algorithm into every cell, where cells are not too many to hold one."""
    if cells.size > MAX_MARKED:
        return
    codes = np.ma.filled(cells, -1).astype(np.int64)
    for code in np.unique(codes[codes >= 0]).tolist():
        for colour, part in (("white", pale == 1), ("black", pale < 1)):
            row, column = np.nonzero((codes == code) & part)
            mark = MARKS[code % len(MARKS)]
            axes.plot(column + 0.5, row + 0.5, mark, color=colour, markersize=2.2, markeredgewidth=0)
