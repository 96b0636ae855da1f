"""What waits for what: the data order and the fences of a schedule, over the intervals of chunks that transfers cut."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, ScheduleError
from commsim.core.jit import expected_work
from commsim.core.schedule import Schedule, Transfers

# Where n ranks send to all what came from all, there are n^3: 1,024 ranks would need 20 GB for them.
MAX_DEPENDENCIES = 2**27
# Cells that a transfer reads and writes, numbered through all participants.
CELLS = np.dtype([("read", np.int32), ("read_end", np.int32), ("write", np.int32), ("write_end", np.int32)])
# Transfers and hops up to which the longest chain is sought: a second or two.
MAX_TRANSFERS, MAX_HOPS = 2**21, 2**16
# Transfers of one participant up to which its cells are found by insertion into a list, and not by sorting.
MAX_TOUCHES = 1024
# Steps of the kernels for each transfer, or more.
STEPS = 40


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Predecessors of each transfer, in compressed rows.

    Parameters
    ----------
    first : int64[n_transfers + 1]
        Predecessors of transfer i are ``pred[first[i]:first[i + 1]]``.
    pred : int32[m]
        The predecessor.
    kind : uint8[m]
        READ_AFTER_WRITE, WRITE_AFTER_WRITE or FENCE: it must be complete; WRITE_AFTER_READ: it must have been sent.
    """

    first: NDArray[np.int64]
    pred: NDArray[np.int32]
    kind: NDArray[np.uint8]


def dependencies(schedule: Schedule, transfers: Transfers) -> Dependencies:
    """Find what the expanded `transfers` of `schedule` wait for; first-in first-out order per wire is not listed.

    Raises
    ------
    ScheduleError
        If two transfers of one hop write the same chunk and not both reduce into it.
    InputError
        If there are more than ``MAX_DEPENDENCIES``.
    """
    from .dependencies_kernel import FENCE, find_dependencies, find_fences, merge_rows

    fenced = any(block.n_fences for block in schedule.blocks)
    if fenced and fence_waits(schedule) > MAX_DEPENDENCIES:
        raise _too_many(schedule)
    transfers = _read_only(transfers)
    cells = np.empty(len(transfers), CELLS)
    n_cells = cut_cells(schedule, transfers, cells)
    with expected_work(STEPS * len(transfers), first=True):
        first, pred, kind, conflict = find_dependencies(transfers, cells, n_cells, MAX_DEPENDENCIES)
    if len(pred) > MAX_DEPENDENCIES:
        raise _too_many(schedule)
    if conflict >= 0:
        t = transfers[conflict]
        raise ScheduleError(
            f"{schedule.name}: hop {t['hop']} writes chunk {t['dst_chunk']} of participant {t['dst']} twice, "
            "and not only by reducing"
        )
    if fenced:
        with expected_work(STEPS * len(transfers), first=True):
            fence_first, fence_pred = find_fences(transfers, schedule.n_participants)
            return Dependencies(*merge_rows((first, pred, kind), fence_first, fence_pred, FENCE))
    return Dependencies(first, pred, kind)


def longest_chain(schedule: Schedule) -> int | None:
    """Return the steps of a schedule: its longest chain of transfers, each of which waits for the one before.

    Returns
    -------
    int or None
        None where there are more than ``MAX_TRANSFERS`` transfers, or ``MAX_HOPS`` hops.
    """
    if schedule.n_transfers > MAX_TRANSFERS or schedule.n_hops > MAX_HOPS:
        return None
    transfers = schedule.expand()
    waits = dependencies(schedule, transfers)
    depth = np.zeros(len(transfers), np.int64)
    starts = np.flatnonzero(np.diff(transfers["hop"], prepend=-1, append=-1)).tolist()
    for begin, end in itertools.pairwise(starts):  # transfers of a hop do not wait for each other
        first = waits.first[begin : end + 1]
        before = np.append(depth[waits.pred[first[0] : first[-1]]], 0)
        most = np.maximum.reduceat(before, first[:-1] - first[0])
        depth[begin:end] = 1 + np.where(np.diff(first) > 0, most, 0)
    return int(depth.max(initial=0))


def _too_many(schedule: Schedule) -> InputError:
    return InputError(
        f"{schedule.name}: its {schedule.n_transfers} transfers wait for each other in more than {MAX_DEPENDENCIES} "
        "ways, which is too many to lay out; take fewer ranks"
    )


def fence_waits(schedule: Schedule) -> float:
    """Return how often a transfer waits for another at a fence, about: for all of the stage before at both its ends.

    Parameters
    ----------
    schedule : Schedule
        Any; it is not expanded. In each stage all participants are taken to have as many transfers.
    """
    stages = [0]
    for block in schedule.blocks:
        sizes = np.bincount(block.body["stage"], minlength=block.n_fences + 1).tolist()
        for _ in range(block.times if block.n_fences else 1):
            stages[-1] += sizes[0] * (1 if block.n_fences else block.times)
            stages += sizes[1:]
    busy = [n for n in stages if n]
    return 4 / schedule.n_participants * sum(n * before for before, n in itertools.pairwise(busy))


def connections(
    schedule: Schedule, transfers: Transfers | Mapping[str, NDArray[np.integer[Any]]]
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Give numbers to the connections: what shares source, destination and channel is one, and keeps its order.

    Parameters
    ----------
    schedule : Schedule
        Schedule of the transfers.
    transfers : TRANSFER[n], or mapping of str to int[n]
        Transfers, or their source, destination, channel and hop.

    Returns
    -------
    wire : int32[n_transfers]
        Wire of each transfer, numbered in order of (hop of its first transfer, source, destination, channel): wires
        that begin at the same time begin in the order of the schedule's steps, which may shift the receivers so that
        not all ranks send to the same one. The order within a step is no input.
    lead : intp[n_wires]
        First transfer of each wire.
    """
    channel = transfers["channel"].astype(np.int64)
    n_channels = int(channel.max(initial=0)) + 1
    n_keys = schedule.n_participants**2 * n_channels
    key = (transfers["src"] * np.int64(schedule.n_participants) + transfers["dst"]) * n_channels + channel
    if n_keys > 4 * len(key) + 2**20:  # a table of all keys would be larger than the transfers themselves
        _, lead, rank = np.unique(key, return_index=True, return_inverse=True)
        return _by_hop(transfers, rank.astype(np.int32), lead)
    number = np.zeros(n_keys, np.int32)
    number[key] = 1
    np.cumsum(number, out=number)
    wire = number[key]
    wire -= 1
    lead = np.empty(number[-1] if n_keys else 0, np.intp)
    lead[wire[::-1]] = np.arange(len(key) - 1, -1, -1)  # reversed, so that the first transfer is written last
    return _by_hop(transfers, wire, lead)


def _by_hop(
    transfers: Transfers | Mapping[str, NDArray[np.integer[Any]]], wire: NDArray[np.int32], lead: NDArray[np.intp]
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Renumber wires in order of the hops of their first transfers; those of one hop keep their order."""
    hop = transfers["hop"][lead]
    if (hop[1:] >= hop[:-1]).all():
        return wire, lead
    order = np.argsort(hop, kind="stable")
    number = np.empty(len(lead), np.int32)
    number[order] = np.arange(len(lead), dtype=np.int32)
    return number[wire], lead[order]


def cut_cells(schedule: Schedule, transfers: Transfers, cells: NDArray[Any]) -> int:
    """Write the cells that each transfer reads and writes, and return how many there are.

    A cell is a chunk, where that is not many times more than transfers touch; else chunks between two ends of messages.
    Cells have the order of their chunks.

    Parameters
    ----------
    schedule : Schedule
        Schedule of the transfers.
    transfers : TRANSFER[n]
        All of them, in program order.
    cells : CELLS[n]
        Or another table with these fields; written.

    Returns
    -------
    int
    """
    transfers = _read_only(transfers)
    n_addresses, count = schedule.n_addresses, transfers["count"].astype(np.int64)
    read = transfers["src"] * np.int64(n_addresses) + schedule.src_address(transfers)
    write = transfers["dst"] * np.int64(n_addresses) + schedule.dst_address(transfers)
    n_cells = schedule.n_participants * n_addresses
    if n_cells <= 4 * len(transfers) + 2**16 and count.sum() <= 4 * len(transfers):
        cells["read"], cells["read_end"], cells["write"], cells["write_end"] = read, read + count, write, write + count
        return n_cells
    from .cells_kernel import cut_by_insertion, touched

    ends = np.cumsum(touched(transfers["src"], transfers["dst"], schedule.n_participants))
    if np.diff(ends, prepend=0).max() <= MAX_TOUCHES and n_addresses < 2**31:
        addresses = schedule.src_address(transfers), schedule.dst_address(transfers)
        return int(cut_by_insertion(transfers, *addresses, ends, cells))
    bounds = np.sort(np.concatenate((read, read + count, write, write + count)))
    bounds = bounds[np.diff(bounds, prepend=-1) > 0]
    for name, address in (("read", read), ("read_end", read + count), ("write", write), ("write_end", write + count)):
        cells[name] = np.searchsorted(bounds, address)
    return len(bounds)


def _read_only(transfers: Transfers) -> Transfers:
    """Return the same transfers as an array that cannot be written: kernels are compiled for each kind of array."""
    view = transfers.view()
    view.flags.writeable = False
    return view
