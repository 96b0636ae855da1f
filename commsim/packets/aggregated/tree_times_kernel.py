"""Lossless aggregation without a queue of events: every time is a sum or a maximum of earlier times.

On a link that carries the packets of one stream only, in order, a packet leaves at max(when it came, when the one
before had left) plus its serialisation. A switch has a sum when the last of its children's packets has come. So one
sweep up the tree and one down it give all times of a packet, and sweeps follow each other in the order of the packets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from commsim.packets.event_rows import Rows

Times = NDArray[np.int64]
EDGE_ROW = np.dtype([("from", np.int32), ("to", np.int32), ("free", np.int64), ("latency", np.int64)], align=True)


@njit_norefcount
def sweep(
    first: int,
    n_messages: int,
    window: int,
    begin: Times,
    done: Times,
    edge: Rows,
    serialisation: Times,
    arrival: Times,
) -> None:
    """Compute the times of one tensor's messages.

    Parameters
    ----------
    first : int
        Number of the first message.
    n_messages, window : int
        Messages of the tensor, and how many a worker may have outstanding.
    begin : int64[n_workers], ps
        Time at which each worker starts the tensor.
    done : int64[window, n_workers], ps
        Time at which each worker had the result of the last message in each place of its window; changed in place.
    edge : EDGE_ROW[n_edges]
        Hops of the tree: upwards, children before parents, then downwards, parents before children.
    serialisation : int64[packets_per_message, n_edges], ps
        Serialisation time of the packet at each position of a message on each hop.
    arrival : int64[n_nodes], ps
        Scratch: when a packet has arrived at each node; workers as senders first, then workers as receivers.
    """
    n_workers = len(begin)
    for message in range(first, first + n_messages):
        place = message % window
        for position in range(len(serialisation)):
            for node in range(len(arrival)):
                arrival[node] = 0
            for i in range(n_workers):
                arrival[i] = begin[i] if message - first < window else done[place, i]
            for e in range(len(edge)):
                row = edge[e]
                left = max(arrival[row["from"]], row["free"]) + serialisation[position, e]
                row["free"] = left
                arrival[row["to"]] = max(arrival[row["to"]], left + row["latency"])
        for i in range(n_workers):
            done[place, i] = arrival[n_workers + i]
