"""The pieces that a call is sent in, as whole numbers of chunks of a schedule.

A schedule has equal chunks and no sizes; NCCL's last loop has smaller chunks than the others. So a full chunk of NCCL
is a few chunks of the schedule, and a smaller one is fewer: how many pieces there are is exact, their sizes are rounded
to a sixteenth of the largest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .rules import ChannelPart

# Chunks of the schedule in a full chunk of NCCL, where not all are equal; fewer where there are many pieces.
FINENESS = 16
# Chunks of the schedule up to which it may be as fine as that.
FINE_UP_TO = 2**18
# Messages of several chunks are looked at in every round, as to whether they stay inside the array: up to so many.
CHECKED_UP_TO = 2**21
# Pieces that differ by less are equal.
EQUAL = 0.03


class Loop(NamedTuple):
    """One loop of one channel.

    Parameters
    ----------
    channel : int
        Number.
    first : int
        First of the schedule's chunks in the loop; each of its pieces has the same place in a part of its own.
    count : int
        The schedule's chunks in each piece.
    slices : tuple of (int, int)
        Messages of a piece: where each begins, and how many chunks it has.
    """

    channel: int
    first: int
    count: int  # type: ignore[assignment]  # in place of the tuple's method, which counts values
    slices: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Pieces:
    """All loops of all channels.

    Parameters
    ----------
    width : int
        The schedule's chunks in all pieces of one place: with n pieces in a loop the schedule has n times as many.
    loops : tuple of tuple of Loop
        Loops by number, each with those of the channels that have so many.
    """

    width: int
    loops: tuple[tuple[Loop, ...], ...]


def pieces_of(parts: Sequence[ChannelPart], n_places: int, by_place: int = 1) -> Pieces:
    """Give numbers to the pieces of all channels.

    Parameters
    ----------
    parts : sequence of ChannelPart
        What each channel does.
    n_places : int
        How many pieces of a loop lie in parts of their own, `width` apart.
    by_place : int
        How many pieces of a loop lie one behind the other in each place.
    """
    largest = max(part.chunk if part.n_loops > 1 else part.last_chunk for part in parts)
    ends = [size for part in parts for size in ((part.chunk,) if part.n_loops > 1 else ()) + (part.last_chunk,)]
    least = max(max(part.slices if part.n_loops > 1 else 1, part.last_slices) for part in parts)
    fine = least if min(ends) >= (1 - EQUAL) * largest else FINENESS
    n_pieces = sum(part.n_loops for part in parts) * n_places * by_place
    while fine > least and fine * n_pieces > FINE_UP_TO:
        fine //= 2
    if n_places * n_pieces > CHECKED_UP_TO:
        fine = least
    first = 0
    by_number: list[list[Loop]] = [[] for _ in range(max(part.n_loops for part in parts))]
    for channel, part in enumerate(parts):
        full, last = (_sliced(*kind, largest, fine) for kind in ((part.chunk, part.slices),
                                                                 (part.last_chunk, part.last_slices)))  # fmt: skip
        for number in range(part.n_loops):
            count, slices = last if number == part.n_loops - 1 else full
            by_number[number].append(Loop(channel, first, count, slices))
            first += count * by_place
    return Pieces(first, tuple(map(tuple, by_number)))


def _sliced(chunk: int, n_slices: int, largest: int, fine: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the schedule's chunks in a chunk of NCCL, of which the largest has `fine`, and the messages of these."""
    count = max(n_slices, round(chunk / largest * fine))
    bounds = [count * i // n_slices for i in range(n_slices + 1)]
    return count, tuple((low, high - low) for low, high in itertools.pairwise(bounds))


def runs(pieces: Pieces) -> list[tuple[tuple[Loop, ...], int]]:
    """Join loops that are alike but for where they begin: the first of each run, and how many there are."""
    loop_runs: list[tuple[tuple[Loop, ...], int]] = []
    before: tuple[Loop, ...] = ()
    facts: list[tuple[object, ...]] = []
    for loops in pieces.loops:
        known, facts = facts, [(loop.channel, loop.count, loop.slices) for loop in loops]
        if known == facts and len({b.first - a.first for a, b in zip(before, loops, strict=True)}) == 1:
            start, times = loop_runs[-1]
            loop_runs[-1] = start, times + 1
        else:
            loop_runs.append((loops, 1))
        before = loops
    return loop_runs
