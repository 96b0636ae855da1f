"""NCCL's rings: one for each channel, in and out of every machine by the rail of the channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.program import Program

from .pieces import Loop, Pieces

Order = NDArray[np.int64]
# Messages that are written out one by one, where the rounds of a ring have no regular form.
MAX_WRITTEN = 2**25


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

    Parameters are those of :func:`ring_all_reduce`.

    Raises
    ------
    InputError
        If the rings turn through the ranks in no regular order, and are too long to be written out.
    """
    n, write = p.n_ranks, p.reduce if reduces else p.copy
    regular = all(((np.roll(order, -1) - order) % n == 1 % n).all() for order in orders)
    n_rows = sum(len(loop.slices) for loops in pieces.loops for loop in loops) * n * (n - 1)
    if not regular and n_rows > MAX_WRITTEN:
        raise InputError(
            f"rings over {n} ranks that change direction between machines take {n_rows} messages; at most "
            f"{MAX_WRITTEN} are written out: take fewer channels, or all_reduce"
        )
    behind = 1 if reduces else 0
    for loops in pieces.loops:
        src, dst, place, offset, count, channel = _hop(orders, loops)
        if regular:
            with p.repeat(n - 1, chunk=-pieces.width):
                home = (src - behind) % n
                write(home * pieces.width + offset, src=src, dst=dst, count=count, channel=channel)
            continue
        order = np.array(orders)
        for round_ in range(n - 1):
            home = order[channel, (place - behind - round_) % n]
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
