"""The sets of blocks that ranks start with, one row of words per rank and chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule
from commsim.limits import expect_bytes

from .bitmap import WORD
from .occupancy import Occupancy
from .partition import Partition

# Bits of the sets of all ranks that are looked at together; and blocks, which are worth a look at all transfers.
PIECE_BITS, LEAST_PIECE = 2**24, 2**20
# No truncation.
UNLIMITED = int(np.iinfo(np.int64).max)
# Function that writes sets into rows of words.
Fill: TypeAlias = Callable[[NDArray[np.uint64]], None]


@dataclass(frozen=True, slots=True)
class Rows:
    """Sets of blocks, and which address holds which.

    Parameters
    ----------
    words : uint64[2 * n_rows, n_words]
        One set each: bit i is the i-th block of its chunk. As many rows again are zero, and take no memory until used.
    sizes : int64[n_chunks]
        Blocks of each chunk.
    chunk_of : int32[n_rows]
        Chunk that a set is a part of.
    row_of : int32[n_participants * n_addresses]
        Row that each address holds, -1 for nothing.
    """

    words: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    chunk_of: NDArray[np.int32]
    row_of: NDArray[np.int32]


def n_pieces(occupancy: Occupancy) -> int:
    """Pieces in which a tensor is looked at one after the other, so that sets take little memory."""
    return -(-occupancy.n_blocks // max(LEAST_PIECE, PIECE_BITS // occupancy.n_ranks))


def first_rows(schedule: Schedule, occupancy: Occupancy, partition: Partition, piece: int = 0, n: int = 1) -> Rows:
    """Return what is held before the first hop: each rank's own blocks in every chunk of its input.

    Parameters
    ----------
    schedule, occupancy, partition
        What is executed, on which blocks, and what their chunks are.
    piece, n : int
        Which of so many pieces of every chunk is looked at.

    Raises
    ------
    InputError
        If the sets would take too much memory; see :func:`commsim.limits.expect_bytes`.
    """
    n_chunks, n_ranks = schedule.n_chunks, schedule.n_ranks
    _check_memory(schedule, occupancy, 1)  # before anything is as long as the chunks are many
    pack = _classes if partition.hashed else _ranges
    sizes, fill = pack(occupancy, partition, piece, n)
    n_words = max(1, -(-int(sizes.max()) // WORD))
    _check_memory(schedule, occupancy, n_words)
    words = np.zeros((2 * n_ranks * n_chunks, n_words), np.uint64)
    fill(words[: n_ranks * n_chunks])
    row_of = np.full((schedule.n_participants, schedule.n_addresses), -1, np.int32)
    row_of[:n_ranks, :n_chunks] = np.arange(n_ranks * n_chunks).reshape(n_ranks, n_chunks)
    return Rows(words, sizes, np.tile(np.arange(n_chunks, dtype=np.int32), n_ranks), row_of.ravel())


def _classes(occupancy: Occupancy, partition: Partition, piece: int, n: int) -> tuple[NDArray[np.int64], Fill]:
    """Blocks of a piece of each class of the hash, and what packs them."""
    from .bitmap_kernel import pack_classes

    first, stop = (
        occupancy.n_blocks * k // n // WORD * WORD if k < n else occupancy.n_blocks for k in (piece, piece + 1)
    )
    chunk_of = partition.chunk_of_blocks(range(first, stop))
    held = occupancy.words
    if n > 1:
        held = held[:, first // WORD : -(-stop // WORD)].copy()
        held.setflags(write=False)  # as those of all blocks
    sizes = np.bincount(chunk_of, minlength=partition.n_chunks)
    return sizes, lambda words: pack_classes(held, chunk_of, partition.n_chunks, words)


def _ranges(occupancy: Occupancy, partition: Partition, piece: int, n: int) -> tuple[NDArray[np.int64], Fill]:
    """Blocks of a piece of each range, and what packs them."""
    from .bitmap_kernel import pack_ranges

    bounds = partition.ranges()
    if n == 1:
        return np.diff(bounds), lambda words: pack_ranges(occupancy.words, bounds, words)
    first, stop = (bounds[:-1] + np.diff(bounds) * k // n for k in (piece, piece + 1))

    def fill(words: NDArray[np.uint64]) -> None:
        of_ranks = words.reshape(occupancy.n_ranks, partition.n_chunks, -1)
        for chunk in range(partition.n_chunks):
            whole = partition.n_chunks == 1  # and in the order of the sets
            part = words if whole else np.zeros((occupancy.n_ranks, words.shape[1]), np.uint64)
            pack_ranges(occupancy.words, np.array((first[chunk], stop[chunk])), part)
            if not whole:
                of_ranks[:, chunk] = part

    return stop - first, fill


def _check_memory(schedule: Schedule, occupancy: Occupancy, n_words: int) -> None:
    n_bytes = 16 * schedule.n_ranks * schedule.n_chunks * n_words + 12 * schedule.n_participants * schedule.n_addresses
    what = f"{schedule.name}: {schedule.n_chunks} chunks of {occupancy.n_blocks} blocks at {schedule.n_ranks} ranks"
    expect_bytes(n_bytes, what, "fewer chunks or larger blocks")


def limits_of(keep: ArrayLike | None, n_transfers: int) -> NDArray[np.int64]:
    """Return one limit for each transfer.

    Parameters
    ----------
    keep : int or int[n_transfers], optional
        Largest number of blocks kept, at least 1 each; by default all are kept.
    n_transfers : int
        Transfers of the schedule.

    Returns
    -------
    int64[n_transfers]

    Raises
    ------
    InputError
        If these are no whole numbers of at least 1, or not one for each transfer.
    """
    given = np.asarray(UNLIMITED if keep is None else keep)
    if given.dtype.kind not in "iu" or given.shape not in ((), (n_transfers,)):
        raise InputError(
            f"keep must be a whole number, or one for each of {n_transfers} transfers; got {given.dtype} of shape "
            f"{given.shape}"
        )
    if given.size and given.min() < 1:
        raise InputError(f"keep must be at least 1, got {given.min()}")
    return np.array(np.broadcast_to(given.astype(np.int64), (n_transfers,)))
