"""Memory for a run of the flow kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .flow_state import N_COUNTERS, RESOURCE_ROW, USER_ROW, Tables

CACHE_LINE = 64


def share_table(capacity: NDArray[np.float64], n_entries: NDArray[np.int64]) -> NDArray[Any]:
    """Lay out the resources.

    Parameters
    ----------
    capacity : float64[n_resources], bytes/s
        Infinite where a resource is never in the way.
    n_entries : int64[n_resources]
        How many slots may use each.
    """
    resource = np.zeros(len(capacity), RESOURCE_ROW)
    capacity = np.minimum(capacity, 1e300)
    # sums of floats would depend on the order of the users, and that on the order of the jobs
    resource["unit"] = np.ldexp(1.0, np.frexp(capacity)[1] - 61)
    resource["per_unit"] = 1 / resource["unit"]
    resource["left"] = (capacity * resource["per_unit"]).astype(np.int64)
    resource["first"][1:] = np.cumsum(n_entries)[:-1]
    resource["full"] = np.inf
    return resource


def tables(
    transfers: tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.float64], NDArray[np.int32]],
    shared: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]],
    queue: NDArray[np.int32],
    successors: tuple[NDArray[np.int64], NDArray[np.int32]],
    variants: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]] | None = None,
) -> Tables:
    """Allocate what a run needs.

    Parameters
    ----------
    transfers : (int32[n], uint8[n], float64[n], int32[n])
        Framing, operation, bytes, and how many it waits for, of each; the last is copied.
    shared : (wire, slot, entry, resource)
        Tables at the beginning, copied.
    queue, successors, variants
        As in :class:`Tables`.
    """
    wire, slot, entry, resource = (_copied(table) for table in shared)
    wire_of, op, n_bytes, waiting = transfers
    start, sent, done = (np.zeros(len(waiting)) for _ in range(3))
    n_wires, n_slots, n_entries, n_resources = len(wire), len(slot), len(entry), len(resource)
    most = int(np.diff(np.append(resource["first"], n_entries)).max(initial=0))
    i, f = np.int32, np.float64
    none = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, i)
    return Tables(
        wire_of, op, n_bytes, waiting.copy(), start, sent, done, wire, slot, entry, resource, queue, *successors,
        np.empty(n_entries, USER_ROW),
        np.empty(n_slots, f), np.empty(n_slots, f), np.full(n_slots, -1, i), np.empty(n_slots, i),
        np.empty(n_resources, f), np.full(n_resources, -1, i), np.empty(n_resources, i),
        np.empty(2 * n_wires, f), np.empty(2 * n_wires, np.int64),
        np.empty(3 * n_wires + 1, i), np.zeros(n_wires, np.bool_),
        np.empty(n_slots, i), np.empty(n_resources, i), np.empty(n_slots, i), np.empty(n_resources, i),
        np.empty(most, i), np.empty(n_slots, i), np.zeros(N_COUNTERS, np.int64),
        *(none if variants is None else variants), np.zeros(max(len((variants or none)[1]) - 1, 0), np.int64),
        np.array([variants is not None]),
    )  # fmt: skip


def _copied(table: NDArray[Any]) -> NDArray[Any]:
    """Copy a table to where its rows begin with lines of the cache, if they are as large as these."""
    room = np.empty(table.nbytes + CACHE_LINE, np.uint8)
    begin = -room.ctypes.data % CACHE_LINE
    copy = room[begin : begin + table.nbytes].view(table.dtype)
    copy[:] = table
    return copy
