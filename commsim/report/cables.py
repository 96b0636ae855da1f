"""The lines between boxes: bundles of links, one line per cable while there are few."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network
from commsim.core.units import format_bandwidth

from .boxes import Boxes
from .bundles import Bundles
from .layout import Layout
from .palette import FAINT, LINK, load_colour
from .paths import anchors, beside, path_of
from .picture import Label, Line, Point, Shape

MOST_PARALLEL, MOST_COUNTS, MOST_CLASSES, MOST_THICK = 3, 64, 4, 100
_APART = 4.0


def rate_classes(bundles: Bundles) -> list[float]:
    """Different rates in bytes/s, the slowest first: the width of a line says which of them it is."""
    return [float(rate) for rate in np.unique(bundles.rate)]


def line_width(rate: float, rates: list[float]) -> float:
    """Width of a line in pixels."""
    steps = max(1, min(len(rates), MOST_CLASSES) - 1)
    return 1.3 + 1.9 * rates.index(rate) / max(1, len(rates) - 1) * min(1.0, steps / 2) if len(rates) > 1 else 1.5


def draw_cables(network: Network, boxes: Boxes, bundles: Bundles, at: Layout, full: float | None) -> list[Shape]:
    """Draw every bundle.

    Parameters
    ----------
    network : Network
        For the names in tooltips.
    boxes, bundles, at
        What is drawn, and where.
    full : float or None
        Load that has the darkest colour; None without loads.
    """
    rates = rate_classes(bundles)
    ends = anchors(boxes, bundles, at)
    thin = min(1.0, max(0.4, MOST_THICK / max(1, len(bundles))))
    lines: list[Shape] = []
    counts: list[Label] = []
    busy = np.maximum(bundles.load_up, bundles.load_down)
    for i in np.argsort(busy, kind="stable").tolist():  # what is busy is painted last
        path = path_of(network, boxes, bundles, at, ends[i], i)
        cables = int(max(bundles.up[i], bundles.down[i]))
        width, title = thin * line_width(float(bundles.rate[i]), rates), _title(boxes, bundles, i, full)
        per_member = cables == max(boxes.size[bundles.low[i]], boxes.size[bundles.high[i]])
        drawn = cables if cables <= MOST_PARALLEL and not (per_member and cables > 1) else 1
        for offset in _APART * (np.arange(drawn) - (drawn - 1) / 2):
            lines += _line(beside(path, float(offset)), width, bundles, i, full, title)
        if drawn < cables and not per_member and len(bundles) <= MOST_COUNTS:
            counts += _count(f"{cables}x", path, counts)
    return [*lines, *counts]


def _count(text: str, path: list[Point], others: list[Label]) -> list[Label]:
    """Write how many cables a line stands for, where no other such label is; nowhere when all places are taken."""
    (x0, y0), (x1, y1) = path[0], path[-1]
    for share in (0.3, 0.42, 0.18, 0.56, 0.68, 0.8):
        x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
        if all(abs(x - other.x) > 24 or abs(y - other.y) > 12 for other in others):
            return [Label(x, y, text, 10, FAINT, halo=True)]
    return []


def _line(path: list[Point], width: float, bundles: Bundles, i: int, full: float | None, title: str) -> list[Shape]:
    """Draw one line; with loads each half has the colour of what the box at its end sends."""
    if full is None:
        return [Line(tuple(path), LINK, width, title=title)]
    path = _refined(path)
    middle = len(path) // 2
    halves = ((path[: middle + 1], bundles.load_up[i]), (path[middle:], bundles.load_down[i]))
    return [Line(tuple(half), load_colour(float(load) / full), width + 0.8, title=title) for half, load in halves]


def _refined(path: list[Point]) -> list[Point]:
    if len(path) > 2:
        return path
    (x0, y0), (x1, y1) = path
    return [path[0], ((x0 + x1) / 2, (y0 + y1) / 2), path[1]]


def _title(boxes: Boxes, bundles: Bundles, i: int, full: float | None) -> str:
    low, high = boxes.title[bundles.low[i]].split(":")[0], boxes.title[bundles.high[i]].split(":")[0]
    up, down = int(bundles.up[i]), int(bundles.down[i])
    links = f"{up}" if up == down else f"{up} and {down}"
    text = f"{low} to {high}\n{links} links each way, {format_bandwidth(float(bundles.rate[i]))}"
    if full is not None:
        text += f"\nbusiest: {low} sends {bundles.load_up[i]:.1%}, {high} sends {bundles.load_down[i]:.1%} of capacity"
    return text.replace("1 links", "1 link") if up == down == 1 else text
