"""Maps for papers: a cell per value of x and y, coloured by a number or by which algorithm is fastest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.report.figures.drawn import drawn
from commsim.report.figures.figure import Figure
from commsim.report.palette import IDLE, LOAD_RAMP, RATIO_ENDS, RATIO_RAMP, SERIES
from commsim.report.read_rows import distinct

from .cells import cells_of, panels
from .style import MARKS, legend_columns

MOST_MARKED = 400
BAR = 0.45
"""Inches that the bar of colours takes."""
CLOSE = 1.01
"""An algorithm that leads by less is drawn pale."""
Reals = NDArray[np.float64]


def draw_heat(canvas: Any, figure: Figure) -> None:
    """Draw a map per value of the facet, and the bar of colours."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

    table, value = drawn(figure), figure.roles["value"]
    ratio = figure.scale == "ratio"
    ramp = np.array(RATIO_RAMP if ratio else LOAD_RAMP) / 255
    colours = LinearSegmentedColormap.from_list("ramp", ramp).with_extremes(under=IDLE)
    far = float(np.exp(np.abs(np.log(table[value].values)).max())) if ratio else 1.0
    most = next((end for end in RATIO_ENDS if end >= far), far)
    norm = LogNorm(1 / most, most) if ratio else Normalize(np.finfo(float).tiny, 1)
    maps = panels(canvas, figure, table)
    for axes, part in maps:
        cells = cells_of(axes, figure, part, part[value].values)
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
    """Draw a map per value of the facet: a colour and a mark per algorithm, pale where it hardly leads."""
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    table, by = drawn(figure), figure.roles["by"]
    place = {value: i for i, value in enumerate(distinct(figure.table[by]).tolist())}
    colours = [SERIES[i % len(SERIES)] for i in range(len(place))]
    ramp = ListedColormap([*colours, colours[0]][: max(2, len(place))])
    norm = BoundaryNorm(np.arange(len(place) + 1) - 0.5, max(2, len(place)))
    for axes, part in panels(canvas, figure, table):
        code = np.array([place[v] for v in part[by].values.tolist()], np.float64)
        cells = cells_of(axes, figure, part, code)
        lead = cells_of(axes, figure, part, part["times_best_of_second"].values)
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
    if cells.size > MOST_MARKED:
        return
    codes = np.ma.filled(cells, -1).astype(np.int64)
    for code in np.unique(codes[codes >= 0]).tolist():
        for colour, part in (("white", pale == 1), ("black", pale < 1)):
            row, column = np.nonzero((codes == code) & part)
            mark = MARKS[code % len(MARKS)]
            axes.plot(column + 0.5, row + 0.5, mark, color=colour, markersize=2.2, markeredgewidth=0)
