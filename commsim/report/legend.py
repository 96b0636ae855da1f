"""The legend under a network: what boxes, widths and colours mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.node_kind import SWITCH
from commsim.core.units import format_bandwidth

from .cables import MOST_CLASSES, line_width
from .palette import FAINT, FILL, LINK, STROKE, load_colour
from .picture import Label, Line, Rectangle, Shape, text_width

KIND_NAMES = ("host", "switch", "GPU", "CPU", "NIC", "memory", "machine")
_ROW, _BAR, _STEPS = 22.0, 180.0, 36


def full_load(busiest: float) -> float:
    """Load that gets the darkest colour: the next of 1, 2, 5, 10, 20, 50, 100 %, so that pictures can be compared."""
    steps = [m * 10.0**e for e in (-2, -1) for m in (1, 2, 5)]
    return next((step for step in steps if busiest <= step * (1 + 1e-9)), 1.0)


def draw_legend(
    kind: NDArray[np.int64], rates: list[float], full: float | None, x: float, y: float, width: float
) -> tuple[list[Shape], float]:
    """Draw it with its top left corner at (x, y).

    Returns
    -------
    list of Shape, float
        And the height that it takes.
    """
    entries: list[tuple[str, int | float]] = [(KIND_NAMES[k], int(k)) for k in np.unique(kind)]
    shown = rates if len(rates) <= MOST_CLASSES else [rates[0], rates[-1]]
    entries += [(format_bandwidth(rate).split(" (")[0], rate) for rate in shown]
    shapes: list[Shape] = []
    left, top = x, y
    for text, what in entries:
        wide = 34 + text_width(text) + 18
        if left > x and left + wide > x + width:
            left, top = x, top + _ROW
        shapes += _sample(what, rates, left, top)
        shapes.append(Label(left + 34, top, text, 11, FAINT, "start"))
        left += wide
    if full is not None:
        top += _ROW + 4
        shapes += _scale(full, x, top)
        top += _ROW - 4
    return shapes, top - y + 10


def _sample(what: int | float, rates: list[float], x: float, y: float) -> list[Shape]:
    if isinstance(what, float):
        return [Line(((x, y), (x + 26, y)), LINK, line_width(what, rates))]
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
