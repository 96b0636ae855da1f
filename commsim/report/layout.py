"""Where boxes go: in rows by tier; on a circle or a grid when switches, or hosts, are cabled to each other."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

from .boxes import Boxes
from .bundles import Bundles
from .circle import on_circle
from .grid import grid_dims, on_grid
from .metrics import BOX_HEIGHT, GAP, LEAST_WIDTH, WIDE
from .picture import text_width
from .rows import in_rows

_NUMBERED = re.compile(r"(.*?)(\d+)")
Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where each box is.

    Parameters
    ----------
    x, y, width : float64[n_boxes], pixels
        Centre and width of each box; all are ``BOX_HEIGHT`` high.
    text : tuple of str
        What is written in each box.
    stem : tuple of str
        By row, what all names in it begin with and what was left out in the boxes.
    shape : {"rows", "circle", "grid"}
        How the boxes stand.
    """

    x: Reals
    y: Reals
    width: Reals
    text: tuple[str, ...]
    stem: tuple[str, ...]
    shape: str


def make_layout(network: Network, boxes: Boxes, bundles: Bundles) -> Layout:
    """Place boxes so that they do not overlap; the top left corner of the drawing is near (0, 0)."""
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
        x, y = on_grid(network, dims, boxes.of_node, widths, BOX_HEIGHT)
        return Layout(x, y, widths, tuple(texts), tuple(stems), "grid")
    place = on_circle if is_round else in_rows
    x, y = place(boxes.row, bundles, widths)
    return Layout(x, y, widths, tuple(texts), tuple(stems), "circle" if is_round else "rows")


def _texts(labels: list[str], wide: float) -> tuple[list[str], str]:
    """Labels as they are, or where these are too long for a row, without what all numbered ones begin with."""
    if len(labels) * (max(text_width(label) for label in labels) + 12 + GAP) <= wide:
        return labels, ""
    found = [_NUMBERED.fullmatch(label) for label in labels]
    stems = {match[1] for match in found if match is not None}
    if len(stems) != 1 or not all(match or label[0].isdigit() for match, label in zip(found, labels, strict=True)):
        return labels, ""
    return [match[2] if match else label for match, label in zip(found, labels, strict=True)], stems.pop()
