"""The connections of a schedule and what each carries, found without laying out repetitions that use the same ones.

Which connections there are follows from who sends to whom on which channel. Calls of one library at other sizes differ
in their chunks and in how often they repeat, so connections are kept and found again by comparing these columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.data_order.dependencies import connections
from commsim.core.schedule import Block, Schedule

from .proof_cache import digest_of

# Columns of transfers that decide the connections, and their numbers.
COLUMNS = ("src", "dst", "channel", "hop")
# Schedules whose connections are kept, and rows of each up to which they are: 40 bytes each.
MANY, LONG = 6, 2**21
_kept: list[_Kept] = []
__all__ = ["Carriers", "carriers"]


class Wires(NamedTuple):
    """Connections of some rows.

    Parameters
    ----------
    of_row : int32[n_rows]
        Connection of each row.
    ends : int32[n_connections, 2]
        Participants.
    channel : int64[n_connections]
        Channel.
    digest : bytes
        Digest of participants and channels.
    """

    of_row: NDArray[np.int32]
    ends: NDArray[np.int32]
    channel: NDArray[np.int64]
    digest: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Carriers:
    """Connections of a schedule, with the messages of each row.

    Parameters
    ----------
    wires : Wires
        Connections of the rows of all blocks that differ in these; further blocks have the same rows.
    count, times : int64[n_rows]
        Chunks of each row's message, and how many such messages there are; rows of all blocks.
    """

    wires: Wires
    count: NDArray[np.int64]
    times: NDArray[np.int64]

    @property
    def ends(self) -> NDArray[np.int32]:
        """Participants of each connection: int32[n_connections, 2]."""
        return self.wires.ends

    @property
    def channel(self) -> NDArray[np.int64]:
        """Channel of each connection: int64[n_connections]."""
        return self.wires.channel

    def on_wire(self, chunk: float, framing: Framing | None) -> NDArray[np.float64]:
        """Return the bytes of each connection, headers included: float64[n_connections]."""
        sizes = np.arange(min(self.count.max(initial=0) + 1, len(self.count)))  # messages have few sizes
        of_size = (framing or Framing()).on_wire((sizes if len(sizes) < len(self.count) else self.count) * chunk)
        each = (of_size[self.count] if len(sizes) < len(self.count) else of_size) * self.times
        of_row = self.wires.of_row
        of_row = np.tile(of_row, len(each) // len(of_row)) if len(of_row) < len(each) else of_row
        return np.bincount(of_row, weights=each, minlength=len(self.ends)).astype(np.float64)


class _Kept(NamedTuple):
    """Wires, with what they were found from."""

    shape: tuple[object, ...]
    columns: tuple[NDArray[np.integer[Any]], ...]
    wires: Wires


def carriers(schedule: Schedule) -> Carriers:
    """Find the connections of a schedule."""
    blocks = [block for block in schedule.blocks if len(block.body)]
    moves = [block.xor or any(block.step[:2]) for block in blocks]
    count = _joined([_repeated(block, moving) for block, moving in zip(blocks, moves, strict=True)])
    count = count.astype(np.int64)
    times = [1 if moving else block.times for block, moving in zip(blocks, moves, strict=True)]
    rows = [len(block.body) * (block.times if moving else 1) for block, moving in zip(blocks, moves, strict=True)]
    if not any(moves) and all(_alike(block, blocks[0]) for block in blocks[1:]):
        blocks = blocks[:1]
    return Carriers(_wires(schedule, blocks, moves), count, np.repeat(np.array(times, np.int64), rows))


def _repeated(block: Block, moving: bool) -> NDArray[np.integer[Any]]:
    """Return the chunks of each row, of all repetitions where these have other connections."""
    count: NDArray[np.integer[Any]] = block.body["count"]
    return np.tile(count, block.times) if moving else count


def _alike(block: Block, other: Block) -> bool:
    """Whether two blocks have the same connections, row by row."""
    return all(np.array_equal(block.body[name], other.body[name]) for name in COLUMNS)


def _wires(schedule: Schedule, blocks: Sequence[Block], moves: Sequence[bool]) -> Wires:
    """Return the connections of blocks, which are found again by what decides them."""
    shape = (
        schedule.n_ranks, schedule.n_participants,
        *((len(b.body), (b.times, b.first, b.step[:2], b.xor) * m) for b, m in zip(blocks, moves, strict=False)),
    )  # fmt: skip
    columns = tuple(block.body[name] for block in blocks for name in COLUMNS)
    for kept in tuple(_kept):
        if kept.shape == shape and all(map(np.array_equal, kept.columns, columns)):
            return kept.wires
    rows = [_columns(schedule, block, moving) for block, moving in zip(blocks, moves, strict=False)]
    found = {name: _joined([row[name] for row in rows]) for name in COLUMNS}
    of_row, lead = connections(schedule, found)
    ends = np.stack((found["src"][lead], found["dst"][lead]), axis=1).astype(np.int32, copy=False)
    channel = found["channel"][lead].astype(np.int64)
    wires = Wires(of_row, ends, channel, digest_of(ends, channel))
    if len(of_row) <= LONG:
        _kept[:] = [*_kept[1 - MANY :], _Kept(shape, tuple(column.copy() for column in columns), wires)]
    return wires


def _columns(schedule: Schedule, block: Block, moving: bool) -> dict[str, NDArray[np.integer[Any]]]:
    """Return who sends to whom in each row, of all repetitions where these have other connections."""
    if not moving:
        return {name: block.body[name] for name in COLUMNS}
    found = {name: np.tile(block.body[name], block.times) for name in COLUMNS}
    turn = np.repeat(np.arange(block.first, block.first + block.times), len(block.body))
    for name, step in zip(("src", "dst"), block.step, strict=False):
        if step:
            found[name] = found[name] ^ turn * step if block.xor else (found[name] + turn * step) % schedule.n_ranks
    return found


def _joined(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns) if columns else np.empty(0, np.int32)
