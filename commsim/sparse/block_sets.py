"""The sets of blocks that ranks start with, one row of words per rank and chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule

from .bitmap import WORD
from .occupancy import Occupancy
from .partition import Partition

MAX_BYTES = 16 * 2**30
# No truncation.
UNLIMITED = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Rows:
    """Sets of blocks, and which address holds which.

    Parameters
    ----------
    words : uint64[n_rows, n_words]
        One set each: bit i is the i-th block of its chunk.
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


def first_rows(schedule: Schedule, occupancy: Occupancy, partition: Partition) -> Rows:
    """Return what is held before the first hop: each rank's own blocks in every chunk of its input.

    Raises
    ------
    InputError
        If the sets would take more memory than :data:`MAX_BYTES`.
    """
    from .bitmap_kernel import pack_classes, pack_ranges

    n_chunks, n_ranks = schedule.n_chunks, schedule.n_ranks
    _check_memory(schedule, occupancy, 1)  # before anything is as long as the chunks are many
    chunk_of = partition.chunk_of_blocks() if partition.hashed else None
    sizes = partition.sizes() if chunk_of is None else np.bincount(chunk_of, minlength=n_chunks)
    n_words = max(1, -(-int(sizes.max()) // WORD))
    _check_memory(schedule, occupancy, n_words)
    words = np.zeros((n_ranks * n_chunks, n_words), np.uint64)
    if chunk_of is not None:
        pack_classes(occupancy.words, chunk_of, n_chunks, words)
    else:
        pack_ranges(occupancy.words, partition.ranges(), words)
    row_of = np.full((schedule.n_participants, schedule.n_addresses), -1, np.int32)
    row_of[:n_ranks, :n_chunks] = np.arange(n_ranks * n_chunks).reshape(n_ranks, n_chunks)
    return Rows(words, sizes, np.tile(np.arange(n_chunks, dtype=np.int32), n_ranks), row_of.ravel())


def _check_memory(schedule: Schedule, occupancy: Occupancy, n_words: int) -> None:
    n_bytes = 16 * schedule.n_ranks * schedule.n_chunks * n_words + 12 * schedule.n_participants * schedule.n_addresses
    if n_bytes > MAX_BYTES:
        raise InputError(
            f"{schedule.name}: {schedule.n_chunks} chunks of {occupancy.n_blocks} blocks at {schedule.n_ranks} ranks "
            f"would take {n_bytes / 2**30:.0f} GiB, more than {MAX_BYTES >> 30}; fewer chunks take less"
        )


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
