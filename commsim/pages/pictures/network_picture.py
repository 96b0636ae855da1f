"""Draw a network by tier, its links coloured by load when there is one, with its legend."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import PLURALS, SWITCH, Network
from commsim.core.result import Result
from commsim.core.units import format_bandwidth, format_size, format_time
from commsim.pages.palette import BOX_HEIGHT, FAINT, FAULT, FILL, INK, LINK, MACHINE, STROKE, load_colour
from topologies.presets import has_effective_rates

from .boxes import Boxes, BoxLinks, link_loads, make_boxes, make_bundles
from .cables import CASING, draw_cables, line_width, rate_classes
from .layout import BoxLayout, make_layout
from .picture import Label, Line, Picture, Rectangle, Shape, shortened, text_width, wrapped

KIND_NAMES = ("host", "switch", "GPU", "CPU", "NIC", "memory", "machine")
_ROW, _BAR, _STEPS = 22.0, 180.0, 36
MAX_RATES = 12  # in a legend
DEAD, SLOWER = "dead cable", "slower by a fault"
MARGIN, CAPTIONS, LEAST_WIDTH = 24.0, 124.0, 620.0


def full_load(busiest: float) -> float:
    """Load of the darkest colour: the next of 1, 2, 5, 10, 20, 50, 100 %, so that pictures can be compared."""
    steps = [m * 10.0**e for e in (-2, -1) for m in (1, 2, 5)]
    return next((step for step in steps if busiest <= step * (1 + 1e-9)), 1.0)


def _draw_legend(
    kind: NDArray[np.int64], bundles: BoxLinks, full: float | None, where: tuple[float, float, float], note: str
) -> tuple[list[Shape], float]:
    """Draw it with its top left corner and width at `where`; `note` stands behind the entries.

    Returns
    -------
    list of Shape, float
        And the height that it takes.
    """
    entries: list[tuple[str, int | float | str]] = [(KIND_NAMES[k], int(k)) for k in np.unique(kind)]
    rates = rate_classes(bundles)
    x, y, width = where
    shown = rates if len(rates) <= MAX_RATES else [rates[0], rates[-1]]
    entries += [(format_bandwidth(rate).split(" (")[0], rate) for rate in shown]
    shapes: list[Shape] = []
    left, top = x, y
    entries += [(DEAD, DEAD)] if bundles.dead.any() else []
    entries += [(SLOWER, SLOWER)] if bundles.slow.any() else []
    for text, what in entries:
        wide = 34 + text_width(text) + 18
        if left > x and left + wide > x + width:
            left, top = x, top + _ROW
        shapes += _sample(what, rates, left, top)
        shapes.append(Label(left + 34, top, text, 11, FAINT, "start"))
        left += wide
    shapes += [Label(left, top, note, 11, FAINT, "start")] if note else []
    if full is not None:
        top += _ROW + 4
        shapes += _scale(full, x, top)
        top += _ROW - 4
    return shapes, top - y + 10


def _sample(what: int | float | str, rates: list[float], x: float, y: float) -> list[Shape]:
    ends = (x, y), (x + 26, y)
    if what == DEAD:
        return [Line(ends, FAULT, 2.0, dashed=True)]
    if isinstance(what, str):
        return [Line(ends, FAULT, 1.5 + CASING), Line(ends, LINK, 1.5)]
    if isinstance(what, float):
        return [Line(ends, LINK, line_width(what, rates))]
    return [Rectangle(x, y - 7, 26, 14, FILL[what], STROKE[what], 0.0 if what == SWITCH else 4.0)]


def _scale(full: float, x: float, y: float) -> list[Shape]:
    """Draw the bar of colours, and what it stands for."""
    step = _BAR / _STEPS
    shapes: list[Shape] = [Label(x, y, "0", 11, FAINT, "start")]
    left = x + 14
    for i in range(_STEPS):
        colour = load_colour((i + 1) / _STEPS)
        shapes.append(Rectangle(left + i * step, y - 6, step + (0.5 if i < _STEPS - 1 else 0.0), 12, colour))
    shapes.append(Label(left + _BAR + 8, y, f"{full:.0%} of capacity while it ran", 11, FAINT, "start"))
    meaning = "each half of a line shows what the box at its end sends; grey is nothing"
    return [*shapes, Label(x, y + _ROW - 4, meaning, 11, FAINT, "start")]


def draw_network(
    network: Network,
    result: Result | None = None,
    *,
    collapse: bool | None = None,
    whole: Network | None = None,
    over: Callable[[Boxes, BoxLayout], list[Shape]] | None = None,
) -> tuple[Picture, tuple[str, ...]]:
    """Draw a network.

    Parameters
    ----------
    network : Network
        Network to draw.
    result : Result, optional
        Result of a simulation on this network: links get the colours of their loads.
    collapse : bool, optional
        Whether machines, and hosts with the same neighbours, are one box; decided by the number of hosts if not given.
    whole : Network, optional
        The network without faults: its dead cables are drawn too, and slower ones are marked.
    over : callable, optional
        Function from the boxes and their positions to shapes that lie on the cables, below the boxes.

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
    bundles = make_bundles(network, boxes.of_node, boxes.row, load, whole)
    layout = make_layout(network, boxes, bundles)
    full = None if load is None else full_load(float(load.max(initial=0.0)))
    left = MARGIN + (CAPTIONS if layout.shape == "rows" else 0.0)
    width = max(LEAST_WIDTH, left + float((layout.x + layout.width / 2).max()) + MARGIN)
    heading, top = _heading(network, result, boxes.notes, width)
    at = _moved(layout, left + (width - left - MARGIN - float((layout.x + layout.width / 2).max())) / 2, top)
    shapes = [*heading, *draw_cables(network, boxes, bundles, at, full)]
    shapes += [*(over(boxes, at) if over is not None else []), *_boxes(boxes, at)]
    if layout.shape == "rows":
        shapes += _captions(boxes, at)
    bottom = float(at.y.max()) + BOX_HEIGHT / 2 + 34
    note = "(effective rates)" if has_effective_rates(network.name) else ""
    where = MARGIN, bottom, width - 2 * MARGIN
    legend, height = _draw_legend(boxes.kind, bundles, full, where, note)
    return Picture(width, bottom + height + MARGIN, f"The network {network.name}", (*shapes, *legend)), boxes.notes


def _heading(network: Network, result: Result | None, notes: Sequence[str], width: float) -> tuple[list[Shape], float]:
    """Title and remarks, and the height at which the drawing begins."""
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


def _moved(layout: BoxLayout, dx: float, dy: float) -> BoxLayout:
    return dataclasses.replace(layout, x=layout.x + dx, y=layout.y + dy)


def _boxes(boxes: Boxes, at: BoxLayout) -> list[Shape]:
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


def _captions(boxes: Boxes, at: BoxLayout) -> list[Shape]:
    """Content of each row, written beside it."""
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
