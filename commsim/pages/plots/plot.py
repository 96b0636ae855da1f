"""Write a figure as PDF, SVG or PNG with matplotlib, and the numbers behind it as CSV (reproducible bytes)."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.extras import needs
from commsim.core.files.whole_files import replacing
from commsim.pages.figure import Figure, drawn_table
from commsim.pages.figure_tables import Column, FigureTable, csv_text, distinct, format_value
from commsim.pages.figures_of_rows import BAND
from commsim.pages.palette import EFFECTS, INK, SERIES
from commsim.pages.pictures.paint import matplotlib_figure
from commsim.pages.plots.plot_axes import DASHES, MARKS, STYLE, draw_rules, label_axis, legend_columns
from commsim.pages.plots.plot_maps import draw_choice, draw_heat
from commsim.pages.rows.algorithms import CURVE

Reals = NDArray[np.float64]
Marks = NDArray[np.bool_]
LANE, FEW = 0.14, 4000
# Points: rows of bars on the critical path that are narrower are marked above and below only.
NARROW = 4.0
MAX_SERIES, MAX_RANKS = 14, 4
LEGEND_ROW = 0.15
SUFFIXES = (".pdf", ".svg", ".png")


def _draw_spans(canvas: Any, figure: Figure) -> None:
    """Draw every bar."""
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.patches import Patch

    table, role = figure.table, figure.roles
    lanes = distinct(table[role["y"]])
    width = canvas.get_figwidth()
    canvas.set_size_inches(width, 0.7 + LANE * len(lanes))
    axes = canvas.add_subplot()
    start, end = table[role["x"]].values, table[role["end"]].values
    scale = label_axis(axes, figure, "x", np.array([end.max()]))
    lane = np.searchsorted(lanes, table[role["y"]].values)
    level = table[role["level"]].values
    depth = np.ones(len(lanes))
    np.maximum.at(depth, lane, level + 1)
    low = lane + 0.06 + 0.88 * level / depth[lane]
    high = low + 0.88 / depth[lane]
    left, right = start / scale, end / scale
    corners: Any = np.stack([np.stack(p, 1) for p in ((left, low), (right, low), (right, high), (left, high))], 1)
    by, critical = table[role["by"]], table[role["mark"]].values > 0
    colours = np.array([EFFECTS[label] for label in by.labels or ()])[by.values]
    many = len(corners) > FEW
    axes.add_collection(PolyCollection(corners, facecolors=colours, alpha=0.75, linewidths=0, rasterized=many))
    narrow = _in_rows(left, right, lane * 1000 + level, critical, NARROW * float(right.max()) / (width * 72))
    outlined = corners[critical & ~narrow]
    axes.add_collection(PolyCollection(outlined, facecolors="none", edgecolors="black", linewidths=0.8))
    edges = [bar[side] for bar in corners[critical & narrow] for side in ([0, 1], [3, 2])]  # a whole edge would hide it
    axes.add_collection(LineCollection(edges, colors="black", linewidths=0.8))
    axes.set_xlim(0, float(right.max()))
    axes.set_ylim(len(lanes), 0)
    axes.set_yticks(np.arange(len(lanes)) + 0.5, [(table[role["y"]].labels or ())[int(v)] for v in lanes])
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    handles = [
        Patch(color=colour, alpha=0.75, label=name) for name, colour in EFFECTS.items() if name in (by.labels or ())
    ]
    if critical.any():
        handles.append(Patch(facecolor="none", edgecolor="black", label="critical path"))
    canvas.legend(handles=handles, loc="outside upper left", ncols=len(handles) if width > 3 else 1)


def _in_rows(left: Reals, right: Reals, row: Reals, critical: Marks, least: float) -> Marks:
    """Find bars on the critical path that are narrow and beside another such bar: black edges would hide them."""
    which = np.flatnonzero(critical)
    near = (row[which][1:] == row[which][:-1]) & (left[which][1:] - right[which][:-1] < least)
    out = np.zeros(len(left), bool)
    out[which] = (np.r_[False, near] | np.r_[near, False]) & (right - left < least)[which]
    return out


def draw(figure: Figure, width: float) -> Any:
    """Return a matplotlib figure; a picture of a network has the size that it has, whatever the width."""
    from matplotlib.figure import Figure as Canvas

    kinds: Mapping[str, Callable[[Any, Figure], None]] = {
        "curves": _curves, "cdf": _cdf, "scatter": _scatter, "heat": draw_heat, "choice": draw_choice,
        "spans": _draw_spans,
    }  # fmt: skip
    if figure.picture is not None:
        return matplotlib_figure(figure.picture)
    canvas = Canvas(figsize=(width, 0.68 * min(width, 4.5)), layout="constrained")
    kinds[figure.kind](canvas, figure)
    return canvas


def _by_series(table: FigureTable, by: str | None) -> list[tuple[str, int, FigureTable]]:
    """Split a table by the values of a column: name, number of the colour, rows.

    Raises
    ------
    InputError
        If there are too many to tell apart.
    """
    if by is None:
        return [("", 0, table)]
    values = distinct(table[by])
    if len(values) > MAX_SERIES:
        what = "pairs of a value and an algorithm" if by == CURVE else f"values of {by}"
        raise InputError(
            f"{len(values)} {what} are too many for one plot (at most {MAX_SERIES}): choose fewer rows with --where "
            "COLUMN=VALUE, or another --by"
        )
    column = table[by]
    is_bare = column.labels is None and not column.unit  # a number that says nothing of what it is
    name = f"{by.rpartition('.')[2]}=" if is_bare else ""
    return [(f"{name}{_label_of(column, v)}", i, table.take(column.values == v)) for i, v in enumerate(values)]


def _label_of(column: Column, value: float) -> str:
    """Write a value for people."""
    if column.labels is not None:
        return column.labels[int(value)]
    return format_value(value, column.unit)


def _curves(canvas: Any, figure: Figure) -> None:
    axes = canvas.add_subplot()
    x, y = figure.roles["x"], figure.roles["y"]
    table = drawn_table(figure)
    to_x, to_y = label_axis(axes, figure, "x", table[x].values), label_axis(axes, figure, "y", table[y].values)
    for name, i, part in _by_series(table, figure.roles.get("by")):
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


def _on_ranks(points: FigureTable) -> str:
    ranks = distinct(points["n_ranks"]).tolist() if "n_ranks" in points else []
    return f" on {', '.join(f'{n:g}' for n in ranks)} ranks" if 0 < len(ranks) <= MAX_RANKS else ""


def _cdf(canvas: Any, figure: Figure) -> None:
    axes = canvas.add_subplot()
    x, table = figure.roles["x"], drawn_table(figure)
    scale = label_axis(axes, figure, "x", table[x].values)
    for name, i, part in _by_series(table, figure.roles.get("by")):
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
    for name, i, part in _by_series(table, figure.roles.get("by")):
        axes.plot(part[x].values / to_x, part[y].values, MARKS[i % 6], color=SERIES[i % 7], label=name or None)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 1 - 2 * BAND), max(high, 1 + 2 * BAND))
    _legend(canvas, axes)


def _legend(canvas: Any, axes: Any) -> None:
    """Write names above the axes; the plot grows, the axes do not shrink."""
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1 or any(name.startswith("measured") for name in names):
        columns = legend_columns(canvas, names)
        canvas.legend(handles, names, loc="outside upper left", ncols=columns, columnspacing=1.0)
        rows = -(-len(names) // columns)
        canvas.set_size_inches(canvas.get_figwidth(), canvas.get_figheight() + LEGEND_ROW * (rows - 1))


def check_plot(path: str | Path) -> None:
    """Refuse, before anything is computed, a file that no plot can be written to.

    Raises
    ------
    InputError
        If its name has another ending, its folder is missing, it or the CSV beside it is a folder, there is such a CSV
        without a plot of its name in any format, or matplotlib is missing.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: a plot is a file that ends with {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot write: no such folder")
    for file in (path, path.with_suffix(".csv")):
        if file.is_dir():
            raise InputError(f"{file}: cannot write: Is a directory")
    drawn = any(path.with_suffix(suffix).exists() for suffix in SUFFIXES)
    if path.with_suffix(".csv").exists() and not drawn:  # somebody else's, such as an export of a sweep
        other = next(
            name for i in itertools.count(1)
            if not (name := path.with_name(f"{path.stem}_plot{i if i > 1 else ''}{path.suffix}")).exists()
            and not name.with_suffix(".csv").exists()
        )  # fmt: skip
        raise InputError(
            f"{path.with_suffix('.csv')}: exists, and would get the numbers of {path.name}; name it otherwise, such as "
            f"{other}"
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError(needs("plots need matplotlib", "plot")) from None


def write_plot(figure: Figure, path: str | Path, width: float, provenance: Mapping[str, str]) -> Path:
    """Draw a figure and write it, and beside it the CSV of what is drawn.

    Parameters
    ----------
    figure : Figure
        What.
    path : path
        Ends with .pdf, .svg or .png.
    width : float, inches
        Width of the plot.
    provenance : mapping of str to str
        Stamped into the metadata; no date is.

    Returns
    -------
    Path
        Of the CSV file.
    """
    check_plot(path)
    path = Path(path)
    import matplotlib as mpl

    out = io.BytesIO()
    with mpl.rc_context(STYLE):
        canvas = draw(figure, width)
        canvas.savefig(out, format=path.suffix[1:], metadata=_metadata(path.suffix, figure, provenance))
    beside = path.with_suffix(".csv")
    with replacing(beside) as file:
        file.write(csv_text(drawn_table(figure)).encode())
    with replacing(path) as file:
        file.write(out.getvalue())
    return beside


def _metadata(suffix: str, figure: Figure, provenance: Mapping[str, str]) -> dict[str, Any]:
    stamp = json.dumps(dict(provenance), sort_keys=True, ensure_ascii=True)
    program = f"commsim {provenance.get('commsim', '')}".strip()
    if suffix == ".pdf":
        return {"Creator": program, "Producer": program, "Subject": stamp, "Title": figure.title, "CreationDate": None}
    if suffix == ".svg":
        return {"Creator": program, "Description": stamp, "Title": figure.title, "Date": None}
    return {"Software": program, "Description": stamp, "Title": figure.title}
