"""The pattern of a schedule: its transfers and what they wait for, once where a block repeats it for other chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.data_order.dependencies import connections, dependencies
from commsim.core.schedule import Block, Schedule, Transfers
from commsim.engine.job_connections import JobConnections
from commsim.engine.ways.costs import MAX_PATTERN

Waits = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]


@dataclass(slots=True, eq=False)
class Pattern:
    """Transfers of one repetition; different repetitions meet on connections only, where they keep their order.

    Parameters
    ----------
    transfers : TRANSFER[n]
        Transfers in program order.
    times : int
        How often they are repeated.
    connection, place : int32[n]
        Wire of each transfer, and its place among those of the connection.
    lead : intp[n_connections]
        First transfer of each connection.
    queue : int32[n]
        Transfers by connection, in order.
    waits : (int64[n + 1], int32[m], bool[m])
        Rows of the transfers of a repetition that each waits for, and whether until they are complete; found last.
    """

    transfers: Transfers
    times: int
    connection: NDArray[np.int32]
    place: NDArray[np.int32]
    lead: NDArray[np.intp]
    queue: NDArray[np.int32]
    waits: Waits | None = None

    def find_waits(self, schedule: Schedule, shared: JobConnections | None) -> None:
        """Fill `waits`; `shared` is of all transfers, if these are the pattern."""
        from commsim.core.data_order.dependencies_kernel import WRITE_AFTER_READ

        waits = dependencies(schedule, self.transfers) if shared is None else shared.waits
        self.waits = waits.first, waits.pred, waits.kind != WRITE_AFTER_READ

    @property
    def n_on_connection(self) -> NDArray[np.int64]:
        """Transfers of each connection in one repetition, int64[n_connections]."""
        return np.bincount(self.connection, minlength=len(self.lead))


def find_pattern(schedule: Schedule, shared: JobConnections | None = None) -> Pattern | None:
    """Find the pattern of a schedule, whose transfers may be laid out already.

    Returns
    -------
    Pattern or None
        One block's body where repetitions touch different chunks, else all transfers; None where these are too many.
    """
    if len(schedule.blocks) == 1 and _repetitions_are_apart(schedule, schedule.blocks[0]):
        block = schedule.blocks[0]
        transfers = schedule.repetitions(block, [0])
        return _pattern(transfers, block.times, *connections(schedule, transfers))
    if schedule.n_transfers > MAX_PATTERN:
        return None
    if shared is not None:
        return _pattern(shared.transfers, 1, *shared.numbered)
    transfers = schedule.expand()
    return _pattern(transfers, 1, *connections(schedule, transfers))


def _repetitions_are_apart(schedule: Schedule, block: Block) -> bool:
    """Whether repetitions differ in their chunks only, and no two of them have a chunk in common."""
    if block.times == 1 or block.n_fences or block.xor or block.orders is not None or any(block.step[:2]):
        return False
    n_chunks = np.array([schedule.n_chunks, schedule.n_chunks, max(1, schedule.n_scratch)])
    repetition = np.arange(block.times)[:, np.newaxis]
    touched = []
    for end, step in (("src", block.step[2]), ("dst", block.step[3])):
        buffer, count = block.body[f"{end}_buffer"].astype(np.int64), block.body["count"].astype(np.int64)
        address = schedule.buffer_offsets[buffer] + block.body[f"{end}_chunk"]
        longest = int(count.max())
        _, rows = np.unique(address * (longest + 1) + count, return_index=True)
        if len(rows) * block.times * longest > MAX_PATTERN:
            return False
        for row in rows.tolist():
            b = buffer[row]
            chunk = (block.body[f"{end}_chunk"][row] + (repetition + block.first) * step) % n_chunks[b]
            at = schedule.buffer_offsets[b] + chunk + np.arange(count[row])
            touched.append((at * block.times + repetition).ravel())
    pairs = np.unique(np.concatenate(touched))  # of addresses and repetitions
    return len(np.unique(pairs // block.times)) == len(pairs)


def _pattern(transfers: Transfers, times: int, connection: NDArray[np.int32], lead: NDArray[np.intp]) -> Pattern:
    from commsim.core.data_order.dependencies_kernel import counting_order

    queue = counting_order(connection, len(lead))
    place = np.empty(len(queue), np.int32)
    n = np.bincount(connection, minlength=len(lead))
    place[queue] = np.arange(len(queue)) - np.repeat(np.cumsum(n) - n, n)
    return Pattern(transfers, times, connection, place, lead, queue)
