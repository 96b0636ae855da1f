"""Draw a network by tier, its links coloured by load when there is one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.node_kind import PLURALS
from commsim.core.result import Result
from commsim.core.units import format_size, format_time

from .boxes import Boxes, make_boxes
from .bundles import link_loads, make_bundles
from .cables import draw_cables, rate_classes
from .layout import Layout, make_layout
from .legend import draw_legend, full_load
from .metrics import BOX_HEIGHT
from .palette import FAINT, FILL, INK, MACHINE, STROKE
from .picture import Label, Picture, Rectangle, Shape, shortened, wrapped

MARGIN, CAPTIONS, LEAST_WIDTH = 24.0, 124.0, 620.0


def draw_network(
    network: Network, result: Result | None = None, *, collapse: bool | None = None
) -> tuple[Picture, tuple[str, ...]]:
    """Draw a network.

    Parameters
    ----------
    network : Network
        To be drawn.
    result : Result, optional
        Of a simulation on this network: links get the colours of their loads.
    collapse : bool, optional
        Whether machines, and hosts with the same neighbours, are one box; decided by the number of hosts if not given.

    Returns
    -------
    Picture, tuple of str
        The second says what was drawn as one box.

    Raises
    ------
    InputError
        If the result is not of this network.
    """
    load = None if result is None else link_loads(network, result.link_bytes, result.time)
    boxes = make_boxes(network, collapse)
    bundles = make_bundles(network, boxes.of_node, boxes.row, load)
    layout = make_layout(network, boxes, bundles)
    full = None if load is None else full_load(float(load.max(initial=0.0)))
    left = MARGIN + (CAPTIONS if layout.shape == "rows" else 0.0)
    width = max(LEAST_WIDTH, left + float((layout.x + layout.width / 2).max()) + MARGIN)
    heading, top = _heading(network, result, boxes.notes, width)
    at = _moved(layout, left + (width - left - MARGIN - float((layout.x + layout.width / 2).max())) / 2, top)
    shapes = [*heading, *draw_cables(network, boxes, bundles, at, full), *_boxes(boxes, at)]
    if layout.shape == "rows":
        shapes += _captions(boxes, at)
    bottom = float(at.y.max()) + BOX_HEIGHT / 2 + 34
    legend, height = draw_legend(boxes.kind, rate_classes(bundles), full, MARGIN, bottom, width - 2 * MARGIN)
    return Picture(width, bottom + height + MARGIN, f"The network {network.name}", (*shapes, *legend)), boxes.notes


def _heading(network: Network, result: Result | None, notes: Sequence[str], width: float) -> tuple[list[Shape], float]:
    """Title and what else is to be known, and where the drawing may begin."""
    lines = wrapped([network.name.replace(",", ", ")], width - 2 * MARGIN, 14)
    shapes: list[Shape] = [
        Label(MARGIN, MARGIN + 4 + 19 * i, line, 14, INK, "start", bold=True) for i, line in enumerate(lines)
    ]
    y = MARGIN + 4 + 19 * len(lines)
    facts = list(notes)
    if result is not None:
        ran = f"{result.collective} of {format_size(result.size)} on {result.n_ranks} ranks, {result.engine}"
        facts.insert(0, f"{ran}: {format_time(result.time).replace('us', 'µs')}")
    for line in wrapped(facts, width - 2 * MARGIN):
        shapes.append(Label(MARGIN, y, line, 11, FAINT, "start"))
        y += 16
    return shapes, y + 22


def _moved(layout: Layout, dx: float, dy: float) -> Layout:
    return dataclasses.replace(layout, x=layout.x + dx, y=layout.y + dy)


def _boxes(boxes: Boxes, at: Layout) -> list[Shape]:
    shapes: list[Shape] = []
    for box, kind in enumerate(boxes.kind.tolist()):
        x, y, width = float(at.x[box]), float(at.y[box]), float(at.width[box])
        many = boxes.size[box] > 1
        if many:  # a second sheet behind the first
            shapes.append(_sheet(x + 3, y - 3, width, kind, ""))
        shapes.append(_sheet(x, y, width, kind, boxes.title[box]))
        shapes.append(Label(x, y, shortened(at.text[box], width - 4), 11, INK, bold=many))
    return shapes


def _sheet(x: float, y: float, width: float, kind: int, title: str) -> Rectangle:
    radius = 0.0 if PLURALS[kind : kind + 1] == ("switches",) else 6.0
    corner = x - width / 2, y - BOX_HEIGHT / 2
    return Rectangle(*corner, width, BOX_HEIGHT, FILL[kind], STROKE[kind], radius, title)


def _captions(boxes: Boxes, at: Layout) -> list[Shape]:
    """Beside each row, what is in it."""
    shapes: list[Shape] = []
    for row in range(int(boxes.row.max()) + 1):
        members = np.flatnonzero(boxes.row == row)
        y = float(at.y[members[0]])
        lines = _counts(boxes.kind[members], boxes.size[members])
        if at.stem[row]:
            lines.append(f"({at.stem[row]}…)")
        for i, line in enumerate(lines):
            offset = 14 * (i - (len(lines) - 1) / 2)
            text = shortened(line, CAPTIONS - 14)
            shapes.append(Label(MARGIN, y + offset, text, 11, FAINT, "start", bold=i == 0))
    return shapes


def _counts(kind: NDArray[np.int64], size: NDArray[np.int64]) -> list[str]:
    count = np.bincount(kind, weights=size, minlength=MACHINE + 1).astype(int)
    plurals = (*PLURALS, "machines")
    return [f"{n} {plurals[k] if n > 1 else _singular(k)}" for k, n in enumerate(count.tolist()) if n]


def _singular(kind: int) -> str:
    return ("host", "switch", "GPU", "CPU", "NIC", "memory", "machine")[kind]
