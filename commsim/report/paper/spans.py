"""Timelines for papers: a lane per rank or link, a bar per message, the critical path outlined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.report.figures.figure import Figure
from commsim.report.palette import EFFECTS
from commsim.report.read_rows import distinct

from .axes import label_axis

Reals = NDArray[np.float64]
Marks = NDArray[np.bool_]
LANE, FEW = 0.14, 4000
NARROW = 4.0
"""Points: rows of bars on the critical path that are narrower are marked above and below only."""


def draw_spans(canvas: Any, figure: Figure) -> None:
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
