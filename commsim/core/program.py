"""The program: how an author writes a schedule, one whole hop per call."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError, ScheduleError
from .schedule import COPY, INPUT, REDUCE, TRANSFER, Block, Schedule

# Type of each field.
TYPES = {name: TRANSFER[name] for name in TRANSFER.names or ()}
# Transfers that are listed one by one, of 36 bytes each and thrice as much while they are written.
MAX_LISTED = 2**25
# Name of a schedule that is given none.
UNNAMED = "custom"


class Program:
    """Collects hops in program order and builds the immutable schedule.

    Transfers written in one call form a hop: all reads in it see the state before it. What waits for what is never
    written: a transfer waits for the last writers of what it reads and for the last readers and writers of what it
    overwrites; transfers with the same source, destination and channel are first-in first-out.

    Parameters
    ----------
    n_ranks : int
        Ranks; helpers are numbered after them.
    n_chunks : int
        Equal pieces that the data is cut into.
    n_helpers, n_scratch : int
        Further participants, and chunks of scratch memory at each participant.
    """

    def __init__(self, n_ranks: int, n_chunks: int, *, n_helpers: int = 0, n_scratch: int = 0) -> None:
        if n_ranks < 1:
            raise ScheduleError(f"a collective needs at least 1 rank, got n_ranks={n_ranks}")
        if n_chunks < 1:
            raise ScheduleError(f"data is cut into at least 1 chunk, got n_chunks={n_chunks}")
        self.n_ranks, self.n_chunks, self.n_helpers, self.n_scratch = n_ranks, n_chunks, n_helpers, n_scratch
        self._blocks: list[Block] = []
        # Of each hop its shape, and the fields that are not 0 throughout.
        self._hops: list[tuple[tuple[int, ...], dict[str, ArrayLike]]] = []
        self._fences = 0
        self._repeating = False
        self._n_listed = 0

    def room_for(self, n_transfers: int) -> None:
        """Refuse more transfers than can be listed, before their columns are made; what is repeated is listed once.

        Raises
        ------
        InputError
            If these and those written so far are too many.
        """
        if self._n_listed + n_transfers > MAX_LISTED:
            raise InputError(
                f"a schedule lists at most {MAX_LISTED} transfers one by one, and this one has "
                f"{self._n_listed + n_transfers} for {self.n_ranks} ranks: ask for fewer ranks"
            )

    def copy(
        self,
        chunk: ArrayLike | None = None,
        *,
        src: ArrayLike,
        dst: ArrayLike,
        src_chunk: ArrayLike | None = None,
        dst_chunk: ArrayLike | None = None,
        count: ArrayLike = 1,
        channel: ArrayLike = 0,
        src_buffer: ArrayLike = INPUT,
        dst_buffer: ArrayLike = INPUT,
    ) -> None:
        """Write a hop that overwrites at the destination. Arguments broadcast.

        Parameters
        ----------
        chunk : int32[n] or int
            First chunk at both ends, unless `src_chunk` and `dst_chunk` say otherwise.
        src, dst : int32[n] or int
            Participants.
        count : int32[n] or int
            Contiguous chunks that travel as one message.
        channel : int16[n] or int
            Messages of one channel between two participants keep their order; channels run at once.
        src_buffer, dst_buffer : uint8[n] or int
            INPUT, OUTPUT or SCRATCH: buffers at the two ends.
        """
        self._hop(COPY, chunk, src, dst, src_chunk, dst_chunk, count, channel, src_buffer, dst_buffer)

    def reduce(
        self,
        chunk: ArrayLike | None = None,
        *,
        src: ArrayLike,
        dst: ArrayLike,
        src_chunk: ArrayLike | None = None,
        dst_chunk: ArrayLike | None = None,
        count: ArrayLike = 1,
        channel: ArrayLike = 0,
        src_buffer: ArrayLike = INPUT,
        dst_buffer: ArrayLike = INPUT,
    ) -> None:
        """Write a hop that adds to what the destination holds. Arguments as in :meth:`copy`."""
        self._hop(REDUCE, chunk, src, dst, src_chunk, dst_chunk, count, channel, src_buffer, dst_buffer)

    def fence(self) -> None:
        """End a stage: a later transfer waits until all earlier ones of both its ends are complete."""
        self._fences += 1

    @contextlib.contextmanager
    def repeat(
        self,
        times: int,
        *,
        src: int = 0,
        dst: int = 0,
        chunk: int = 0,
        src_chunk: int | None = None,
        dst_chunk: int | None = None,
        first: int = 0,
        xor: bool = False,
        orders: ArrayLike | None = None,
    ) -> Iterator[None]:
        """Repeat the hops written in the block, moving peers and chunks by the given steps from one to the next.

        Parameters
        ----------
        times : int
            Repetitions; with 0 the block is left out.
        src, dst, chunk, src_chunk, dst_chunk : int
            What repetition ``r`` adds, times ``r``, modulo the number of ranks or of chunks; `chunk` is both chunks.
        first : int
            Number of the first repetition.
        xor : bool
            Take the exclusive or with ``r`` times the step instead of adding it.
        orders : int32[n_channels, n_parts], optional
            Orders of equal parts of the chunks, along which messages of each channel count the steps of chunks.
            Default: the order of their numbers.
        """
        if self._repeating:
            raise ScheduleError("repeats cannot be nested")
        self._close(1, 0, (0, 0, 0, 0), False)
        self._repeating = True
        yield
        self._repeating = False
        steps = (src, dst, chunk if src_chunk is None else src_chunk, chunk if dst_chunk is None else dst_chunk)
        self._close(times, first, steps, xor, orders)

    def build(
        self,
        name: str = UNNAMED,
        operation: str = "custom",
        root: int = 0,
        layout: tuple[int, ...] = (),
        weights: ArrayLike = (),
    ) -> Schedule:
        """Return the schedule.

        Parameters
        ----------
        name : str
            Name of the algorithm.
        operation : str
            Name of the operation, or ``custom`` for a schedule without a postcondition.
        root : int
            Root of a rooted operation.
        layout : tuple of int
            Layout of an operation whose blocks differ.
        weights : float64[n_channels]
            Share of a full link that a message of each channel gets relative to others; by default equal shares.

        Raises
        ------
        ScheduleError
            If a transfer names a participant or chunk that does not exist.
        """
        self._close(1, 0, (0, 0, 0, 0), False)
        return Schedule(
            name,
            operation,
            self.n_ranks,
            self.n_helpers,
            self.n_chunks,
            self.n_scratch,
            tuple(self._blocks),
            root,
            tuple(int(number) for number in layout),
            np.asarray(weights, np.float64),
        )

    def _hop(
        self,
        op: int,
        chunk: ArrayLike | None,
        src: ArrayLike,
        dst: ArrayLike,
        src_chunk: ArrayLike | None,
        dst_chunk: ArrayLike | None,
        count: ArrayLike,
        channel: ArrayLike,
        src_buffer: ArrayLike,
        dst_buffer: ArrayLike,
    ) -> None:
        src_chunk, dst_chunk = (chunk if c is None else c for c in (src_chunk, dst_chunk))
        if src_chunk is None or dst_chunk is None:
            raise ScheduleError("a transfer needs a chunk, or both src_chunk and dst_chunk")
        columns = {"src": src, "dst": dst, "src_chunk": src_chunk, "dst_chunk": dst_chunk, "count": count}
        columns |= {"channel": channel, "src_buffer": src_buffer, "dst_buffer": dst_buffer, "op": op}
        columns |= {"hop": len(self._hops), "stage": self._fences}
        shape = np.broadcast_shapes(*(np.shape(c) for c in columns.values()))
        self.room_for(math.prod(shape))
        self._n_listed += math.prod(shape)
        if math.prod(shape):
            self._hops.append((shape, {
                name: column if type(column) is int else np.array(column, TYPES[name])
                for name, column in columns.items()
                if type(column) is not int or column
            }))  # fmt: skip

    def _close(
        self, times: int, first: int, step: tuple[int, int, int, int], xor: bool, orders: ArrayLike | None = None
    ) -> None:
        """Turn the hops written since the last block into a block."""
        if times > 0 and (self._hops or self._fences):
            ends = list(itertools.accumulate((math.prod(shape) for shape, _ in self._hops), initial=0))
            body = np.zeros(ends[-1], TRANSFER)
            for (shape, columns), begin, end in zip(self._hops, ends, ends[1:], strict=False):
                rows = body[begin:end].reshape(shape)
                for field, column in columns.items():
                    rows[field] = column
            body.setflags(write=False)  # not shared, so the block need not copy it
            along = None
            if orders is not None:
                from .data_order.chunk_orders import ChunkOrders

                along = ChunkOrders(np.asarray(orders), body["channel"])
            self._blocks.append(Block(body, len(self._hops), self._fences, times, first, step, xor, along))
        self._hops, self._fences = [], 0
