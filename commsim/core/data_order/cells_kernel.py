"""Kernels that cut chunks into cells, the intervals that messages read and write whole."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, kernel
from commsim.core.schedule import Transfers


@kernel
def touched(src: NDArray[np.int32], dst: NDArray[np.int32], n_participants: int) -> NDArray[np.int64]:
    """Count how many transfers each participant sends and receives.

    Parameters
    ----------
    src, dst : int32[n]
        Source and destination of each transfer.
    n_participants : int
        Ranks and helpers.

    Returns
    -------
    int64[n_participants]
    """
    count = np.zeros(n_participants, np.int64)
    for i in range(src.shape[0]):
        count[src[i]] += 1
        count[dst[i]] += 1
    return count


@kernel
def _place(bounds: NDArray[np.int32], low: int, high: int, address: int) -> int:
    """Find the first of the rising bounds `low` to `high` that is not below `address`."""
    while low < high:
        middle = (low + high) // 2
        if bounds[middle] < address:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _insert(bounds: NDArray[np.int32], n: int, address: int) -> int:
    """Put `address` among the `n` rising bounds, unless it is there; return how many there are."""
    k = _place(bounds, 0, n, address)
    if k < n and bounds[k] == address:
        return n
    for j in range(n, k, -1):
        bounds[j] = bounds[j - 1]
    bounds[k] = address
    return n + 1


@kernel
def cut_by_insertion(
    transfers: Transfers,
    src_address: NDArray[np.int64],
    dst_address: NDArray[np.int64],
    ends: NDArray[np.int64],
    cells: Records,
) -> int:
    """Give numbers to the cells, and say which each transfer reads and writes.

    Parameters
    ----------
    transfers : TRANSFER[n]
        Transfers in program order.
    src_address, dst_address : int64[n]
        First address that each reads and writes, within the participant; 31 bits.
    ends : int64[n_participants]
        Running sum of :func:`touched`: a participant has at most twice as many bounds as transfers.
    cells : CELLS[n]
        Or another table with these fields. Written: ``read``, ``read_end``, ``write`` and ``write_end``.

    Returns
    -------
    int
        Cells in all.
    """
    n_participants = ends.shape[0]
    bounds = np.empty(2 * ends[n_participants - 1], np.int32)
    n_bounds = np.zeros(n_participants, np.int64)
    for i in range(transfers.shape[0]):
        for end in range(2):
            participant = transfers[i]["src"] if end == 0 else transfers[i]["dst"]
            address = src_address[i] if end == 0 else dst_address[i]
            own_bounds = bounds[2 * ends[participant - 1] if participant else 0 : 2 * ends[participant]]
            n_bounds[participant] = _insert(own_bounds, n_bounds[participant], address)
            n_bounds[participant] = _insert(own_bounds, n_bounds[participant], address + transfers[i]["count"])
    first = np.zeros(n_participants + 1, np.int64)
    for participant in range(n_participants):
        first[participant + 1] = first[participant] + n_bounds[participant]
    for i in range(transfers.shape[0]):
        src, dst, count = transfers[i]["src"], transfers[i]["dst"], transfers[i]["count"]
        reads = bounds[2 * ends[src - 1] if src else 0 : 2 * ends[src]]
        writes = bounds[2 * ends[dst - 1] if dst else 0 : 2 * ends[dst]]
        low = _place(reads, 0, n_bounds[src], src_address[i])
        cells[i]["read"] = first[src] + low
        cells[i]["read_end"] = first[src] + _place(reads, low + 1, n_bounds[src], src_address[i] + count)
        low = _place(writes, 0, n_bounds[dst], dst_address[i])
        cells[i]["write"] = first[dst] + low
        cells[i]["write_end"] = first[dst] + _place(writes, low + 1, n_bounds[dst], dst_address[i] + count)
    return int(first[n_participants])
