"""The sets of blocks that ranks start with, one row of words per rank and chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.limits import expect_bytes
from commsim.core.schedule import Schedule

from .bitmap import WORD
from .partition import Partition

# No truncation.
UNLIMITED = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class BlockSets:
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


def first_rows(schedule: Schedule, partition: Partition, words: NDArray[np.uint64], first: int, stop: int) -> BlockSets:
    """Return what is held before the first hop: each rank's own blocks in every chunk of its input.

    Of a piece of the tensor most chunks may have nothing. Their sets are all empty: one row for all ranks.

    Parameters
    ----------
    schedule, partition
        What is executed, and what its chunks are.
    words : uint64[n_ranks, ceil((stop - first) / 64)]
        Blocks of each rank in a piece of the tensor.
    first, stop : int
        First block of the piece, and its end.

    Raises
    ------
    InputError
        If the sets would take too much memory; see :func:`commsim.core.limits.expect_bytes`.
    """
    from .bitmap_kernel import pack_classes, pack_ranges

    n_ranks, n_chunks = schedule.n_ranks, schedule.n_chunks
    _check_memory(schedule, partition, n_ranks * n_chunks)  # before anything is as long as the chunks are many
    if partition.hashed:
        chunk_of = partition.chunk_of_blocks(range(first, stop))
        sizes, here = np.bincount(chunk_of, minlength=n_chunks), range(n_chunks)
    else:
        bounds = np.clip(partition.ranges(), first, stop) - first
        sizes = np.diff(bounds)
        here = range(int(np.argmax(bounds > 0)) - 1, int(np.argmax(bounds == stop - first)))
    n_own, n_words = n_ranks * len(here), max(1, -(-int(sizes.max()) // WORD))
    elsewhere = np.delete(np.arange(n_chunks, dtype=np.int32), here)
    n_rows = n_own + len(elsewhere)
    _check_memory(schedule, partition, n_rows * n_words)
    own = np.zeros((2 * n_rows, n_words), np.uint64)
    if partition.hashed:
        pack_classes(words, chunk_of, np.arange(n_chunks) * (n_words * WORD), own[:n_own].reshape(n_ranks, -1))
    else:
        pack_ranges(words, bounds[here.start : here.stop + 1], own[:n_own])
    row_of = np.full((schedule.n_participants, schedule.n_addresses), -1, np.int32)
    row_of[:n_ranks, elsewhere] = np.arange(n_own, n_rows)
    row_of[:n_ranks, here.start : here.stop] = np.arange(n_own).reshape(n_ranks, -1)
    chunks = np.concatenate([np.tile(np.array(here, np.int32), n_ranks), elsewhere])
    return BlockSets(own, sizes, chunks, row_of.ravel())


def _check_memory(schedule: Schedule, partition: Partition, n_words: int) -> None:
    n_bytes = 16 * n_words + 12 * schedule.n_participants * schedule.n_addresses
    what = f"{schedule.name}: {schedule.n_chunks} chunks of {partition.n_blocks} blocks at {schedule.n_ranks} ranks"
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
    limits = np.asarray(UNLIMITED if keep is None else keep)
    if limits.dtype.kind not in "iu" or limits.shape not in ((), (n_transfers,)):
        raise InputError(
            f"keep must be a whole number, or one for each of {n_transfers} transfers; got {limits.dtype} of shape "
            f"{limits.shape}"
        )
    if limits.size and limits.min() < 1:
        raise InputError(f"keep must be at least 1, got {limits.min()}")
    return np.array(np.broadcast_to(limits.astype(np.int64), (n_transfers,)))
