"""Transfers of a schedule that wait for nothing, whatever routes they take: what ways for them begin with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.schedule import REDUCE, Schedule
from commsim.engine.flow_job import FlowJob

MAX_ADDRESSES = 2**27
# Beyond which this takes more memory than the expanded schedule should.
MAX_TRANSFERS = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class BegunTogether:
    """Transfers that wait for nothing, whatever routes they take.

    Parameters
    ----------
    src, dst, row : int32[n_transfers]
        Participants, and the row of the schedule's blocks put together that the transfer repeats.
    count : int64[n_rows]
        Chunks of each row's messages.
    crosses : int32[n_flows]
        Transfers that use links, by source, so that those which share a link are near to each other.
    nodes : (int32[n_flows], int32[n_flows])
        Sources and destinations of these in the network.
    channel : int32[n_flows]
        Channel of each of these.
    """

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    row: NDArray[np.int32]
    count: NDArray[np.int64]
    crosses: NDArray[np.int32]
    nodes: tuple[NDArray[np.int32], NDArray[np.int32]]
    channel: NDArray[np.int32]


def begin_together(network: Network, job: FlowJob) -> BegunTogether | None:
    """Return the transfers of a schedule that all start together; None where they do not, or have costs of their own.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : FlowJob
        What runs.
    """
    schedule = job.schedule
    job.placement.check(network, schedule.n_ranks, schedule.n_helpers)
    found = unrolled(schedule)
    if found is None:
        return None
    from commsim.core.data_order.dependencies_kernel import counting_order

    src, dst, row = found
    body = np.concatenate([block.body for block in schedule.blocks])
    channel = body["channel"].astype(np.int32)
    channel = channel[row] if (channel != channel[0]).any() else np.broadcast_to(channel[0], len(row))
    nodes = job.placement.nodes.astype(np.int32)
    where = nodes[src], nodes[dst]
    reduces = (body["op"] == REDUCE).any() and (network.gamma[nodes] > 0).any()
    if reduces or (network.recv_overhead[nodes] > 0).any() or shares_a_connection(schedule, src, dst, channel):
        return None
    crosses = np.flatnonzero(where[0] != where[1]).astype(np.int32)
    crosses = crosses[counting_order(where[0][crosses], network.n_nodes)]
    apart = where[0][crosses], where[1][crosses]
    del where  # of millions of messages, as all columns here
    channel = channel[crosses] if channel.strides[0] else channel[: len(crosses)]
    return BegunTogether(src, dst, row, body["count"].astype(np.int64), crosses, apart, channel)


def unrolled(schedule: Schedule) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None:
    """Source, destination and row of each transfer, if none waits for another; not found along orders of chunks."""
    n_addresses = schedule.n_participants * schedule.n_addresses
    if (
        not 0 < schedule.n_transfers <= MAX_TRANSFERS
        or n_addresses > MAX_ADDRESSES
        or any(block.n_fences or block.orders is not None for block in schedule.blocks)
    ):
        return None

    from .unroll_kernel import unroll

    n_scratch = max(1, schedule.n_scratch)
    n_chunks = np.array([schedule.n_chunks, schedule.n_chunks, n_scratch])
    sizes = schedule.n_ranks, n_chunks, schedule.buffer_offsets.copy(), schedule.n_addresses
    kind: type[np.signedinteger] = np.int8 if schedule.n_hops < 128 else np.int32
    writer: NDArray[np.signedinteger] = np.full(n_addresses, -1, kind)
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
    return src, dst, rows[0] if len(rows) == 1 else np.concatenate(rows)


def shares_a_connection(
    schedule: Schedule, src: NDArray[np.int32], dst: NDArray[np.int32], channel: NDArray[np.int32]
) -> bool:
    """Whether two transfers have source, destination and channel in common: then one follows the other."""
    n, n_channels = schedule.n_participants, int(channel.max()) + 1
    if len(src) > n * n * n_channels:
        return True
    connection = src.astype(np.int64)
    for size, part in ((n, dst), (n_channels, channel)):
        connection *= size
        connection += part
    if n * n * n_channels > 8 * MAX_ADDRESSES:
        return len(np.unique(connection)) < len(connection)
    seen = np.zeros(n * n * n_channels, np.bool_)
    seen[connection] = True
    return int(np.count_nonzero(seen)) < len(connection)
