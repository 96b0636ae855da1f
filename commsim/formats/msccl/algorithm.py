"""The values in an MSCCL file, the limits of the runtime, and the steps and chunks of a schedule in its terms."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from commsim.core.errors import InputError
from commsim.core.schedule import INPUT, OUTPUT, REDUCE, SCRATCH, Schedule

# Of a thread block, of a GPU, of a channel of a GPU; a step moves fewer chunks than the fourth; letters.
MAX_STEPS, MAX_BLOCKS, MAX_BLOCKS_OF_CHANNEL, MAX_COUNT, MAX_NAME = 256, 216, 32, 72, 63
OPERATIONS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reduce_scatter": "reduce_scatter", "alltoall": "all_to_all",
    "broadcast": "broadcast", "reduce": "reduce", "custom": "custom",
}  # fmt: skip
BUFFERS = {"i": INPUT, "o": OUTPUT, "s": SCRATCH}
PROTOCOLS = ("Simple", "LL", "LL128")
SENDING = ("s", "rcs", "rrs", "rrcs")
RECEIVING = ("r", "rcs", "rrc", "rrs", "rrcs")
STEP_TYPES = ("s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "re", "ra", "nop")
# Of an edge: the later end is not before the earlier one; after it; after it unless it also comes before it.
ANY, LATER, UNLESS_AROUND = range(3)
# Earlier, later, and one of these.
Edge = tuple[int, int, int]
# Phases of a hop, and ways of a connection.
SENDS, COPIES, RECEIVES = range(3)
_Place = tuple[str, int, str, int]
_Row = tuple[int, int, int, int, _Place, int, range, range, bool]
# Buffer of a schedule, and chunk.
Where = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BlockStep:
    """One step of a thread block.

    Parameters
    ----------
    kind : str
        One of ``STEP_TYPES``.
    src_buffer, src_chunk, dst_buffer, dst_chunk : str and int
        What it reads and writes; the chunk is -1 for none.
    count : int
        Contiguous chunks.
    wait : (int, int) or None
        The thread block and step that must be done before.
    waited_for : bool
        Whether another thread block waits for it.
    hop, stage : int
        Hop and stage of the message or copy that begins with it, where the file has them: ours do, in two attributes
        that the runtime passes over; else -1.
    """

    kind: str
    src_buffer: str = "i"
    src_chunk: int = -1
    dst_buffer: str = "i"
    dst_chunk: int = -1
    count: int = 0
    wait: tuple[int, int] | None = None
    waited_for: bool = False
    hop: int = -1
    stage: int = -1


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """Steps that are done one after the other, with one GPU to send to and one to receive from, or -1."""

    send: int
    recv: int
    channel: int
    steps: tuple[BlockStep, ...]


@dataclass(frozen=True, slots=True)
class GpuProgram:
    """What one GPU does.

    Parameters
    ----------
    chunks : dict of str to int
        Chunks of each buffer, ``i``, ``o`` and ``s``.
    blocks : tuple of ThreadBlock
        Thread blocks at work at once.
    """

    chunks: dict[str, int]
    blocks: tuple[ThreadBlock, ...]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What an MSCCL file holds.

    Parameters
    ----------
    name, collective, protocol : str
        Names in the file.
    in_place : bool
        Whether input and output are one array.
    n_chunks : int
        Pieces that the array is cut into.
    min_bytes, max_bytes : int
        The runtime takes it for arrays of at least the one, and less than the other.
    gpus : tuple of GpuProgram
        GPUs by rank.
    n_channels : int
        One more than the largest channel.
    weights : tuple of float
        Shares of the channels, where the file says them: ours do, in an attribute that the runtime passes over.
    """

    name: str
    collective: str
    protocol: str
    in_place: bool
    n_chunks: int
    min_bytes: int
    max_bytes: int
    gpus: tuple[GpuProgram, ...]
    n_channels: int
    weights: tuple[float, ...] = ()


class Item(NamedTuple):
    """A step before it has a place: its order in the GPU, its connection, and what it touches there."""

    hop: int
    phase: int
    number: int
    stage: int
    connection: tuple[int, int, int]  # way, peer, channel
    step: BlockStep
    reads: range
    writes: range


def items_of(schedule: Schedule, in_place_name: str) -> tuple[list[list[Item]], int]:
    """Return the steps of every GPU in its order, and how many messages were cut."""
    names = {INPUT: in_place_name, OUTPUT: in_place_name if schedule.in_place else "o", SCRATCH: "s"}
    items: list[list[Item]] = [[] for _ in range(schedule.n_ranks)]
    touched = np.zeros((schedule.n_ranks, schedule.n_addresses), np.bool_)
    touched[:, : schedule.n_chunks] = True
    transfers = schedule.expand()
    src_at, dst_at = schedule.src_address(transfers).tolist(), schedule.dst_address(transfers).tolist()
    columns: Any = (transfers[f].tolist() for f in ("src", "dst", "src_chunk", "dst_chunk", "count", "hop", "stage",
                                                    "channel", "src_buffer", "dst_buffer", "op"))  # fmt: skip
    n_cut = 0
    number = itertools.count()
    for a, b, (src, dst, src_chunk, dst_chunk, count, hop, stage, channel, src_buffer, dst_buffer, op) in zip(
        src_at, dst_at, zip(*columns, strict=True), strict=True
    ):
        n_cut += count >= MAX_COUNT
        for skip in range(0, count, MAX_COUNT - 1):
            n = min(MAX_COUNT - 1, count - skip)
            place: _Place = (names[src_buffer], src_chunk + skip, names[dst_buffer], dst_chunk + skip)
            there = range(b + skip, b + skip + n)
            adds = op == REDUCE and _holds(schedule, touched[dst, there.start : there.stop], dst)
            row = (hop, next(number), stage, channel, place, n, range(a + skip, a + skip + n), there, adds)
            _add(items, src, dst, row)
    for of_rank in items:
        of_rank.sort(key=lambda item: item[:3])
        _check_hops(schedule, of_rank)
    return items, n_cut


def _add(items: list[list[Item]], src: int, dst: int, row: _Row) -> None:
    """Add the steps of one transfer to both of its ends."""
    hop, number, stage, channel, place, n, here, there, adds = row
    if src == dst:
        step = BlockStep("re" if adds else "cpy", *place, n, hop=hop, stage=stage)
        items[src].append(Item(hop, COPIES, number, stage, (COPIES, -1, 0), step, here, there))
        return
    step = BlockStep("s", *place, n, hop=hop, stage=stage)
    items[src].append(Item(hop, SENDS, number, stage, (SENDS, dst, channel), step, here, range(0)))
    own_place = (*place[2:], *place[2:])
    step = BlockStep("rrc", *own_place, n) if adds else BlockStep("r", *place, n)
    items[dst].append(Item(hop, RECEIVES, number, stage, (RECEIVES, src, channel), step, range(0), there))


def _holds(schedule: Schedule, touched: Any, rank: int) -> bool:
    """Whether chunks hold something to add to; marks them as touched."""
    before = touched.copy()
    touched[:] = True
    if before.any() and not before.all():
        raise InputError(f"{schedule.name}: rank {rank} adds one message partly to data and partly to empty memory")
    return bool(before.all())


def _check_hops(schedule: Schedule, items: list[Item]) -> None:
    """Raise if local copies of one hop overwrite what a later one of the same hop reads: steps have no 'before'."""
    for hop, group in itertools.groupby((i for i in items if i.phase == COPIES), key=lambda item: item.hop):
        written: set[int] = set()
        for item in group:
            if not written.isdisjoint(item.reads):
                raise InputError(f"{schedule.name}: local copies of hop {hop} exchange chunks, which steps cannot do")
            written.update(item.writes)


class Addresses:
    """Maps the buffers of an algorithm to those of a schedule.

    Of an operation that a schedule has in place only, what a file has out of place is computed in scratch memory and
    copied in the end, which takes no time.

    Parameters
    ----------
    algorithm : Algorithm
        What is mapped.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self._algorithm = algorithm
        self.operation = OPERATIONS[algorithm.collective]
        self._moves = self.operation == "all_to_all"
        self.apart = not algorithm.in_place and not self._moves
        """Whether output is scratch memory that is to be copied in the end."""
        if algorithm.in_place and self._moves:
            raise InputError(f"{algorithm.name}: an alltoall is out of place, but the file has inplace=1")
        self._scratch = max(gpu.chunks["s"] for gpu in algorithm.gpus)
        self._output = max(gpu.chunks["o"] for gpu in algorithm.gpus) if self.apart else 0
        self.n_extra = 0
        """Chunks of scratch memory taken by :meth:`take`."""

    @property
    def n_scratch(self) -> int:
        """Chunks of scratch memory in all."""
        return self._scratch + self._output + self.n_extra

    def src(self, rank: int, step: BlockStep) -> Where:
        """Return what a step reads of its own GPU."""
        return self._at(rank, step.src_buffer, step.src_chunk)

    def dst(self, rank: int, step: BlockStep) -> Where:
        """Return what a step writes of its own GPU."""
        return self._at(rank, step.dst_buffer, step.dst_chunk)

    def take(self, count: int) -> Where:
        """Return scratch memory that no step uses."""
        self.n_extra += count
        return SCRATCH, self._scratch + self._output + self.n_extra - count

    def copies_back(self, rank: int) -> list[tuple[Where, Where, int]]:
        """Return what of an output apart is to be copied: from, to, count."""
        held = self._algorithm.gpus[rank].chunks["o"]
        if not self.apart or not held:
            return []
        first = rank * held if self._algorithm.collective == "reduce_scatter" else 0
        return [((SCRATCH, self._scratch), (INPUT, first), held)]

    def _at(self, rank: int, buffer: str, chunk: int) -> Where:
        held = self._algorithm.gpus[rank].chunks
        if buffer == "s":
            return SCRATCH, chunk
        if buffer == "i":
            return INPUT, chunk + (rank * held["i"] if self._algorithm.collective == "allgather" else 0)
        if self._moves:
            return OUTPUT, chunk
        if self.apart:
            return SCRATCH, self._scratch + chunk
        return INPUT, chunk + (rank * held["o"] if self._algorithm.collective == "reduce_scatter" else 0)
