"""Draw a small schedule: a lane per participant, a column per hop, an arrow per message."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from commsim.core.schedule import BUFFERS, REDUCE, Schedule, Transfers

from .arrows import draw_arrow, draw_label, draw_legend, gather
from .palette import FAINT, HELPER_LANE, INK, LANES, LINK
from .picture import Label, Line, Picture, Rectangle, Shape, text_width, wrapped

MOST_TRANSFERS = 2000
MOST_PARTICIPANTS = 128
MARGIN, LANE, COLUMN, HEAD = 24.0, 30.0, 76.0, 22.0
COLUMNS_IN_A_SYSTEM = 16
_BETWEEN = 26.0


@dataclass(frozen=True, slots=True)
class System:
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
        If there are more than ``MOST_TRANSFERS`` transfers or ``MOST_PARTICIPANTS`` participants.
    """
    if schedule.n_transfers > MOST_TRANSFERS or schedule.n_participants > MOST_PARTICIPANTS:
        raise InputError(
            f"{schedule.name} has {schedule.n_transfers} transfers between {schedule.n_participants} participants; at "
            f"most {MOST_TRANSFERS} between {MOST_PARTICIPANTS} are drawn: ask for fewer ranks or chunks"
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
    shapes += draw_legend(MARGIN, bottom)
    return Picture(width, bottom + MARGIN, f"The schedule {schedule.name}", tuple(shapes))


def _names(schedule: Schedule) -> list[str]:
    return [f"rank {i}" for i in range(schedule.n_ranks)] + [f"helper {i}" for i in range(schedule.n_helpers)]


def _heading(schedule: Schedule, width: float) -> tuple[list[Shape], float]:
    helpers = f" and {_counted(schedule.n_helpers, 'helper')}" if schedule.n_helpers else ""
    who = f"{_counted(schedule.n_ranks, 'rank')}{helpers}"
    what = f"{schedule.operation} on {who}, {_counted(schedule.n_chunks, 'chunk')}"
    moves = f"{_counted(schedule.n_transfers, 'transfer')} in {_counted(schedule.n_hops, 'hop')}"
    facts = wrapped([f"{what}: {moves}"], width - 2 * MARGIN)
    shapes: list[Shape] = [Label(MARGIN, MARGIN + 4, schedule.name, 14, INK, "start", bold=True)]
    shapes += [Label(MARGIN, MARGIN + 23 + 16 * i, line, 11, FAINT, "start") for i, line in enumerate(facts)]
    return shapes, MARGIN + 23 + 16 * len(facts) + 8


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


def _systems(schedule: Schedule, top: float) -> list[System]:
    height = HEAD + LANE * schedule.n_participants + _BETWEEN
    starts = range(0, max(1, schedule.n_hops), COLUMNS_IN_A_SYSTEM)
    return [
        System(first, min(COLUMNS_IN_A_SYSTEM, max(1, schedule.n_hops - first)), top + i * height)
        for i, first in enumerate(starts)
    ]


def _lanes(schedule: Schedule, names: list[str], system: System, left: float) -> list[Shape]:
    shapes: list[Shape] = []
    for i, name in enumerate(names):
        y = system.top + HEAD + LANE * i
        fill = LANES[i % 2] if i < schedule.n_ranks else HELPER_LANE
        shapes.append(Rectangle(left, y, system.n_hops * COLUMN, LANE, fill))
        shapes.append(Label(left - 10, y + LANE / 2, name, 11, INK, "end"))
    return shapes


def _columns(transfers: Transfers, system: System, left: float, n_lanes: int) -> list[Shape]:
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


def _messages(schedule: Schedule, transfers: Transfers, system: System, left: float) -> list[Shape]:
    shown = transfers[(transfers["hop"] >= system.first) & (transfers["hop"] < system.first + system.n_hops)]
    shapes: list[Shape] = []
    labels: list[Shape] = []
    for hop in np.unique(shown["hop"]).tolist():
        arrows = gather(shown[shown["hop"] == hop], lambda t: _words(schedule, t))
        x = left + (hop - system.first) * COLUMN + 9
        y = [system.top + HEAD + LANE * (i + 0.5) for i in range(schedule.n_participants)]
        taken: list[Label] = []
        for arrow in arrows:
            shapes += draw_arrow(arrow, x, x + COLUMN - 20, y)
            taken += draw_label(arrow, x, x + COLUMN - 20, y, taken)
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
