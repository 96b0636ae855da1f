"""The pieces that a call is sent in, as whole numbers of chunks of a schedule.

A schedule has equal chunks and no sizes; NCCL's last loop has smaller chunks than the others. So a full chunk of NCCL
is a few chunks of the schedule, and a smaller one is fewer: how many pieces there are is exact, their sizes are rounded
to a sixteenth of the largest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
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


class AlikeLoops(NamedTuple):
    """Loops that are alike but for where they begin.

    Parameters
    ----------
    loops : tuple of Loop
        Those of the channels that have the first of them.
    times : int
        Number of loops.
    step : int
        The schedule's chunks from one to the next; 0 for a single one.
    """

    loops: tuple[Loop, ...]
    times: int
    step: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """All loops of all channels.

    Parameters
    ----------
    width : int
        The schedule's chunks in all pieces of one place: with n pieces in a loop the schedule has n times as many.
    runs : tuple of AlikeLoops
        Loops by number, those that are alike together.
    """

    width: int
    runs: tuple[AlikeLoops, ...]

    @property
    def loops(self) -> Iterator[tuple[Loop, ...]]:
        """Loops by number, each with those of the channels that have so many."""
        for loops, times, step in self.runs:
            for k in range(times):
                yield tuple(loop._replace(first=loop.first + k * step) for loop in loops)


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
    kinds = [
        [_sliced(*kind, largest, fine) for kind in ((part.chunk, part.slices), (part.last_chunk, part.last_slices))]
        for part in parts
    ]
    lengths = [
        ((part.n_loops - 1) * full[0] + last[0]) * by_place for part, (full, last) in zip(parts, kinds, strict=True)
    ]
    begins = list(itertools.accumulate(lengths, initial=0))
    found: list[AlikeLoops] = []
    ends_of = sorted({0, *(number for part in parts for number in (part.n_loops - 1, part.n_loops))})
    for number, end in itertools.pairwise(ends_of):
        loops = tuple(
            Loop(channel, begin + number * full[0] * by_place, *(last if number == part.n_loops - 1 else full))
            for channel, (part, begin, (full, last)) in enumerate(zip(parts, begins, kinds, strict=False))
            if number < part.n_loops
        )
        steps = [loop.count * by_place for loop in loops]
        if len({*steps}) == 1:
            _join(found, AlikeLoops(loops, end - number, steps[0]))
            continue
        for k in range(end - number):
            moved = (loop._replace(first=loop.first + k * step) for loop, step in zip(loops, steps, strict=True))
            found.append(AlikeLoops(tuple(moved), 1, 0))
    return Pieces(begins[-1], tuple(run if run.times > 1 else run._replace(step=0) for run in found))


def _join(found: list[AlikeLoops], run: AlikeLoops) -> None:
    """Add a run of equal steps, to the one before it where its loops go on from there."""
    if found and [loop._replace(first=0) for loop in found[-1].loops] == [loop._replace(first=0) for loop in run.loops]:
        loops, times, step = found[-1]
        if all(b.first - a.first == times * step for a, b in zip(loops, run.loops, strict=True)):
            found[-1] = AlikeLoops(loops, times + run.times, step)
            return
    found.append(run)


def _sliced(chunk: int, n_slices: int, largest: int, fine: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the schedule's chunks in a chunk of NCCL, of which the largest has `fine`, and the messages of these."""
    count = max(n_slices, round(chunk / largest * fine))
    bounds = [count * i // n_slices for i in range(n_slices + 1)]
    return count, tuple((low, high - low) for low, high in itertools.pairwise(bounds))
