"""NCCL's rings: one for each channel, in and out of every machine by the rail of the channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.program import Program

from .pieces import Loop, Pieces

Order = NDArray[np.int64]


def ring_all_reduce(p: Program, orders: Sequence[Order], pieces: Pieces) -> None:
    """Write all loops: in each, piece b of a ring starts behind its member b, is added up once round, and sent round.

    Parameters
    ----------
    p : Program
        Program of as many chunks as ranks times `pieces.width`.
    orders : sequence of int64[n_ranks]
        Ranks in the order of the ring of each channel.
    pieces : Pieces
        A place for each rank.
    """
    n = p.n_ranks
    for loops in pieces.loops:
        src, dst, place, offset, count, channel = _hop(orders, loops)
        with p.repeat(n - 1, chunk=-pieces.width):
            p.reduce(place * pieces.width + offset, src=src, dst=dst, count=count, channel=channel)
        with p.repeat(n - 1, chunk=-pieces.width):
            p.copy((place + 1) % n * pieces.width + offset, src=src, dst=dst, count=count, channel=channel)


def ring_half(p: Program, orders: Sequence[Order], pieces: Pieces, *, reduces: bool) -> None:
    """Write all loops of a reduce-scatter or an all-gather: the place of a piece is the rank that it is at home on.

    So from round to round a ring steps through the pieces in the order of its ranks. Parameters are those of
    :func:`ring_all_reduce`.
    """
    n, write = p.n_ranks, p.reduce if reduces else p.copy
    order, behind = np.array(orders), 1 if reduces else 0
    turns = ((np.roll(order, -1, axis=1) - order) % n != 1 % n).any()
    for loops in pieces.loops:
        src, dst, place, offset, count, channel = _hop(orders, loops)
        home = order[channel, (place - behind) % n]
        with p.repeat(n - 1, chunk=-pieces.width, orders=order if turns else None):
            write(home * pieces.width + offset, src=src, dst=dst, count=count, channel=channel)


def _hop(orders: Sequence[Order], loops: Sequence[Loop]) -> tuple[NDArray[np.int64], ...]:
    """One message for each member of each ring and slice: both ends, place in the ring, chunks, channel."""
    n = len(orders[0])
    columns: list[list[NDArray[np.int64]]] = [[] for _ in range(6)]
    for loop in loops:
        order = orders[loop.channel]
        for begin, count in loop.slices:
            row = (order, np.roll(order, -1), np.arange(n), loop.first + begin, count, loop.channel)
            for column, value in zip(columns, row, strict=True):
                column.append(np.broadcast_to(np.asarray(value, np.int64), n))
    return tuple(np.concatenate(column) for column in columns)
