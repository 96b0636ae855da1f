"""The arrows of a schedule's picture: from the lane of who sends to the lane of who copies or adds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from commsim.core.schedule import REDUCE, Transfers

from .palette import COPY, FAINT
from .palette import REDUCE as REDUCE_COLOUR
from .picture import Disc, Label, Line, Point, Polygon, Shape, shortened, text_width

PLUS, TIP, SIZE = 5.5, 8.0, 9.5
MOST_LETTERS = 9


@dataclass(frozen=True, slots=True)
class Arrow:
    """Messages of one hop between the same two participants, all copied or all added.

    Parameters
    ----------
    src, dst : int
        Participants.
    adds : bool
        Whether the messages are added rather than copied.
    text, title : str
        The chunks, and what its tooltip says.
    """

    src: int
    dst: int
    adds: bool
    text: str
    title: str


def gather(hop: Transfers, words: Callable[[Transfers], tuple[str, str]]) -> list[Arrow]:
    """Arrows of one hop.

    Parameters
    ----------
    hop : TRANSFER[n]
        Its transfers.
    words : callable
        From transfers to text and title.
    """
    keys = np.stack((hop["src"], hop["dst"], hop["op"]), axis=1).astype(np.int64)
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    return [
        Arrow(src, dst, op == REDUCE, *words(hop[which.reshape(-1) == i]))
        for i, (src, dst, op) in enumerate(kinds.tolist())
    ]


def draw_arrow(arrow: Arrow, x0: float, x1: float, y: Sequence[float]) -> list[Shape]:
    """Draw an arrow from (x0, y of its source) to (x1, y of its destination): a plus in a circle where it adds."""
    start, end = (x0, y[arrow.src]), (x1, y[arrow.dst])
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    back = (PLUS if arrow.adds else TIP) / length
    near = (end[0] - dx * back, end[1] - dy * back)
    colour = REDUCE_COLOUR if arrow.adds else COPY
    local = arrow.src == arrow.dst
    shaft = Line((start, near), colour, 1.6, dashed=local, title=arrow.title)
    return [shaft, *(_plus(end, arrow.title) if arrow.adds else [_tip(near, end, arrow.title)])]


def draw_label(arrow: Arrow, x0: float, x1: float, y: Sequence[float], taken: Sequence[Label]) -> list[Label]:
    """Write the chunks on the arrow, near an end, where no label of the same hop is; nowhere when there is no place."""
    text = shortened(arrow.text, text_width("0" * MOST_LETTERS, SIZE), SIZE)
    reach = text_width(text, SIZE) / 2
    for share in (0.27, 0.68, 0.14, 0.4, 0.55):
        share = min(max(share, (reach - 6) / (x1 - x0)), 0.8)  # so that it stays in its column
        x = x0 + (x1 - x0) * share
        at = y[arrow.src] + (y[arrow.dst] - y[arrow.src]) * share
        if all(
            abs(x - other.x) > reach + text_width(other.text, SIZE) / 2 + 1 or abs(at - other.y) > SIZE + 1
            for other in taken
        ):
            return [Label(x, at, text, SIZE, REDUCE_COLOUR if arrow.adds else COPY, bold=True, halo=True)]
    return []


def draw_legend(x: float, y: float) -> list[Shape]:
    """Draw one arrow of each kind, and say what it means."""
    shapes: list[Shape] = []
    for text, adds, local in (("copied", False, False), ("added on arrival", True, False), ("local", False, True)):
        arrow = Arrow(0, 0 if local else 1, adds, "", "")
        shapes += draw_arrow(arrow, x, x + 34, (y, y))
        shapes.append(Label(x + 46, y, text, 11, FAINT, "start"))
        x += 46 + text_width(text) + 22
    return [*shapes, Label(x, y, "numbers are chunks", 11, FAINT, "start")]


def _tip(near: Point, end: Point, title: str) -> Polygon:
    half = ((end[1] - near[1]) * 0.45, (near[0] - end[0]) * 0.45)
    return Polygon((end, (near[0] + half[0], near[1] + half[1]), (near[0] - half[0], near[1] - half[1])), COPY, title)


def _plus(at: Point, title: str) -> list[Shape]:
    x, y = at
    bars = (((x - 3, y), (x + 3, y)), ((x, y - 3), (x, y + 3)))
    return [
        Disc(x, y, PLUS, "#ffffff", REDUCE_COLOUR, title),
        *(Line(bar, REDUCE_COLOUR, 1.4, title=title) for bar in bars),
    ]
