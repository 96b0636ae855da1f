"""From programs to a schedule with exactly the dependencies of the programs.

A schedule has no dependencies but those of its data, so the data is made to say them: each message arrives in chunks of
its own; a message that waits for another reads these; one that waits for several reads a chunk into which local copies,
which take no time, have copied each of them. Marked fences are fences again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule
from commsim.core.units import count_text

from .message_rows import MAX_ADDRESSES, MessageRows
from .operations import MatchedMessage, Programs, deadlock, match, sorted_after
from .stages import cut_into_stages
from .waits import MessageWaits, Reductions, find_reductions

# Most parts of a common chunk, and bytes of such a part that take as long as none: 80 ns at 100 Gb/s.
_MOST_PARTS, _ALMOST_NOTHING = 4096, 1024


@dataclass(frozen=True, slots=True, eq=False)
class ConvertedSchedule:
    """A schedule, and what its messages carry.

    Parameters
    ----------
    schedule : Schedule
        Schedule of the operation ``custom``.
    n_bytes : float64[n_transfers], bytes
        Size of each message.
    size : float, bytes
        Size with which `schedule`, cut into equal chunks, gives every message its bytes; 0 where no size does.
    gamma : float64[n_ranks], s/byte
        What reducing costs each rank, from the computations that follow receives.
    notes : tuple of str
        What should be said to the user.
    """

    schedule: Schedule
    n_bytes: NDArray[np.float64]
    size: float
    gamma: NDArray[np.float64]
    notes: tuple[str, ...] = ()


def schedule_of(programs: Programs, name: str = "custom", n_helpers: int = 0) -> ConvertedSchedule:
    """Turn programs into a schedule.

    A message begins when its receive does, too, unless ranks would then wait for each other for ever: in that case
    messages may come before they are waited for.

    Parameters
    ----------
    programs : Programs
        Programs of ranks, and helpers after them.
    name : str
        Name of the schedule.
    n_helpers : int
        How many of the programs, the last ones, are those of helpers.

    Raises
    ------
    InputError
        If sends and receives do not match, ranks wait for each other, or there is computation that is no reduction.
    """
    if not 0 <= n_helpers < len(programs.ranks):
        raise InputError(
            f"{name}: of {len(programs.ranks)} ranks at least one must stay a rank, got {n_helpers} helpers"
        )
    messages = match(programs)
    if not messages:
        raise InputError(f"{name}: no rank sends anything")
    programs, stages = cut_into_stages(programs, messages)
    reductions = find_reductions(programs)
    waits = MessageWaits(programs, messages, reductions, eager=False)
    order = sorted_after(waits.every())
    notes: tuple[str, ...] = ()
    if order is None:
        waits = MessageWaits(programs, messages, reductions, eager=True)
        order = sorted_after(waits.every())
        notes = ("messages may arrive before their receive: otherwise the ranks would deadlock",)
    if order is None:
        raise deadlock(waits.every(), lambda n: _name(n, messages, waits))
    unit, counts = _counts(messages, len(programs.ranks))
    rows = MessageRows(programs, messages, waits, [(m.dst, m.recv) in reductions for m in messages], counts)
    stage = [stages[m.src][m.send] for m in messages] + [stages[rank][i] for rank, i in waits.op_of]
    for n in sorted(order, key=stage.__getitem__):
        rows.add(n, stage[n])
    schedule, n_bytes = rows.build(name, n_helpers)
    if unit and (empty := sum(not m.size for m in messages)):
        notes = (*notes, f"{count_text(empty, 'message')} of 0 bytes: each carries one chunk, {unit:g} B, instead")
    return ConvertedSchedule(schedule, n_bytes, unit * schedule.n_chunks, _gamma(programs, reductions), notes)


def _name(n: int, messages: list[MatchedMessage], waits: MessageWaits) -> str:
    if n < len(messages):
        return f"the message from rank {messages[n].src} to {messages[n].dst} with tag {messages[n].tag}"
    return "rank {}'s operation {}".format(*waits.op_of[n - len(messages)])


def _counts(messages: list[MatchedMessage], n_ranks: int) -> tuple[float, list[int]]:
    """Bytes of a chunk, and chunks of every message; (0, ones) where whole chunks do not suit the sizes."""
    unit = math.gcd(*(m.size for m in messages))
    counts = [m.size // unit for m in messages] if unit else [0]
    most = MAX_ADDRESSES // (4 * n_ranks)  # all ranks keep as many addresses as the one that needs most
    if not unit or sum(counts) > most:
        return 0.0, [1] * len(messages)
    if all(counts):
        return float(unit), counts
    finer = min(_MOST_PARTS, (most - len(counts)) // sum(counts))
    parts = next((n for n in range(finer, 0, -1) if unit % n == 0), 1)
    if unit / parts > _ALMOST_NOTHING:
        return 0.0, [1] * len(messages)
    return unit / parts, [max(1, n * parts) for n in counts]


def _gamma(programs: Programs, reductions: Reductions) -> NDArray[np.float64]:
    time, size = np.zeros(len(programs.ranks)), np.zeros(len(programs.ranks))
    for (rank, recv), calc in reductions.items():
        time[rank] += programs.ranks[rank][calc].size / 1e9
        size[rank] += programs.ranks[rank][recv].size
    return time / np.maximum(size, 1.0)
