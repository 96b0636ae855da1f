"""Bytes of every message of a schedule, by executing it on sets of blocks in place of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError, ScheduleError
from commsim.core.schedule import REDUCE, Schedule, Transfers

from .block_sets import first_rows, limits_of
from .encodings import Contents
from .long_occupancy import AnyOccupancy, pieces
from .partition import Partition

AMBIGUOUS = -1


def transfer_contents(
    schedule: Schedule,
    occupancy: AnyOccupancy,
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
    occupancy : Occupancy or LongOccupancy
        Occupancy of as many ranks as the schedule has.
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
    from .propagate_kernel import cut_messages, propagate_sets

    if occupancy.n_ranks != schedule.n_ranks:
        raise InputError(
            f"{schedule.name} has {schedule.n_ranks} ranks, the occupancy is that of {occupancy.n_ranks} ranks"
        )
    if value_bytes < 1:
        raise InputError(f"a value takes at least 1 byte, got value_bytes={value_bytes}")
    transfers = schedule.expand()
    partition = Partition(occupancy.n_elements, occupancy.block, schedule.n_chunks, hashed, bounds)
    limits = limits_of(keep, len(transfers))
    read, write = (
        address(transfers) + transfers[end].astype(np.int64) * schedule.n_addresses
        for address, end in ((schedule.src_address, "src"), (schedule.dst_address, "dst"))
    )
    n_sets = int(transfers["count"].sum()) if keep is not None else 0
    seen, is_held = np.zeros((n_sets, 3), np.int64), np.zeros(0, np.bool_)
    (blocks, covers), n_last = np.zeros((2, len(transfers)), np.int64), np.zeros((len(transfers), 2), np.int64)
    for first, stop, words in pieces(occupancy):
        rows = first_rows(schedule, partition, words, first, stop)
        is_held = rows.row_of >= 0
        last = partition.chunk_of_last() if stop == occupancy.n_blocks else -1
        contents = propagate_sets(
            transfers, read, write, rows.sizes, rows.words, (rows.row_of, rows.chunk_of), last, seen
        )
        if fault := contents[3]:
            _refuse(schedule, transfers, int(fault), int(contents[4]))
        blocks, covers, n_last = blocks + contents[0], covers + contents[1], n_last + contents[2]
        del rows  # before those of the next piece are made
    if keep is not None:
        blocks, n_last[:, 0] = cut_messages(transfers, read, write, limits, seen, is_held)
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
