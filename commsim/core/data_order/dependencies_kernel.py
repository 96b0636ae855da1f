"""Kernels that turn program order into what waits for what."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, kernel, njit_norefcount
from commsim.core.schedule import REDUCE, Transfers

READ_AFTER_WRITE, WRITE_AFTER_WRITE, WRITE_AFTER_READ, FENCE = range(4)
# Room for predecessors per transfer that is made at once, where so many may come.
MOST_AT_ONCE = 64

Numbers = NDArray[np.int32]

Integers = TypeVar("Integers", NDArray[np.int32], NDArray[np.uint8])


@kernel
def _doubled(array: Integers) -> Integers:
    """Return a copy with twice as many places."""
    larger = np.empty(2 * array.shape[0] + 16, array.dtype)
    for k in range(array.shape[0]):
        larger[k] = array[k]
    return larger


class Touches(NamedTuple):
    """Who wrote and read each cell: linked lists of its last hop's writers, and of its readers since then."""

    write_hop: Numbers  # [n_cells], the hop that wrote it last
    last_writer: Numbers  # [n_cells], node of the first writer in the list, -1 without,
    n_writers: Numbers  # [n_cells], and how long the list is
    last_reader: Numbers  # [n_cells]
    n_readers: Numbers  # [n_cells]
    transfer: Numbers  # [n_nodes]
    following: Numbers  # [n_nodes], node
    seen: NDArray[np.int64]  # [n], 2 * successor + (1 when the edge waits for completion)
    place: NDArray[np.int64]  # [4], the next transfer, predecessors found, nodes, and room that the next one needs


@kernel
def find_dependencies(
    transfers: Transfers, cells: Records, n_cells: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8], int]:
    """Find the data order of transfers in program order; the wire order is not part of it.

    Parameters
    ----------
    transfers : TRANSFER[n]
        Transfers in program order.
    cells : CELLS[n]
        What each reads and writes; chunks would do, and where messages are long, cells are far fewer.
    n_cells : int
        Cells of all participants.
    most : int
        Largest number of predecessors in all; the rest is not looked at.

    Returns
    -------
    first : int64[n + 1]
        Predecessors of transfer i are ``pred[first[i]:first[i + 1]]``.
    pred : int32[m], kind : uint8[m]
        The predecessor, and why; m is above `most` where they are not complete.
    conflict : int
        A transfer that overwrites what another of its hop writes, or -1.
    """
    n = transfers.shape[0]
    n_nodes = 0
    for of in cells:
        n_nodes += of["read_end"] - of["read"] + of["write_end"] - of["write"]
    t = Touches(
        np.full(n_cells, -1, np.int32), np.full(n_cells, -1, np.int32), np.zeros(n_cells, np.int32),
        np.full(n_cells, -1, np.int32), np.zeros(n_cells, np.int32), np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.int32), np.full(n, -1, np.int64), np.zeros(4, np.int64),
    )  # fmt: skip
    first, pred, kind = np.zeros(n + 1, np.int64), np.empty(2 * n, np.int32), np.empty(2 * n, np.uint8)
    conflict = -1
    begin = 0
    while begin < n and t.place[1] <= most:
        end = hop_end(transfers, begin)
        while not look_back(cells, t, first, pred, kind, end, most):
            # as much for each that is left, within limits: memory that is not written is none
            room = max(2 * len(pred), t.place[1] + t.place[3], min(t.place[3] * (n - t.place[0]), MOST_AT_ONCE * n))
            larger, larger_kind = np.empty(room, np.int32), np.empty(room, np.uint8)
            copy_to(pred, larger, t.place[1])
            copy_to(kind, larger_kind, t.place[1])
            pred, kind = larger, larger_kind
        conflict = max(conflict, touch(transfers, cells, t, begin, end))
        begin = end
    m = t.place[1]
    first[n] = m
    return first, pred[:m].copy(), kind[:m].copy(), conflict


@njit_norefcount
def hop_end(transfers: Transfers, begin: int) -> int:
    """Return where the hop ends that begins with transfer `begin`."""
    end = begin
    while end < len(transfers) and transfers[end]["hop"] == transfers[begin]["hop"]:
        end += 1
    return end


@njit_norefcount
def copy_to(array: Integers, larger: Integers, n: int) -> None:
    """Copy the first `n` items."""
    for k in range(n):
        larger[k] = array[k]


@njit_norefcount
def look_back(
    cells: Records,
    t: Touches,
    first: NDArray[np.int64],
    pred: NDArray[np.int32],
    kind: NDArray[np.uint8],
    end: int,
    most: int,
) -> bool:
    """Find the predecessors of the transfers of a hop up to `end`; stop, and return False, where there is no room."""
    for i in range(t.place[0], end):
        t.place[0] = i
        first[i] = m = t.place[1]
        if m > most:
            break
        of = cells[i]
        needs = 0
        for k in range(of["read"], of["read_end"]):
            needs += t.n_writers[k]
        for k in range(of["write"], of["write_end"]):
            needs += t.n_writers[k] + t.n_readers[k]
        if m + needs > len(pred):
            t.place[3] = needs
            return False
        for k in range(of["read"], of["read_end"]):
            m = _list(t, t.last_writer[k], 2 * i + 1, READ_AFTER_WRITE, m, pred, kind)
        for k in range(of["write"], of["write_end"]):
            m = _list(t, t.last_writer[k], 2 * i + 1, WRITE_AFTER_WRITE, m, pred, kind)
        for k in range(of["write"], of["write_end"]):
            m = _list(t, t.last_reader[k], 2 * i, WRITE_AFTER_READ, m, pred, kind)
        t.place[1] = m
    t.place[0] = end
    return True


@njit_norefcount
def _list(t: Touches, node: int, mark: int, why: int, m: int, pred: NDArray[np.int32], kind: NDArray[np.uint8]) -> int:
    """Append the transfers of a list that are not yet predecessors, or not of this strength; return how many are."""
    while node >= 0:
        j = t.transfer[node]
        if t.seen[j] < mark:
            t.seen[j] = mark
            pred[m], kind[m] = j, why
            m += 1
        node = t.following[node]
    return m


@njit_norefcount
def touch(transfers: Transfers, cells: Records, t: Touches, begin: int, end: int) -> int:
    """List what the transfers of a hop write, then what they read; return one that overwrites another's, or -1."""
    conflict, node = -1, t.place[2]
    for i in range(begin, end):
        hop, op = transfers[i]["hop"], transfers[i]["op"]
        for k in range(cells[i]["write"], cells[i]["write_end"]):
            if t.write_hop[k] != hop:
                t.write_hop[k] = hop
                t.last_writer[k] = t.last_reader[k] = -1
                t.n_writers[k] = t.n_readers[k] = 0
            elif op != REDUCE or transfers[t.transfer[t.last_writer[k]]]["op"] != REDUCE:
                conflict = i
            t.transfer[node], t.following[node] = i, t.last_writer[k]
            t.last_writer[k] = node
            t.n_writers[k] += 1
            node += 1
    for i in range(begin, end):
        for k in range(cells[i]["read"], cells[i]["read_end"]):
            t.transfer[node], t.following[node] = i, t.last_reader[k]
            t.last_reader[k] = node
            t.n_readers[k] += 1
            node += 1
    t.place[2] = node
    return conflict


@kernel
def find_fences(transfers: Transfers, n_participants: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find what each transfer waits for because of fences: all of the previous stage of its two ends.

    Parameters
    ----------
    transfers : TRANSFER[n]
        Transfers in program order.
    n_participants : int
        Ranks and helpers.

    Returns
    -------
    first : int64[n + 1]
        Predecessors of transfer i are ``pred[first[i]:first[i + 1]]``.
    pred : int32[m]
        The predecessor.
    """
    n = transfers.shape[0]
    stage = np.zeros(n_participants, np.int32)
    current = np.full(n_participants, -1, np.int32)  # list of a participant's transfers in its stage
    previous = np.full(n_participants, -1, np.int32)  # and in the last stage before that had any
    node_next = np.empty((n, 2), np.int32)  # a transfer is a node of its source's list and of its destination's
    first = np.empty(n + 1, np.int64)
    pred = np.empty(2 * n + 16, np.int32)
    m = 0
    for i in range(n):
        t = transfers[i]
        first[i] = m
        for end in range(2):
            participant = t["src"] if end == 0 else t["dst"]
            if stage[participant] != t["stage"]:
                stage[participant] = t["stage"]
                if current[participant] >= 0:
                    previous[participant] = current[participant]
                    current[participant] = -1
        for end in range(2):
            participant = t["src"] if end == 0 else t["dst"]
            node = previous[participant]
            while node >= 0:
                if m >= pred.shape[0]:
                    pred = _doubled(pred)
                pred[m] = node // 2
                m += 1
                node = node_next[node // 2, node % 2]
        for end in range(2 if t["src"] != t["dst"] else 1):
            participant = t["src"] if end == 0 else t["dst"]
            node_next[i, end] = current[participant]
            current[participant] = 2 * i + end
    first[n] = m
    return first, pred[:m].copy()


@kernel
def merge_rows(
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]],
    first: NDArray[np.int64],
    pred: NDArray[np.int32],
    kind: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]:
    """Append to the predecessors of each transfer further ones, all of one kind.

    Parameters
    ----------
    rows : (int64[n + 1], int32[m], uint8[m])
        Rows of predecessors, and their kinds.
    first : int64[n + 1], pred : int32[k]
        Rows of the further ones.
    kind : int
        Their kind.

    Returns
    -------
    int64[n + 1], int32[m + k], uint8[m + k]
    """
    before, preds, kinds = rows
    n = first.shape[0] - 1
    merged = np.empty(n + 1, np.int64)
    all_preds = np.empty(preds.shape[0] + pred.shape[0], np.int32)
    all_kinds = np.empty(all_preds.shape[0], np.uint8)
    m = 0
    for i in range(n):
        merged[i] = m
        for k in range(before[i], before[i + 1]):
            all_preds[m], all_kinds[m] = preds[k], kinds[k]
            m += 1
        for k in range(first[i], first[i + 1]):
            all_preds[m], all_kinds[m] = pred[k], kind
            m += 1
    merged[n] = m
    return merged, all_preds, all_kinds


@kernel
def successor_rows(
    first: NDArray[np.int64], pred: NDArray[np.int32], complete: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Turn rows of predecessors into rows of successors.

    Parameters
    ----------
    first : int64[n + 1], pred : int32[m]
        Predecessors of transfer i are ``pred[first[i]:first[i + 1]]``.
    complete : bool[m]
        Whether the predecessor must be complete, and not only sent.

    Returns
    -------
    first : int64[n + 1], code : int32[m]
        Rows of ``2 * successor + complete``.
    """
    n = first.shape[0] - 1
    begin = np.zeros(n + 1, np.int64)
    for p in pred:
        begin[p + 1] += 1
    for i in range(n):
        begin[i + 1] += begin[i]
    place = begin[:n].copy()
    code = np.empty(pred.shape[0], np.int32)
    for i in range(n):
        for k in range(first[i], first[i + 1]):
            code[place[pred[k]]] = 2 * i + (1 if complete[k] else 0)
            place[pred[k]] += 1
    return begin, code


@kernel
def counting_order(key: NDArray[np.int32], n_keys: int) -> NDArray[np.int32]:
    """Return the stable order that sorts `key`, whose values are 0 .. n_keys-1, in linear time."""
    place = np.zeros(n_keys + 1, np.int64)
    for k in key:
        place[k + 1] += 1
    for k in range(n_keys):
        place[k + 1] += place[k]
    order = np.empty(key.shape[0], np.int32)
    for i in range(key.shape[0]):
        order[place[key[i]]] = i
        place[key[i]] += 1
    return order
