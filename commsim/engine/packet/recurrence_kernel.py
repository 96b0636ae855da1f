"""Lossless aggregation without a queue of events: every time is a sum or a maximum of earlier times.

On a link that carries the packets of one stream only, in order, a packet leaves at max(when it came, when the one
before had left) plus its serialisation. A switch has a sum when the last of its children's packets has come. So one
sweep up the tree and one down it give all times of a packet, and sweeps follow each other in the order of the packets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

EDGE_ROW = np.dtype([("from", np.int32), ("to", np.int32), ("free", np.int64), ("latency", np.int64)], align=True)


@njit_norefcount
def sweep(first: int, n_messages: int, window: int, begin: Any, done: Any, edge: Any, serial: Any, come: Any) -> None:
    """Play one tensor.

    Parameters
    ----------
    first : int
        Number of the first message.
    n_messages, window : int
        Messages of the tensor, and how many a worker may have outstanding.
    begin : int64[n_workers], ps
        When each worker starts the tensor.
    done : int64[window, n_workers], ps
        When each worker had the result of the last message in each place of its window; changed in place.
    edge : EDGE_ROW[n_edges]
        Hops of the tree: upwards, children before parents, then downwards, parents before children.
    serial : int64[packets_per_message, n_edges], ps
        Serialisation of the packet at each position of a message on each hop.
    come : int64[n_nodes], ps
        Scratch; workers as senders first, workers as receivers last.
    """
    n_workers = len(begin)
    receivers = len(come) - n_workers
    for message in range(first, first + n_messages):
        place = message % window
        for position in range(len(serial)):
            for node in range(len(come)):
                come[node] = 0
            for i in range(n_workers):
                come[i] = begin[i] if message - first < window else done[place, i]
            for e in range(len(edge)):
                row = edge[e]
                left = max(come[row["from"]], row["free"]) + serial[position, e]
                row["free"] = left
                come[row["to"]] = max(come[row["to"]], left + row["latency"])
        for i in range(n_workers):
            done[place, i] = come[receivers + i]
