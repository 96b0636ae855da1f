"""Bytes of every message of a schedule, by executing it on sets of blocks in place of numbers.

The sets of blocks that ranks start with, one row of words per rank and chunk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InputError, ScheduleError
from ..core.schedule import REDUCE, Schedule, Transfers
from .bitmap import WORD
from .encodings import Contents, Encoding
from .occupancy import Occupancy
from .partition import Partition

AMBIGUOUS = -1


def transfer_bytes(
    schedule: Schedule,
    occupancy: Occupancy,
    encoding: Encoding,
    *,
    value_bytes: int = 4,
    keep: ArrayLike | None = None,
    hashed: bool = False,
    bounds: tuple[int, ...] | None = None,
) -> NDArray[np.float64]:
    """Return the payload of each transfer, in program order: what the flow engine takes.

    Parameters
    ----------
    schedule, occupancy, value_bytes, keep, hashed, bounds
        As in :func:`transfer_contents`.
    encoding : Encoding
        From contents to bytes; one of :mod:`commsim.sparse.encodings` or a function of the caller's.

    Returns
    -------
    float64[n_transfers], bytes
        0 for a message with nothing in it, unless the encoding says otherwise.

    Raises
    ------
    InputError
        As :func:`transfer_contents`.
    """
    return encoding(
        transfer_contents(schedule, occupancy, value_bytes=value_bytes, keep=keep, hashed=hashed, bounds=bounds)
    )


def transfer_contents(
    schedule: Schedule,
    occupancy: Occupancy,
    *,
    value_bytes: int = 4,
    keep: ArrayLike | None = None,
    hashed: bool = False,
    bounds: tuple[int, ...] | None = None,
    whole: NDArray[np.bool_] | None = None,
) -> Contents:
    """Apply a schedule to sets of blocks.

    Every address holds a set of blocks of one chunk. All reads of a hop come before its writes; a reduction unites, a
    copy replaces. Sums that cancel to zero keep their block, as they do on the wire.

    Parameters
    ----------
    schedule : Schedule
        Any that runs on equal chunks; ranks start with their own blocks in every chunk of the input.
    occupancy : Occupancy
        Of as many ranks as the schedule has.
    value_bytes : int
        Bytes of one element's value.
    keep : int or int64[n_transfers], optional
        Truncation: after the hop, the chunk that a transfer has written is cut to this many blocks, the largest;
        :data:`commsim.sparse.propagate.UNLIMITED` cuts nothing. Only counts are known here, so limits must not rise
        along a chunk's way, but where what is added is `whole` from then on.
    hashed, bounds : bool, tuple of int
        Chunks are classes of a hash, or ranges between these bounds, in place of equal ranges; see
        :class:`commsim.sparse.partition.Partition`.
    whole : bool[n_transfers], optional
        Messages that carry every block, zero or not, so that the blocks in them need not be known.

    Returns
    -------
    Contents
        One row per transfer, in program order. Where truncation bites, blocks count as whole ones.

    Raises
    ------
    InputError
        If the occupancy is that of another number of ranks, or `keep` is below 1, has another shape, or rises so that
        the size of a message would depend on the values.
    ScheduleError
        If a transfer reads what no transfer has written, or adds two different chunks.
    """
    from .propagate_kernel import propagate_sets

    if occupancy.n_ranks != schedule.n_ranks:
        raise InputError(
            f"{schedule.name} has {schedule.n_ranks} ranks, the occupancy is that of {occupancy.n_ranks} ranks"
        )
    if value_bytes < 1:
        raise InputError(f"a value takes at least 1 byte, got value_bytes={value_bytes}")
    transfers = schedule.expand()
    partition = Partition(occupancy.n_elements, occupancy.block, schedule.n_chunks, hashed, bounds)
    limits = limits_of(keep, len(transfers))
    rows = first_rows(schedule, occupancy, partition)
    blocks, covers, n_last, fault, where = propagate_sets(
        transfers,
        schedule.src_address(transfers) + transfers["src"].astype(np.int64) * schedule.n_addresses,
        schedule.dst_address(transfers) + transfers["dst"].astype(np.int64) * schedule.n_addresses,
        limits,
        rows.sizes,
        rows.words,
        (rows.row_of, rows.chunk_of),
        partition.chunk_of_last(),
    )
    if fault:
        _refuse(schedule, transfers, int(fault), int(where))
    if whole is not None:
        blocks, n_last[:, 0] = np.where(whole, covers, blocks), np.where(whole, n_last[:, 1], n_last[:, 0])
    if (blocks < 0).any():
        _refuse(schedule, transfers, AMBIGUOUS, -1 - int(blocks[np.argmax(blocks < 0)]))
    short = occupancy.n_blocks * occupancy.block - occupancy.n_elements
    return Contents(
        blocks,
        blocks * occupancy.block - short * n_last[:, 0],
        covers,
        covers * occupancy.block - short * n_last[:, 1],
        transfers["op"] == REDUCE,
        value_bytes,
    )


def _refuse(schedule: Schedule, transfers: Transfers, fault: int, where: int) -> None:
    from .propagate_kernel import UNWRITTEN

    t = transfers[where]
    place = f"{schedule.name}: in hop {t['hop']} participant"
    if fault == AMBIGUOUS:
        raise InputError(
            f"{place} {t['dst']} merges truncated chunks and keeps more than they were cut to, so that its size "
            "depends on the values; keep must not rise"
        )
    if fault == UNWRITTEN:
        raise ScheduleError(f"{place} {t['src']} sends chunk {t['src_chunk']}, which no transfer has written")
    raise ScheduleError(f"{place} {t['dst']} adds different chunks to each other, into chunk {t['dst_chunk']}")


MAX_BYTES = 16 * 2**30


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


# No truncation.
UNLIMITED = int(np.iinfo(np.int64).max)


def limits_of(keep: ArrayLike | None, n_transfers: int) -> NDArray[np.int64]:
    """Return one limit for each transfer.

    Parameters
    ----------
    keep : int or int[n_transfers], optional
        At least 1 each; no truncation unless given.
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
