"""The lines between boxes: where they run, how wide they are, and their colour under load."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.units import format_bandwidth
from commsim.pages.palette import BOX_HEIGHT, FAINT, FAULT, LINK, load_colour

from .boxes import Boxes, BoxLinks, grid_dims
from .layout import BoxLayout
from .picture import Label, Line, Point, Shape, text_width

MAX_PARALLEL, MAX_COUNTS, MAX_CLASSES, MAX_THICK = 3, 64, 4, 100
_APART = 4.0
CASING = 5.0  # pixels by which the line below that of a slower cable is wider


def _anchors(boxes: Boxes, bundles: BoxLinks, at: BoxLayout) -> NDArray[np.float64]:
    """X of both ends of each bundle; at the edge of a box, lines are spread in the order of their other ends."""
    x = np.stack((at.x[bundles.low], at.x[bundles.high]), axis=1)
    if at.shape != "rows":
        return x
    rises = boxes.row[bundles.low] != boxes.row[bundles.high]
    for side, (here, there) in enumerate(((bundles.low, bundles.high), (bundles.high, bundles.low))):
        rising = np.flatnonzero(rises)
        order = rising[np.lexsort((at.x[there[rising]], here[rising]))]
        first = np.r_[True, np.diff(here[order]) != 0] if order.size else np.zeros(0, np.bool_)
        begin = np.flatnonzero(first)
        n = np.diff(np.r_[begin, len(order)])
        nth = np.arange(len(order)) - np.repeat(begin, n)
        share = (nth + 0.5) / np.repeat(n, n) - 0.5
        x[order, side] += share * np.where(np.repeat(n, n) > 1, 0.7, 0.0) * at.width[here[order]]
    return x


def _path_of(
    network: Network, boxes: Boxes, bundles: BoxLinks, at: BoxLayout, x: NDArray[np.float64], i: int
) -> list[Point]:
    """Points of bundle `i`, from the lower box to the upper one; `x` is where it leaves the two."""
    low, high = int(bundles.low[i]), int(bundles.high[i])
    y_low, y_high = float(at.y[low]), float(at.y[high])
    if at.shape == "grid":
        a, b = (int(np.flatnonzero(boxes.of_node == box)[0]) for box in (low, high))
        return _link_on_grid(network, grid_dims(network), (a, b), ((float(x[0]), y_low), (float(x[1]), y_high)))
    if at.shape == "circle":
        return _chord(boxes, at, low, high)
    half = BOX_HEIGHT / 2
    if boxes.row[low] != boxes.row[high]:
        return [(float(x[0]), y_low - half), (float(x[1]), y_high + half)]
    # in one row: an arc, below the bottom row and above the others
    down = 1.0 if boxes.row[low] == 0 else -1.0
    height = down * min(60.0, 16.0 + 0.1 * abs(float(x[1] - x[0])))
    turns = np.linspace(0.0, math.pi, 13)
    middle, reach = (x[0] + x[1]) / 2, (x[1] - x[0]) / 2
    return [(float(middle - reach * math.cos(t)), y_low + down * half + height * math.sin(t)) for t in turns]


def beside(path: list[Point], offset: float) -> list[Point]:
    """Move a path sideways."""
    dx, dy = path[-1][0] - path[0][0], path[-1][1] - path[0][1]
    length = math.hypot(dx, dy) or 1.0
    return [(x - dy / length * offset, y + dx / length * offset) for x, y in path]


def _chord(boxes: Boxes, at: BoxLayout, low: int, high: int) -> list[Point]:
    """Return a straight line, or inside the circle a curve towards its middle, so that it passes by boxes between."""
    ends = [(float(at.x[box]), float(at.y[box])) for box in (low, high)]
    ring = np.flatnonzero(boxes.row == boxes.row.max())
    place = np.searchsorted(ring, [low, high])
    apart = abs(int(place[1] - place[0]))
    if boxes.row[low] != boxes.row[high] or min(apart, len(ring) - apart) < 2:
        return ends
    (x0, y0), (x1, y1) = ends
    centre = [float(c[ring].min() + c[ring].max()) / 2 for c in (at.x, at.y)]
    bend = max(0.0, 0.5 - math.hypot(x1 - x0, y1 - y0) / float(np.ptp(at.x[ring])))
    cx, cy = ((a + b) / 2 * (1 - bend) + c * bend for a, b, c in ((x0, x1, centre[0]), (y0, y1, centre[1])))
    return [
        (x0 * (1 - t) ** 2 + 2 * cx * t * (1 - t) + x1 * t * t, y0 * (1 - t) ** 2 + 2 * cy * t * (1 - t) + y1 * t * t)
        for t in np.linspace(0.0, 1.0, 17).tolist()
    ]


def rate_classes(bundles: BoxLinks) -> list[float]:
    """Different rates in bytes/s, the slowest first: the width of a line says which of them it is."""
    return [float(rate) for rate in np.unique(bundles.rate)]


def line_width(rate: float, rates: list[float]) -> float:
    """Width of a line in pixels."""
    steps = max(1, min(len(rates), MAX_CLASSES) - 1)
    return 1.3 + 1.9 * rates.index(rate) / max(1, len(rates) - 1) * min(1.0, steps / 2) if len(rates) > 1 else 1.5


def draw_cables(network: Network, boxes: Boxes, bundles: BoxLinks, at: BoxLayout, full: float | None) -> list[Shape]:
    """Draw every bundle.

    Parameters
    ----------
    network : Network
        Network with the names for tooltips.
    boxes, bundles, at
        What is drawn, and where.
    full : float or None
        Load that has the darkest colour; None without loads.
    """
    rates = rate_classes(bundles)
    ends = _anchors(boxes, bundles, at)
    cables_of = np.maximum(bundles.up, bundles.down)
    is_counted = np.count_nonzero(cables_of > MAX_PARALLEL) <= MAX_COUNTS
    thin = min(1.0, max(0.4, MAX_THICK / max(1, len(bundles))))
    lines: list[Shape] = []
    counts: list[Label] = []
    busy = np.maximum(bundles.load_up, bundles.load_down)
    for i in np.argsort(busy, kind="stable").tolist():  # what is busy is painted last
        path = _path_of(network, boxes, bundles, at, ends[i], i)
        cables = int(cables_of[i])
        width, title = thin * line_width(float(bundles.rate[i]), rates), _title(boxes, bundles, i, full)
        per_member = cables == max(boxes.size[bundles.low[i]], boxes.size[bundles.high[i]])
        drawn = cables if cables <= MAX_PARALLEL and not (per_member and cables > 1) else 1
        for offset in _APART * (np.arange(drawn) - (drawn - 1) / 2) if cables else ():
            if bundles.slow[i]:
                lines.append(Line(tuple(beside(path, float(offset))), FAULT, width + CASING))
            lines += _line(beside(path, float(offset)), width, bundles, i, full, title)
        if bundles.dead[i]:
            away = _APART * (drawn + 1) / 2 if cables else 0.0
            lines.append(Line(tuple(beside(path, away)), FAULT, 2.0, dashed=True, title=title))
        if drawn < cables and is_counted:
            counts += _count(f"{cables}x", path, counts)
    return [*lines, *counts, *_told_faults(network, boxes, bundles, at, ends, counts)]


def _told_faults(
    network: Network, boxes: Boxes, bundles: BoxLinks, at: BoxLayout, ends: NDArray[np.float64], others: list[Label]
) -> list[Label]:
    """Label what is dead or slower; of many the lines alone say it."""
    faulty = np.flatnonzero((bundles.dead > 0) | (bundles.slow > 0))
    labels: list[Label] = []
    for i in faulty.tolist() if len(faulty) <= MAX_COUNTS else ():
        cables, dead, slow = (int(n[i]) for n in (np.maximum(bundles.up, bundles.down), bundles.dead, bundles.slow))
        texts = [f"{dead} of {dead + cables} dead" if cables else "dead"] if dead else []
        if slow:
            rate = format_bandwidth(float(bundles.slowest[i])).split(" (")[0]
            texts.append(rate if slow == cables else f"{slow} of {cables}: {rate}")
        path = _path_of(network, boxes, bundles, at, ends[i], i)
        found = _count(", ".join(texts), path, [*others, *labels])
        labels += [dataclasses.replace(label, colour=FAULT, size=11, bold=True) for label in found]
    return labels


def _count(text: str, path: list[Point], others: list[Label]) -> list[Label]:
    """Label with the number of cables of a line, at the first place without another label; none if all are taken."""
    (x0, y0), (x1, y1) = path[0], path[-1]
    for share in (0.3, 0.42, 0.18, 0.56, 0.68, 0.8):
        x, y = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
        apart = [(text_width(text + other.text, 10) / 2, other) for other in others]
        if all(abs(x - other.x) > least or abs(y - other.y) > 12 for least, other in apart):
            return [Label(x, y, text, 10, FAINT, halo=True)]
    return []


def _line(path: list[Point], width: float, bundles: BoxLinks, i: int, full: float | None, title: str) -> list[Shape]:
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


def _title(boxes: Boxes, bundles: BoxLinks, i: int, full: float | None) -> str:
    low, high = boxes.title[bundles.low[i]].split(":")[0], boxes.title[bundles.high[i]].split(":")[0]
    up, down = int(bundles.up[i]), int(bundles.down[i])
    links = f"{up}" if up == down else f"{up} and {down}"
    text = f"{low} to {high}\n{links} links each way, {format_bandwidth(float(bundles.rate[i]))}"
    if full is not None:
        text += f"\nbusiest: {low} sends {bundles.load_up[i]:.1%}, {high} sends {bundles.load_down[i]:.1%} of capacity"
    if bundles.dead[i] or bundles.slow[i]:
        text += f"\nby faults: {bundles.dead[i]} dead, {bundles.slow[i]} slower"
    return text.replace("1 links", "1 link") if up == down == 1 else text


def _link_on_grid(network: Network, dims: list[int], ends: tuple[int, int], path: tuple[Point, Point]) -> list[Point]:
    """Points of a link between two nodes: straight between neighbours, an arc around those in between otherwise."""
    a, b = (network.coordinates[node, dims].astype(int) for node in ends)
    (x0, y0), (x1, y1) = path
    if np.abs(a - b).sum() <= 1:
        return [(x0, y0), (x1, y1)]
    length = math.hypot(x1 - x0, y1 - y0)
    bulge = min(34.0, 14.0 + 0.04 * length)
    if x1 < x0 or (x1 == x0 and y1 < y0):
        bulge = -bulge
    turns = np.linspace(0.0, 1.0, 13)
    side = 4 * bulge * turns * (1 - turns)
    points = zip(turns.tolist(), side.tolist(), strict=True)
    return [
        (x0 + (x1 - x0) * t + (y1 - y0) / length * s, y0 + (y1 - y0) * t - (x1 - x0) / length * s) for t, s in points
    ]
