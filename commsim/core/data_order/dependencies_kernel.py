"""Kernels that turn program order into what waits for what."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, kernel
from commsim.core.schedule import REDUCE, Transfers

READ_AFTER_WRITE, WRITE_AFTER_WRITE, WRITE_AFTER_READ, FENCE = range(4)

Integers = TypeVar("Integers", NDArray[np.int32], NDArray[np.uint8])


@kernel
def _doubled(array: Integers) -> Integers:
    """Return a copy with twice as many places."""
    larger = np.empty(2 * array.shape[0] + 16, array.dtype)
    for k in range(array.shape[0]):
        larger[k] = array[k]
    return larger


@kernel
def find_dependencies(
    transfers: Transfers, cells: Records, n_cells: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8], int]:
    """Find the data order of transfers in program order; the wire order is not part of it.

    Every cell keeps two linked lists: the writers of the last hop that wrote it, and its readers since then.

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
    last_writer = np.full(n_cells, -1, np.int32)  # node of the first writer in the list
    last_reader = np.full(n_cells, -1, np.int32)
    write_hop = np.full(n_cells, -1, np.int32)
    node_transfer = np.empty(2 * n, np.int32)
    node_next = np.empty(2 * n, np.int32)
    n_nodes = 0
    seen = np.full(n, -1, np.int64)  # 2 * successor + (1 when the edge waits for completion)
    first = np.empty(n + 1, np.int64)
    pred = np.empty(2 * n, np.int32)
    kind = np.empty(2 * n, np.uint8)
    m = 0
    conflict = -1
    begin = 0
    while begin < n and m <= most:
        end = begin
        while end < n and transfers[end]["hop"] == transfers[begin]["hop"]:
            end += 1
        for i in range(begin, end):
            first[i] = m
            if m > most:
                break
            of = cells[i]
            for k in range(of["read"], of["read_end"]):
                node = last_writer[k]
                while node >= 0:
                    if seen[node_transfer[node]] != 2 * i + 1:
                        seen[node_transfer[node]] = 2 * i + 1
                        if m >= pred.shape[0]:
                            pred, kind = _doubled(pred), _doubled(kind)
                        pred[m], kind[m] = node_transfer[node], READ_AFTER_WRITE
                        m += 1
                    node = node_next[node]
            for k in range(of["write"], of["write_end"]):
                node = last_writer[k]
                while node >= 0:
                    if seen[node_transfer[node]] != 2 * i + 1:
                        seen[node_transfer[node]] = 2 * i + 1
                        if m >= pred.shape[0]:
                            pred, kind = _doubled(pred), _doubled(kind)
                        pred[m], kind[m] = node_transfer[node], WRITE_AFTER_WRITE
                        m += 1
                    node = node_next[node]
            for k in range(of["write"], of["write_end"]):
                node = last_reader[k]
                while node >= 0:
                    if seen[node_transfer[node]] < 2 * i:
                        seen[node_transfer[node]] = 2 * i
                        if m >= pred.shape[0]:
                            pred, kind = _doubled(pred), _doubled(kind)
                        pred[m], kind[m] = node_transfer[node], WRITE_AFTER_READ
                        m += 1
                    node = node_next[node]
        for i in range(begin, end):
            t = transfers[i]
            for k in range(cells[i]["write"], cells[i]["write_end"]):
                if write_hop[k] != t["hop"]:
                    write_hop[k] = t["hop"]
                    last_writer[k] = -1
                    last_reader[k] = -1
                elif t["op"] != REDUCE or transfers[node_transfer[last_writer[k]]]["op"] != REDUCE:
                    conflict = i
                if n_nodes >= node_next.shape[0]:
                    node_transfer, node_next = _doubled(node_transfer), _doubled(node_next)
                node_transfer[n_nodes], node_next[n_nodes] = i, last_writer[k]
                last_writer[k] = n_nodes
                n_nodes += 1
        for i in range(begin, end):
            for k in range(cells[i]["read"], cells[i]["read_end"]):
                if n_nodes >= node_next.shape[0]:
                    node_transfer, node_next = _doubled(node_transfer), _doubled(node_next)
                node_transfer[n_nodes], node_next[n_nodes] = i, last_reader[k]
                last_reader[k] = n_nodes
                n_nodes += 1
        begin = end
    first[n] = m
    return first, pred[:m].copy(), kind[:m].copy(), conflict


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
