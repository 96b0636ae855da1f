"""Positions of boxes: rows by tier, or a circle or grid where switches or hosts are cabled to each other."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.pages.palette import BOX_HEIGHT, GAP, LEAST_WIDTH, LOOSE, MAX_LOOSE, NARROW, WIDE

from .boxes import MAX_DIMS, Boxes, BoxLinks, grid_dims
from .picture import text_width

Reals = NDArray[np.float64]
_NUMBERED = re.compile(r"(.*?)(\d+)")
_COUNT = re.compile(r"(\d+) (\D+)")
GAP_X, GAP_Y = 46.0, 62.0


def _in_rows(row: NDArray[np.int64], bundles: BoxLinks, width: Reals) -> tuple[Reals, Reals]:
    """Spread the bottom row evenly, and put every other box above the middle of what hangs on it."""
    n_rows = int(row.max()) + 1
    members = [np.flatnonzero(row == level) for level in range(n_rows)]
    total = max(NARROW, *(len(boxes) * (width[boxes[0]] + GAP) for boxes in members))
    x = np.zeros(len(row))
    attached = _first_above(row, bundles)
    members[0] = members[0][np.lexsort((members[0], attached[members[0]]))]
    x[members[0]] = (np.arange(len(members[0])) + 0.5) * total / len(members[0])
    if len(members[0]) > 1 and len(np.unique(attached[members[0]])) > 1:
        x[members[0]] = _grouped(attached[members[0]], width[members[0][0]] + GAP, total)
        total = max(total, x[members[0]].max() + width[members[0][0]] / 2)
    for boxes in members[1:]:
        wanted = _mean_below(row, bundles, x, total)[boxes]
        least = width[boxes[0]] + GAP
        spacing = max(least, min(0.8 * total / len(boxes), (total - least) / max(1, len(boxes) - 1)))
        # boxes that want nearly one place, as spines of which one has lost a link, stay in the order of their numbers
        order = np.argsort(wanted, kind="stable")
        place = np.empty(len(boxes), np.int64)
        place[order] = np.cumsum(np.r_[0, np.diff(wanted[order]) > spacing / 2])
        boxes, wanted = boxes[np.lexsort((boxes, place))], np.sort(wanted)
        x[boxes] = spread(wanted, spacing, least / 2, total - least / 2)
    height = np.array([_height(row, bundles, level, total) for level in range(n_rows - 1)] + [0.0])
    return x, height[::-1].cumsum()[::-1][row] + BOX_HEIGHT / 2


def _height(row: NDArray[np.int64], bundles: BoxLinks, level: int, total: float) -> float:
    """Distance of a row from the next one: more where more than a tree lies between."""
    between = np.count_nonzero((row[bundles.low] == level) & (row[bundles.high] == level + 1))
    ends = max(np.count_nonzero(row == level), np.count_nonzero(row == level + 1))
    return min(230.0, max(100.0, 0.13 * total)) if between > 1.5 * ends else min(120.0, max(90.0, 0.08 * total))


def _grouped(group: NDArray[np.int64], spacing: float, total: float) -> Reals:
    """Positions of a row whose neighbours stand closer together when they are in one group."""
    changes = np.cumsum(np.r_[0, np.diff(group) != 0])
    if changes[-1] + 1 == len(group):
        return np.asarray((np.arange(len(group)) + 0.5) * max(total, len(group) * spacing) / len(group))
    at = np.arange(len(group)) * spacing + changes * 1.5 * GAP
    return np.asarray(at * max(1.0, (total - spacing) / max(1.0, at[-1])) + spacing / 2)


def spread(wanted: Reals, spacing: float, low: float, high: float) -> Reals:
    """Positions nearest to those wanted, in the least-squares sense, at least `spacing` apart.

    Parameters
    ----------
    wanted : float64[n]
        Wanted positions in ascending order.
    spacing, low, high : float
        Least distance between neighbours, and bounds, which must leave room.

    References
    ----------
    Best and Chakravarti, "Active set algorithms for isotonic regression", Mathematical Programming 1990: the pool of
    adjacent violators, here after the spacing has been taken out.
    """
    pools: list[tuple[float, int]] = []
    for value in wanted - spacing * np.arange(len(wanted)):
        mean, n = float(value), 1
        while pools and pools[-1][0] > mean:
            other, m = pools.pop()
            mean, n = (mean * n + other * m) / (n + m), n + m
        pools.append((mean, n))
    flat = np.repeat([mean for mean, _ in pools], [n for _, n in pools])
    room = high - spacing * (len(wanted) - 1)
    return np.asarray(np.clip(flat, low, max(low, room)) + spacing * np.arange(len(wanted)))


def _first_above(row: NDArray[np.int64], bundles: BoxLinks) -> NDArray[np.int64]:
    """By box, the first box of a higher row that it is cabled to; itself without one."""
    above = np.arange(len(row))
    rising = np.flatnonzero(row[bundles.low] < row[bundles.high])[::-1]  # so that the first is written last
    above[bundles.low[rising]] = bundles.high[rising]
    return above


def _mean_below(row: NDArray[np.int64], bundles: BoxLinks, x: Reals, total: float) -> Reals:
    """By box, the mean place of what it is cabled to in lower rows; the middle where that is nothing."""
    rising = row[bundles.low] < row[bundles.high]
    high, low = bundles.high[rising], bundles.low[rising]
    n = np.bincount(high, minlength=len(row))
    mean = np.bincount(high, weights=x[low], minlength=len(row)) / np.maximum(n, 1)
    return np.where(n > 0, mean, total / 2)


def _on_circle(row: NDArray[np.int64], bundles: BoxLinks, width: Reals) -> tuple[Reals, Reals]:
    """Put the top row on a circle, and what hangs on it around it."""
    ring, outer = np.flatnonzero(row == row.max()), np.flatnonzero(row < row.max())
    attached = _first_above(row, bundles)
    outer = outer[np.lexsort((outer, attached[outer]))]
    hanging = np.bincount(attached[outer], minlength=len(row))[ring] if outer.size else np.zeros(len(ring), np.int64)
    slots = np.maximum(1, hanging)
    begin = np.cumsum(slots) - slots
    angle = np.zeros(len(row))
    angle[ring] = begin + (slots - 1) / 2
    for box, first in zip(ring, begin, strict=True):
        hanging_here = outer[attached[outer] == box]
        angle[hanging_here] = first + np.arange(len(hanging_here))
    angle *= 2 * math.pi / slots.sum()
    apart = GAP if len(ring) > MAX_LOOSE else LOOSE
    radius = max(110.0, len(ring) * (width[ring[0]] + apart) / (2 * math.pi))
    radii = np.full(len(row), radius)
    if outer.size:
        far = max(radius + 75.0, slots.sum() * (width[outer[0]] + GAP) / (2 * math.pi))
        radii[outer], radii[ring] = far, max(radius, far - 110.0)
    x, y = radii * np.sin(angle), -radii * np.cos(angle)
    return x - (x - width / 2).min(), y - y.min() + BOX_HEIGHT / 2


@dataclass(frozen=True, slots=True, eq=False)
class BoxLayout:
    """Where each box is.

    Parameters
    ----------
    x, y, width : float64[n_boxes], pixels
        Centre and width of each box; all are ``BOX_HEIGHT`` high.
    text : tuple of str
        What is written in each box.
    stem : tuple of str
        Common beginning of all names of each row, which is left out in the boxes.
    shape : {"rows", "circle", "grid"}
        How the boxes stand.
    """

    x: Reals
    y: Reals
    width: Reals
    text: tuple[str, ...]
    stem: tuple[str, ...]
    shape: str


def make_layout(network: Network, boxes: Boxes, bundles: BoxLinks) -> BoxLayout:
    """Place boxes so that they do not overlap; the top left corner of the drawing is near (0, 0).

    Parameters
    ----------
    network : Network
        Network with the coordinates.
    boxes, bundles
        What is placed, and the links between.
    """
    n_rows = int(boxes.row.max()) + 1
    top = np.flatnonzero(boxes.row == n_rows - 1)
    within_top = np.count_nonzero(np.isin(bundles.low, top) & np.isin(bundles.high, top))
    is_round = n_rows <= 2 and len(top) > 2 and within_top >= len(top) / 2
    texts, widths, stems = list(boxes.label), np.empty(len(boxes.row)), []
    for row in range(n_rows):
        members = np.flatnonzero(boxes.row == row)
        short, stem = _texts([boxes.label[box] for box in members], math.pi * WIDE if is_round else WIDE)
        stems.append(stem)
        widths[members] = max(LEAST_WIDTH, *(text_width(text) + 12 for text in short))
        for box, text in zip(members, short, strict=True):
            texts[box] = text
    dims = grid_dims(network)
    if dims and n_rows == 1 and (boxes.size == 1).all():
        x, y = _on_grid(network, dims, boxes.of_node, widths, BOX_HEIGHT)
        return BoxLayout(x, y, widths, tuple(texts), tuple(stems), "grid")
    place = _on_circle if is_round else _in_rows
    x, y = place(boxes.row, bundles, widths)
    return BoxLayout(x, y, widths, tuple(texts), tuple(stems), "circle" if is_round else "rows")


def _texts(labels: list[str], wide: float) -> tuple[list[str], str]:
    """Labels as they are, or where these are too long for a row, without what all numbered ones begin or end with."""
    if len(labels) * (max(text_width(label) for label in labels) + 12 + GAP) <= wide:
        return labels, ""
    counts = [_COUNT.fullmatch(label) for label in labels]
    if all(counts) and len({match[2] for match in counts if match is not None} - {"more"}) == 1:
        return [label if label.endswith(" more") else label.partition(" ")[0] for label in labels], "number of "
    matches = [_NUMBERED.fullmatch(label) for label in labels]
    stems = {match[1] for match in matches if match is not None}
    if len(stems) != 1 or not all(match or label[0].isdigit() for match, label in zip(matches, labels, strict=True)):
        return labels, ""
    return [match[2] if match else label for match, label in zip(matches, labels, strict=True)], stems.pop()


def _on_grid(
    network: Network, dims: list[int], of_node: NDArray[np.int64], width: NDArray[np.float64], height: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Place boxes by the coordinates of their first nodes: the last dimension to the right, the one before it down.

    A third dimension goes back, up and to the right, by so little that no box covers another one.
    """
    first = np.unique(of_node, return_index=True)[1]
    at = [network.coordinates[first, d].astype(np.float64) for d in dims]
    deep = float(np.ptp(at[0])) if len(dims) == MAX_DIMS else 0.0
    wide = float(width.max())
    across, down = wide + GAP_X + deep * (wide * 0.5 + 8), height + GAP_Y + deep * (height + 8)
    x, y = at[-1] * across, at[-2] * down
    if len(dims) == MAX_DIMS:
        x, y = x + at[0] * (wide * 0.5 + 8), y - at[0] * (height + 8)
    return x - (x - width / 2).min(), y - y.min() + height / 2
