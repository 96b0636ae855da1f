"""Cells: runs of chunks that no transfer cuts, so that what handles chunks costs what transfers are, not chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .schedule import Schedule, Transfers

CELLS = np.dtype([("read", np.int32), ("read_end", np.int32), ("write", np.int32), ("write_end", np.int32)])
"""Cells that a transfer reads and writes, numbered through all participants."""

MAX_TOUCHES = 1024
"""Transfers of one participant up to which its cells are found by insertion into a list, and not by sorting."""


def cut_cells(schedule: Schedule, transfers: Transfers, cells: NDArray[Any]) -> int:
    """Say which cells each transfer reads and writes, and how many there are.

    A cell is a chunk, where that is not many times more than transfers touch; else chunks between two ends of messages.
    Cells have the order of their chunks.

    Parameters
    ----------
    schedule : Schedule
        Whose.
    transfers : TRANSFER[n]
        All of them, in program order.
    cells : CELLS[n]
        Or another table with these fields; written.

    Returns
    -------
    int
    """
    n_addresses, count = schedule.n_addresses, transfers["count"].astype(np.int64)
    read = transfers["src"] * np.int64(n_addresses) + schedule.src_address(transfers)
    write = transfers["dst"] * np.int64(n_addresses) + schedule.dst_address(transfers)
    n_cells = schedule.n_participants * n_addresses
    if n_cells <= 4 * len(transfers) + 2**16 and count.sum() <= 4 * len(transfers):
        cells["read"], cells["read_end"], cells["write"], cells["write_end"] = read, read + count, write, write + count
        return n_cells
    from .chunk_intervals_kernel import cut_by_insertion, touched

    ends = np.cumsum(touched(transfers["src"], transfers["dst"], schedule.n_participants))
    if np.diff(ends, prepend=0).max() <= MAX_TOUCHES and n_addresses < 2**31:
        addresses = schedule.src_address(transfers), schedule.dst_address(transfers)
        return int(cut_by_insertion(transfers, *addresses, ends, cells))
    bounds = np.sort(np.concatenate((read, read + count, write, write + count)))
    bounds = bounds[np.diff(bounds, prepend=-1) > 0]
    for name, address in (("read", read), ("read_end", read + count), ("write", write), ("write_end", write + count)):
        cells[name] = np.searchsorted(bounds, address)
    return len(bounds)
