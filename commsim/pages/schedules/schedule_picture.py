"""Draw a small schedule: a lane per participant, a column per hop, an arrow per message."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from commsim.core.schedule import BUFFERS, REDUCE, Schedule, Transfers
from commsim.core.units import count_text
from commsim.pages.palette import COPY, FAINT, HELPER_LANE, INK, LANES, LINK
from commsim.pages.palette import REDUCE as REDUCE_COLOUR
from commsim.pages.pictures.picture import (
    Disc,
    Label,
    Line,
    Picture,
    Point,
    Polygon,
    Rectangle,
    Shape,
    shortened,
    text_width,
    wrapped,
)

PLUS, TIP, SIZE = 5.5, 8.0, 9.5
MAX_LETTERS = 9
MAX_TRANSFERS = 2000
MAX_PARTICIPANTS = 128
MARGIN, LANE, COLUMN, HEAD = 24.0, 30.0, 76.0, 22.0
COLUMNS_IN_A_SYSTEM = 16
_BETWEEN = 26.0


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


def _gather(hop: Transfers, words: Callable[[Transfers], tuple[str, str]]) -> list[Arrow]:
    """Arrows of one hop.

    Parameters
    ----------
    hop : TRANSFER[n]
        Its transfers.
    words : callable
        Function from transfers to text and title.
    """
    keys = np.stack((hop["src"], hop["dst"], hop["op"]), axis=1).astype(np.int64)
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    return [
        Arrow(src, dst, op == REDUCE, *words(hop[which.reshape(-1) == i]))
        for i, (src, dst, op) in enumerate(kinds.tolist())
    ]


def _draw_arrow(arrow: Arrow, x0: float, x1: float, y: Sequence[float]) -> list[Shape]:
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


def _draw_label(arrow: Arrow, x0: float, x1: float, y: Sequence[float], labels: Sequence[Label]) -> list[Label]:
    """Write the chunks on the arrow, near an end, where no label of the same hop is; nowhere without room."""
    text = shortened(arrow.text, text_width("0" * MAX_LETTERS, SIZE), SIZE)
    reach = text_width(text, SIZE) / 2
    for share in (0.27, 0.68, 0.14, 0.4, 0.55):
        share = min(max(share, (reach - 6) / (x1 - x0)), 0.8)  # so that it stays in its column
        x = x0 + (x1 - x0) * share
        at = y[arrow.src] + (y[arrow.dst] - y[arrow.src]) * share
        if all(
            abs(x - other.x) > reach + text_width(other.text, SIZE) / 2 + 1 or abs(at - other.y) > SIZE + 1
            for other in labels
        ):
            return [Label(x, at, text, SIZE, REDUCE_COLOUR if arrow.adds else COPY, bold=True, halo=True)]
    return []


def _draw_legend(x: float, y: float) -> list[Shape]:
    """Draw one arrow of each kind, and say what it means."""
    shapes: list[Shape] = []
    for text, adds, local in (("copied", False, False), ("added on arrival", True, False), ("local", False, True)):
        arrow = Arrow(0, 0 if local else 1, adds, "", "")
        shapes += _draw_arrow(arrow, x, x + 34, (y, y))
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


@dataclass(frozen=True, slots=True)
class ColumnBand:
    """Some columns of the picture, as a line of music is some bars: its first hop, number of hops, and its top."""

    first: int
    n_hops: int
    top: float


def draw_schedule(schedule: Schedule) -> Picture:
    """Draw every transfer of a small schedule, hop by hop in program order.

    Long schedules are broken into systems of at most ``COLUMNS_IN_A_SYSTEM`` hops, one below the other. Messages of one
    hop with the same ends and the same effect are one arrow.

    Raises
    ------
    InputError
        If there are more than ``MAX_TRANSFERS`` transfers or ``MAX_PARTICIPANTS`` participants.
    """
    if schedule.n_transfers > MAX_TRANSFERS or schedule.n_participants > MAX_PARTICIPANTS:
        raise InputError(
            f"{schedule.name} has {schedule.n_transfers} transfers between {schedule.n_participants} participants; at "
            f"most {MAX_TRANSFERS} between {MAX_PARTICIPANTS} are drawn: ask for fewer ranks or chunks"
        )
    transfers = schedule.expand()
    names = _names(schedule)
    left = MARGIN + max(text_width(name) for name in names) + 12
    columns = max(1, min(schedule.n_hops, COLUMNS_IN_A_SYSTEM))
    width = max(560.0, left + columns * COLUMN + MARGIN)
    heading, top = _heading(schedule, width)
    systems = _systems(schedule, top)
    shapes: list[Shape] = [*heading]
    for system in systems:
        shapes += _lanes(schedule, names, system, left)
        shapes += _columns(transfers, system, left, len(names))
        shapes += _messages(schedule, transfers, system, left)
    bottom = systems[-1].top + HEAD + LANE * len(names) + 30
    shapes += _draw_legend(MARGIN, bottom)
    return Picture(width, bottom + MARGIN, f"The schedule {schedule.name}", tuple(shapes))


def _names(schedule: Schedule) -> list[str]:
    return [f"rank {i}" for i in range(schedule.n_ranks)] + [f"helper {i}" for i in range(schedule.n_helpers)]


def _heading(schedule: Schedule, width: float) -> tuple[list[Shape], float]:
    helpers = f" and {count_text(schedule.n_helpers, 'helper')}" if schedule.n_helpers else ""
    participants = f"{count_text(schedule.n_ranks, 'rank')}{helpers}"
    what = f"{schedule.operation} on {participants}, {count_text(schedule.n_chunks, 'chunk')}"
    moves = f"{count_text(schedule.n_transfers, 'transfer')} in {count_text(schedule.n_hops, 'hop')}"
    facts = wrapped([f"{what}: {moves}"], width - 2 * MARGIN)
    shapes: list[Shape] = [Label(MARGIN, MARGIN + 4, schedule.name, 14, INK, "start", bold=True)]
    shapes += [Label(MARGIN, MARGIN + 23 + 16 * i, line, 11, FAINT, "start") for i, line in enumerate(facts)]
    return shapes, MARGIN + 23 + 16 * len(facts) + 8


def _systems(schedule: Schedule, top: float) -> list[ColumnBand]:
    height = HEAD + LANE * schedule.n_participants + _BETWEEN
    starts = range(0, max(1, schedule.n_hops), COLUMNS_IN_A_SYSTEM)
    return [
        ColumnBand(first, min(COLUMNS_IN_A_SYSTEM, max(1, schedule.n_hops - first)), top + i * height)
        for i, first in enumerate(starts)
    ]


def _lanes(schedule: Schedule, names: list[str], system: ColumnBand, left: float) -> list[Shape]:
    shapes: list[Shape] = []
    for i, name in enumerate(names):
        y = system.top + HEAD + LANE * i
        fill = LANES[i % 2] if i < schedule.n_ranks else HELPER_LANE
        shapes.append(Rectangle(left, y, system.n_hops * COLUMN, LANE, fill))
        shapes.append(Label(left - 10, y + LANE / 2, name, 11, INK, "end"))
    return shapes


def _columns(transfers: Transfers, system: ColumnBand, left: float, n_lanes: int) -> list[Shape]:
    """Write numbers over the hops, and rule a line between them: a full one where a fence ends a stage."""
    stage = dict(zip(transfers["hop"].tolist(), transfers["stage"].tolist(), strict=True))
    shapes: list[Shape] = []
    for column in range(system.n_hops):
        hop, x = system.first + column, left + column * COLUMN
        shapes.append(Label(x + COLUMN / 2, system.top + HEAD / 2, f"hop {hop}", 10, FAINT))
        fenced = hop in stage and hop - 1 in stage and stage[hop] != stage[hop - 1]
        ends = ((x, system.top + 4), (x, system.top + HEAD + LANE * n_lanes))
        if fenced:
            shapes.append(Line(ends, FAINT, 1.6, title="a fence: both ends wait for all of their earlier transfers"))
        elif column:
            shapes.append(Line(ends, LINK, 0.5, dashed=True))
    return shapes


def _messages(schedule: Schedule, transfers: Transfers, system: ColumnBand, left: float) -> list[Shape]:
    shown = transfers[(transfers["hop"] >= system.first) & (transfers["hop"] < system.first + system.n_hops)]
    shapes: list[Shape] = []
    labels: list[Shape] = []
    for hop in np.unique(shown["hop"]).tolist():
        arrows = _gather(shown[shown["hop"] == hop], lambda t: _words(schedule, t))
        x = left + (hop - system.first) * COLUMN + 9
        y = [system.top + HEAD + LANE * (i + 0.5) for i in range(schedule.n_participants)]
        taken: list[Label] = []
        for arrow in arrows:
            shapes += _draw_arrow(arrow, x, x + COLUMN - 20, y)
            taken += _draw_label(arrow, x, x + COLUMN - 20, y, taken)
        labels += taken
    return [*shapes, *labels]


def _words(schedule: Schedule, transfers: Transfers) -> tuple[str, str]:
    """Chunks of an arrow, briefly, and all of its messages in words."""
    lines: list[str] = []
    for t in transfers:
        count, src, dst = int(t["count"]), int(t["src_chunk"]), int(t["dst_chunk"])
        does = "is added to" if t["op"] == REDUCE else "is copied to"
        what = f"chunk {src}" if count == 1 else f"chunks {src}-{src + count - 1}"
        buffers = BUFFERS[t["src_buffer"]], BUFFERS[t["dst_buffer"]]
        into = f"chunk {dst}" if (dst, buffers[1]) != (src, buffers[0]) else "the same"
        names = _names(schedule)
        lines.append(
            f"hop {t['hop']}: {names[t['src']]} sends {what} of {buffers[0]}; it {does} {into} of {buffers[1]} "
            f"at {names[t['dst']]}" + (f" (channel {t['channel']})" if t["channel"] else "")
        )
    return _ranges({int(t["src_chunk"]) + i for t in transfers for i in range(t["count"])}), "\n".join(lines)


def _ranges(chunks: set[int]) -> str:
    """Write numbers as ``0-3,7``."""
    starts = sorted(c for c in chunks if c - 1 not in chunks)
    ends = sorted(c for c in chunks if c + 1 not in chunks)
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
