"""The schedule: transfers of chunks between participants, each copied or reduced on arrival.

A schedule is a sequence of blocks. A block is a few hops, written once, and how often they repeat with which shift of
peers and chunks; regular algorithms so cost O(ranks) memory whatever the number of rounds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ScheduleError
from .jit import Records
from .operations import OPERATIONS
from .units import count_text
from .value import Value, freeze

if TYPE_CHECKING:
    from .data_order.chunk_orders import ChunkOrders

COPY, REDUCE = 0, 1
INPUT, OUTPUT, SCRATCH = 0, 1, 2
BUFFERS = ("input", "output", "scratch")

# One message: `count` contiguous chunks of `src` arrive at `dst`, and are copied or reduced there.
TRANSFER = np.dtype(
    [
        ("src", np.int32), ("dst", np.int32), ("src_chunk", np.int32), ("dst_chunk", np.int32),
        ("count", np.int32), ("hop", np.int32), ("stage", np.int32),
        ("channel", np.int16), ("src_buffer", np.uint8), ("dst_buffer", np.uint8), ("op", np.uint8),
    ],
    align=True,
)  # fmt: skip

Transfers = Records
STEPPED = ("src", "dst", "src_chunk", "dst_chunk")


@dataclass(frozen=True, slots=True, eq=False)
class Block(Value):
    """Some hops, and how they repeat.

    Repetition ``i`` of ``times`` adds ``r * step`` (modulo the number of ranks or chunks), with ``r = first + i``, to
    each field of `step`; with `xor` it takes the exclusive or instead.

    Parameters
    ----------
    body : TRANSFER[n]
        Transfers in program order; ``hop`` and ``stage`` count from the start of the block.
    n_hops, n_fences : int
        Hops, and fences, in one repetition.
    times, first : int
        How many repetitions, and the number of the first.
    step : tuple of int
        What a repetition adds to src, dst, src_chunk, dst_chunk.
    xor : bool
        Exclusive or in place of addition.
    orders : ChunkOrders, optional
        Orders of the chunks, along which `step` counts them. Default: that of their numbers.
    """

    body: Transfers
    n_hops: int
    n_fences: int = 0
    times: int = 1
    first: int = 0
    step: tuple[int, int, int, int] = (0, 0, 0, 0)
    xor: bool = False
    orders: ChunkOrders | None = None
    # Spaces of the schedule that it was checked in: it never changes, and is asked for again under another name.
    checked: tuple[int, ...] = dataclasses.field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        body = self.body
        if getattr(body, "dtype", None) != TRANSFER or body.flags.writeable or not body.flags.owndata:
            body = np.array(body, dtype=TRANSFER)
            body.setflags(write=False)
        object.__setattr__(self, "body", body)


@dataclass(frozen=True, slots=True, eq=False)
class Schedule(Value):
    """Transfers between participants in program order; has no sizes and names no network node.

    Participants are ranks ``0 .. n_ranks-1``, then helpers. Each has three buffers: input (the data, cut into
    `n_chunks`), output (the same memory as input, unless the operation is out of place) and scratch.

    Parameters
    ----------
    name : str
        The algorithm.
    operation : str
        A name of ``OPERATIONS``, or ``custom`` for a schedule without a postcondition.
    n_ranks, n_helpers, n_chunks, n_scratch : int
        Sizes of the participant and address spaces.
    blocks : tuple of Block
        What is sent.
    root : int
        The rank that a rooted operation starts from, or ends at.
    layout : tuple of int
        How blocks lie, where the operation needs to know; see :mod:`commsim.core.layouts`.
    weights : float64[n_channels]
        Share of a full link that a message of each channel gets relative to others; 1 for channels beyond the end.

    Attributes
    ----------
    n_participants, n_transfers : int
        Ranks and helpers; messages in all, every repetition counted.
    in_place : bool
        Whether output is the same memory as input.
    shares_equally : bool
        Whether messages share a full link in equal parts, whatever their channel.
    buffer_offsets : int64[3]
        First address of input, output and scratch in a participant's address space.
    n_addresses : int
        Chunks that one participant can hold in all its buffers.

    Raises
    ------
    ScheduleError
        If a transfer names a participant or a chunk that does not exist, program order is broken, or a weight is not
        positive and finite.
    """

    name: str
    operation: str
    n_ranks: int
    n_helpers: int
    n_chunks: int
    n_scratch: int
    blocks: tuple[Block, ...]
    root: int = 0
    layout: tuple[int, ...] = ()
    weights: NDArray[np.float64] = ()  # type: ignore[assignment]  # frozen in __post_init__
    n_participants: int = dataclasses.field(init=False, repr=False, compare=False)
    n_transfers: int = dataclasses.field(init=False, repr=False, compare=False)
    in_place: bool = dataclasses.field(init=False, repr=False, compare=False)
    shares_equally: bool = dataclasses.field(init=False, repr=False, compare=False)
    buffer_offsets: NDArray[np.int64] = dataclasses.field(init=False, repr=False, compare=False)
    n_addresses: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put: Any = object.__setattr__
        put(self, "n_participants", self.n_ranks + self.n_helpers)
        put(self, "n_transfers", sum(len(b.body) * b.times for b in self.blocks))
        if self.n_ranks < 1 or self.n_chunks < 1 or self.n_helpers < 0 or self.n_scratch < 0:
            raise ScheduleError(
                f"{self.name}: needs at least 1 rank and 1 chunk, got n_ranks={self.n_ranks}, n_chunks={self.n_chunks}"
            )
        if not 0 <= self.root < self.n_ranks:
            raise ScheduleError(f"{self.name}: root must be a rank 0..{self.n_ranks - 1}, got {self.root}")
        if self.operation != "custom":
            if self.operation not in OPERATIONS:
                raise ScheduleError(f"{self.name}: unknown operation {self.operation!r}")
            operation = OPERATIONS[self.operation]
            if self.layout or operation.layout != "none" or operation.needs_equal_blocks:
                operation.check_layout(self.name, self.n_ranks, self.n_chunks, self.layout)
        put(self, "in_place", self.operation == "custom" or OPERATIONS[self.operation].in_place)
        output = 0 if self.in_place else self.n_chunks
        put(self, "buffer_offsets", freeze([0, output, output + self.n_chunks], np.int64))
        put(self, "n_addresses", output + self.n_chunks + self.n_scratch)
        spaces = self.n_ranks, self.n_helpers, self.n_chunks, self.n_scratch
        for block in self.blocks:
            if block.checked != spaces:
                _check_block(self, block)
                put(block, "checked", spaces)
        weights = freeze(np.asarray(self.weights, np.float64), np.float64)
        wrong = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
        if weights.ndim != 1 or wrong.size:
            got = weights[wrong[0]] if weights.ndim == 1 else f"{weights.ndim} dimensions"
            raise ScheduleError(f"{self.name}: weights of channels are positive numbers in a row, got {got}")
        put(self, "weights", weights)
        put(self, "shares_equally", bool((weights == 1).all()))

    def __repr__(self) -> str:
        helpers = f" and {count_text(self.n_helpers, 'helper')}" if self.n_helpers else ""
        size = f"{count_text(self.n_ranks, 'rank')}{helpers}, {count_text(self.n_transfers, 'transfer')}"
        return f"Schedule({self.name}: {self.operation}, {size})"

    @property
    def n_hops(self) -> int:
        """Hops in all, every repetition counted."""
        return sum(b.n_hops * b.times for b in self.blocks)

    def weight_of(self, channel: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weight of each of some channels."""
        weights = np.append(self.weights, 1.0)
        return np.asarray(weights[np.minimum(channel, len(self.weights))])

    def src_address(self, transfers: Transfers) -> NDArray[np.int64]:
        """First address that each transfer reads, in its source's address space."""
        return np.asarray(self.buffer_offsets[transfers["src_buffer"]] + transfers["src_chunk"])

    def dst_address(self, transfers: Transfers) -> NDArray[np.int64]:
        """First address that each transfer writes, in its destination's address space."""
        return np.asarray(self.buffer_offsets[transfers["dst_buffer"]] + transfers["dst_chunk"])

    def rounds(self) -> Iterator[Transfers]:
        """Expand lazily: one repetition of one block at a time, hops and stages numbered from the start."""
        hop = stage = 0
        for block in self.blocks:
            for i in range(block.times):
                yield self.repetitions(block, [i], hop, stage)
                hop += block.n_hops
                stage += block.n_fences

    def volumes(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the chunks that each participant sends and receives, and its messages; local copies do not count."""
        n = self.n_participants
        sent, received, messages = np.zeros(n), np.zeros(n), np.zeros(n)
        for transfers in self.rounds():
            moving = transfers[transfers["src"] != transfers["dst"]]
            sent += np.bincount(moving["src"], weights=moving["count"], minlength=n)
            received += np.bincount(moving["dst"], weights=moving["count"], minlength=n)
            messages += np.bincount(moving["src"], minlength=n)
        return sent, received, messages

    def expand(self) -> Transfers:
        """Return every transfer in program order, hops and stages numbered from the start."""
        out = np.empty(self.n_transfers, TRANSFER)
        hop = stage = done = 0
        for block in self.blocks:
            n = len(block.body) * block.times
            self.repetitions(block, np.arange(block.times), hop, stage, out[done : done + n])
            done += n
            hop += block.n_hops * block.times
            stage += block.n_fences * block.times
        return out

    def fenced(self) -> Schedule:
        """Return the same with a fence after each hop: a transfer waits for all of earlier hops at both of its ends."""
        blocks = []
        for block in self.blocks:
            body = block.body.copy()
            body["stage"] = body["hop"]
            blocks.append(dataclasses.replace(block, body=body, n_fences=block.n_hops))
        return dataclasses.replace(self, blocks=tuple(blocks))

    def repetitions(
        self, block: Block, numbers: ArrayLike, hop: int = 0, stage: int = 0, out: Transfers | None = None
    ) -> Transfers:
        """Expand repetitions of a block with these numbers, the first at `hop` and `stage`; into `out`, if given."""
        numbers = np.asarray(numbers, np.int64)
        out = np.empty(len(numbers) * len(block.body), TRANSFER) if out is None else out
        rows = out.reshape(len(numbers), len(block.body))
        rows[:] = block.body
        since = (numbers - numbers[0])[:, np.newaxis]
        chunks = np.array([self.n_chunks, self.n_chunks, max(1, self.n_scratch)])  # of each buffer
        for field, begin, each in (("hop", hop, block.n_hops), ("stage", stage, block.n_fences)):
            if begin or each:
                rows[field] += (begin + since * each).astype(np.int32)
        for field, step in zip(STEPPED, block.step, strict=True):
            if not step:
                continue
            moved = block.body[field].astype(np.int64)
            shift = ((numbers + block.first) * step)[:, np.newaxis]
            size = self.n_ranks if field in ("src", "dst") else chunks[block.body[field.replace("chunk", "buffer")]]
            if block.orders is not None and field.endswith("chunk"):
                rows[field] = block.orders.moved(moved, shift, self.n_chunks)
            else:
                rows[field] = moved ^ shift if block.xor else (moved + shift) % size
        return out


def _check_block(schedule: Schedule, block: Block) -> None:
    """Raise unless every repetition stays inside the participants and buffers."""
    if block.times < 1:
        raise ScheduleError(f"{schedule.name}: a block repeats at least once, got {block.times}")
    for field, limit in (("hop", block.n_hops), ("stage", block.n_fences + 1)):
        column = block.body[field]
        if column.size and (column[0] < 0 or column[-1] >= limit or (column[1:] < column[:-1]).any()):
            raise ScheduleError(f"{schedule.name}: {field} must rise from 0 to at most {limit - 1} within a block")
    step = dict(zip(STEPPED, block.step, strict=True))
    for end in ("src", "dst"):
        participant = block.body[end]
        limit = schedule.n_ranks if step[end] else schedule.n_participants
        low, high = (participant.min(), participant.max()) if participant.size else (0, 0)
        if low < 0 or high >= limit:
            raise ScheduleError(f"{schedule.name}: {end} must be 0..{limit - 1}, got {low if low < 0 else high}")
    count = block.body["count"].astype(np.int64)  # 32 bits could overflow in a damaged file
    if count.size and count.min() < 1:
        raise ScheduleError(f"{schedule.name}: count must be at least 1, got {count.min()}")
    for chunk, buffer in (("src_chunk", "src_buffer"), ("dst_chunk", "dst_buffer")):
        sizes = np.array([schedule.n_chunks, schedule.n_chunks, schedule.n_scratch])
        size_of = sizes[0] if not block.body[buffer].any() else sizes[block.body[buffer]]
        place = block.body[chunk]
        bad_rows = np.flatnonzero((place < 0) | (place > size_of - count))
        if bad_rows.size:
            t = block.body[bad_rows[0]]
            raise ScheduleError(
                f"{schedule.name}: {chunk} {t[chunk]} with count {t['count']} is outside the {sizes[t[buffer]]} "
                f"chunks of {BUFFERS[t[buffer]]}"
            )
    if block.orders is not None:
        if block.xor or any((block.body[buffer] == SCRATCH).any() for buffer in ("src_buffer", "dst_buffer")):
            raise ScheduleError(f"{schedule.name}: orders of chunks are of the data, and for steps that are added")
        if misfit := block.orders.misfit(block.body, block.step, schedule.n_chunks):
            raise ScheduleError(f"{schedule.name}: {misfit}")
    elif (any(block.step) and (block.xor or (block.body["count"] > 1).any())) and not _aligned(schedule, block):
        _check_every_repetition(schedule, block)


def _aligned(schedule: Schedule, block: Block) -> bool:
    """Whether it is plain that no repetition leaves a buffer, without looking at each one.

    Exclusive or with numbers below a power of two stays below it; and messages of several chunks cannot wrap around
    when they start and step by whole messages.
    """
    count = block.body["count"]
    if schedule.n_scratch:
        return False
    if block.xor:
        last = block.first + block.times - 1
        sizes = (schedule.n_ranks, schedule.n_ranks, schedule.n_chunks, schedule.n_chunks)
        within = all(not s or (n & (n - 1) == 0 and 0 < s * last < n) for s, n in zip(block.step, sizes, strict=True))
        return within and block.first >= 0 and bool((count == 1).all())
    return bool(
        (schedule.n_chunks % count == 0).all()
        and all((block.body[c] % count == 0).all() for c in ("src_chunk", "dst_chunk"))
        and all((s % count == 0).all() for s in block.step[2:])
    )


def _check_every_repetition(schedule: Schedule, block: Block) -> None:
    for i in range(block.times) if block.xor or _may_leave(schedule, block) else ():
        _check_block(schedule, Block(schedule.repetitions(block, [i]), block.n_hops, block.n_fences))


def _may_leave(schedule: Schedule, block: Block) -> bool:
    """Whether messages of some repetition would wrap around the end of a buffer: each different place is looked at."""
    turns, count = (np.arange(block.times) + block.first)[:, np.newaxis], block.body["count"].astype(np.int64)
    sizes = np.array([schedule.n_chunks, schedule.n_chunks, max(1, schedule.n_scratch)])
    for chunk, step in zip(STEPPED[2:], block.step[2:], strict=True):
        size = sizes[block.body[chunk.replace("chunk", "buffer")]]
        place = block.body[chunk] * (2 * count.max() + 2) + 2 * count + (size == size[0])
        _, lead = np.unique(place, return_index=True)
        ends = (block.body[chunk][lead].astype(np.int64) + turns * step) % size[lead] + count[lead]
        if (ends > size[lead]).any():
            return True
    return False
