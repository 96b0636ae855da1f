"""Orders in which repetitions of a block step through the data, where that is not the order of the chunks' numbers.

NCCL's rings go through the ranks of each machine in an order of their own, and a chunk of an all-gather belongs to a
rank: from round to round a ring moves to the chunks of the rank before, which have any numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import ScheduleError
from commsim.core.jit import Records
from commsim.core.value import Value, freeze

Whole = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class ChunkOrders(Value):
    """Orders of the parts of the data, and which of them each row of a block follows.

    Parameters
    ----------
    parts : int32[n_orders, n_parts]
        Parts in each order: a part is as many neighbouring chunks as the others.
    of_row : int32[n]
        Order of each transfer of the block's body.

    Raises
    ------
    ScheduleError
        If an order does not hold each part once, or a row follows none of them.
    """

    parts: NDArray[np.int32]
    of_row: NDArray[np.int32]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", freeze(self.parts, np.int32))
        object.__setattr__(self, "of_row", freeze(self.of_row, np.int32))
        if self.parts.ndim != 2 or self.of_row.ndim != 1 or not self.parts.size:
            raise ScheduleError(f"orders of chunks are rows of parts, got the shape {self.parts.shape}")
        if (np.sort(self.parts, axis=1) != np.arange(self.parts.shape[1])).any():
            raise ScheduleError(f"an order of chunks must hold each part 0..{self.parts.shape[1] - 1} once")
        if self.of_row.size and not (self.of_row.min() >= 0 and self.of_row.max() < len(self.parts)):
            raise ScheduleError(f"rows follow orders 0..{len(self.parts) - 1}, got {self.of_row.max()}")

    def rows(self, which: slice) -> ChunkOrders:
        """Return the orders of some rows of the body."""
        return ChunkOrders(self.parts, self.of_row[which])

    def misfit(self, body: Records, step: tuple[int, int, int, int], n_chunks: int) -> str:
        """Describe why a block cannot repeat along these orders; empty if it can, and then stays inside the data.

        Parameters
        ----------
        body : TRANSFER[n]
            Transfers of the block whose orders these are, all between buffers of data.
        step : tuple of int
            What a repetition adds to src, dst, src_chunk, dst_chunk.
        n_chunks : int
            Chunks of the data.
        """
        n_parts = self.parts.shape[1]
        if len(self.of_row) != len(body):
            return f"orders of chunks must be given for {len(body)} transfers, got {len(self.of_row)}"
        if n_chunks % n_parts:
            return f"orders of chunks hold {n_parts} parts, which {n_chunks} chunks are no multiple of"
        width = n_chunks // n_parts
        ends = (body[chunk] % width + body["count"].astype(np.int64) for chunk in ("src_chunk", "dst_chunk"))
        if any((end > width).any() for end in ends) or any(each % width for each in step[2:]):
            return f"along an order of chunks messages and steps must be within parts of {width} chunks"
        return ""

    def moved(self, chunk: Whole, shift: Whole, n_chunks: int) -> NDArray[np.int64]:
        """Return the chunks that lie so many chunks behind others in the order of each row, from its end on in front.

        Parameters
        ----------
        chunk : int[n]
            Chunk of each row.
        shift : int[n_repetitions, 1]
            How far.
        n_chunks : int
            Chunks of the data.

        Returns
        -------
        int64[n_repetitions, n]
        """
        width = n_chunks // self.parts.shape[1]
        place = np.argsort(self.parts, axis=1)[self.of_row, chunk // width] * np.int64(width) + chunk % width
        there = (place + shift) % n_chunks
        return np.asarray(self.parts[self.of_row, there // width] * np.int64(width) + there % width)
