"""Schedules in which no transfer waits for another, not even for its wire."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.schedule import Schedule

MAX_ADDRESSES = 2**27
MAX_TRANSFERS = 2**24
"""Beyond which this takes more memory than the expanded schedule should."""


def unrolled(schedule: Schedule) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None:
    """Source, destination and row of each transfer, if none waits for another."""
    n_addresses = schedule.n_participants * schedule.n_addresses
    if (
        not 0 < schedule.n_transfers <= MAX_TRANSFERS
        or n_addresses > MAX_ADDRESSES
        or any(block.n_fences for block in schedule.blocks)
    ):
        return None

    from .unroll_kernel import unroll

    n_scratch = max(1, schedule.n_scratch)
    n_chunks = np.array([schedule.n_chunks, schedule.n_chunks, n_scratch])
    sizes = schedule.n_ranks, n_chunks, schedule.buffer_offsets, schedule.n_addresses
    writer = np.full(n_addresses, -1, np.int8 if schedule.n_hops < 128 else np.int32)
    src, dst = (np.empty(schedule.n_transfers, np.int32) for _ in range(2))
    rows = []
    for reads in (False, True):
        hop = done = n_rows = 0
        for block in schedule.blocks:
            n = len(block.body) * block.times
            repetitions = block.times, block.first, block.n_hops, block.xor
            out = src[done : done + n], dst[done : done + n]
            if not unroll(block.body, repetitions, block.step, sizes, hop, reads, writer, out):
                return None
            if not reads:
                rows.append(np.tile(np.arange(n_rows, n_rows + len(block.body), dtype=np.int32), block.times))
            hop, done, n_rows = hop + block.n_hops * block.times, done + n, n_rows + len(block.body)
    return src, dst, np.concatenate(rows)


def shares_a_wire(
    schedule: Schedule, src: NDArray[np.int32], dst: NDArray[np.int32], channel: NDArray[np.int64]
) -> bool:
    """Whether two transfers have source, destination and channel in common: then one follows the other."""
    n, n_channels = schedule.n_participants, int(channel.max()) + 1
    if len(src) > n * n * n_channels:
        return True
    wire = (src.astype(np.int64) * n + dst) * n_channels + channel
    if n * n * n_channels > 8 * MAX_ADDRESSES:
        return len(np.unique(wire)) < len(wire)
    seen = np.zeros(n * n * n_channels, np.bool_)
    seen[wire] = True
    return int(np.count_nonzero(seen)) < len(wire)
