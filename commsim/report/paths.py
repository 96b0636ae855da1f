"""Where the lines between boxes run."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

from .boxes import Boxes
from .bundles import Bundles
from .grid import grid_dims, link_on_grid
from .layout import Layout
from .metrics import BOX_HEIGHT
from .picture import Point


def anchors(boxes: Boxes, bundles: Bundles, at: Layout) -> NDArray[np.float64]:
    """Return x of both ends of each bundle: at the edge of a box lines are spread in the order of where they lead."""
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


def path_of(
    network: Network, boxes: Boxes, bundles: Bundles, at: Layout, x: NDArray[np.float64], i: int
) -> list[Point]:
    """Points of bundle `i`, from the lower box to the upper one; `x` is where it leaves the two."""
    low, high = int(bundles.low[i]), int(bundles.high[i])
    y_low, y_high = float(at.y[low]), float(at.y[high])
    if at.shape == "grid":
        a, b = (int(np.flatnonzero(boxes.of_node == box)[0]) for box in (low, high))
        return link_on_grid(network, grid_dims(network), (a, b), ((float(x[0]), y_low), (float(x[1]), y_high)))
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


def _chord(boxes: Boxes, at: Layout, low: int, high: int) -> list[Point]:
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
