"""The tables that the flow kernels work on, one row per thing; a row of each is a NumPy record.

A *wire* is what shares source, destination and channel: its transfers are sent one after the other, and received one
after the other. So a wire owns two *slots*, things that can use resources: slot ``w`` sends, slot ``n_wires + w``
receives. A *resource* is a link, the reduction unit of a node, or a rate cap. An *entry* says that a slot may use a
resource, and is a node of that resource's list while it does.
"""

from __future__ import annotations

import numpy as np

IDLE, OVERHEAD, DATA, RECEIVING, REDUCING = range(-1, 4)

TRANSFER_ROW = np.dtype(
    [
        ("wire", np.int32),
        ("waiting", np.int32),  # predecessors that are not yet sent, or complete
        ("op", np.int32),
        ("bytes", np.float64),
        ("start", np.float64),
        ("sent", np.float64),
        ("done", np.float64),
    ],
    align=True,
)

WIRE_ROW = np.dtype(
    [
        ("next", np.int64),  # of its queue, the next to send,
        ("receive", np.int64),  # to receive,
        ("arrived", np.int64),  # the first that has not arrived,
        ("end", np.int64),  # and the end
        ("ready", np.float64),  # when both ranks have entered the collective
        ("latency", np.float64),
        ("overhead_work", np.float64),  # bytes that would occupy the sender's port for the overhead
        ("receive_work", np.float64),
        ("reduces", np.bool_),  # whether reducing takes time at the receiver
    ],
    align=True,
)

SLOT_ROW = np.dtype(
    [
        ("begin", np.int32),  # entries of the route; a sender's first `port` entries are its port,
        ("port", np.int32),  # a receiver's last entry is its reduction unit
        ("end", np.int32),
        ("phase", np.int32),
        ("transfer", np.int32),
        ("heap_place", np.int32),
        ("component", np.int64),  # the last solve that touched it
        ("state", np.int32),  # in a solve: WAITING for its class, OPEN, or FROZEN
        ("priority", np.int32),  # 0 goes first
        ("weight", np.float64),
        ("work", np.float64),  # bytes left at time `since`
        ("since", np.float64),
        ("level", np.float64),  # rate per weight
        ("finish", np.float64),
    ],
    align=True,
)

ENTRY_ROW = np.dtype(
    [
        ("resource", np.int32),
        ("slot", np.int32),
        ("share", np.float64),  # of the slot's rate that the resource carries
        ("next", np.int32),
        ("previous", np.int32),
    ],
    align=True,
)

RESOURCE_ROW = np.dtype(
    [
        ("capacity", np.float64),
        ("head", np.int32),  # of the list of entries that use it
        ("dirty", np.bool_),
        ("component", np.int64),
        ("users", np.float64),  # weight of the slots on the list
        ("free", np.float64),  # capacity not yet given away in this solve
        ("demand", np.float64),  # weight of the open slots, and
        ("n_open", np.int32),  # how many they are
    ],
    align=True,
)
