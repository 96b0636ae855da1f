"""The tables that the flow kernels work on, one row per thing; a row of each is a NumPy record.

A *connection* is what shares source, destination and channel: its transfers are sent one after the other, and received
one after the other. So a connection owns two *flows*, things that can use resources: flow ``w`` sends, flow
``n_connections + w`` receives. A *resource* is a link, the reduction unit of a node, or a rate cap. An *flow link* says
that a flow may use a resource; while it does, it stands among the resource's *users*.

Memory for a run of the flow kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

IDLE, OVERHEAD, DATA, RECEIVING, REDUCING = range(-1, 4)

# what a row of the counters holds
N_HEAP, N_WAITING, N_WORK, N_BEGINNING, N_DIRTY, N_LISTED, N_TOUCHED, N_RAISED, N_CHANGED = range(9)
N_DONE, N_EVENTS, N_UNFROZEN = range(9, 12)
N_COUNTERS = 12

CONNECTION_ROW = np.dtype(
    [
        ("next", np.int64),  # of its queue, the next to send,
        ("receive", np.int64),  # to receive,
        ("arrived", np.int64),  # the first that has not arrived,
        ("end", np.int64),  # and the end
        ("upcoming", np.int32),  # transfer that is the next to send,
        ("following", np.int32),  # and the one after it
        ("ready", np.float64),  # when both ranks have entered the collective
        ("latency", np.float64),
        ("overhead_work", np.float64),  # bytes that would occupy the sender's port for the overhead
        ("receive_work", np.float64),
        ("reduces", np.bool_),  # whether reducing takes time at the receiver
    ],
    align=True,
)

FLOW_ROW = np.dtype(
    [
        ("begin", np.int32),  # flow links: up to `port` those of a sender's port, or a receiver's last links,
        ("port", np.int32),  # then the rest of a sender's route, or a receiver's reduction unit
        ("end", np.int32),
        ("phase", np.int32),
        ("transfer", np.int32),
        ("priority", np.int32),  # 0 goes first
        ("unfrozen", np.bool_),  # whether the present solve is looking for its fair rate, and
        ("changed", np.bool_),  # whether it has found another
        ("listed", np.bool_),  # whether it stands for others, which are to be looked at
        ("weight", np.float64),
        ("work", np.float64),  # bytes left at time `since`
        ("since", np.float64),
        ("fair_rate", np.float64),  # rate per weight
    ],
    align=True,
)

FLOW_LINK_ROW = np.dtype(
    [
        ("resource", np.int32),
        ("flow", np.int32),
        ("share", np.float64),  # of the flow's rate that the resource carries
        ("place", np.int32),  # among the users, while the flow uses it
    ],
    align=True,
)

USER_ROW = np.dtype(
    [
        ("fair_rate", np.float64),  # or UNFROZEN, or WAITING
        ("used", np.float64),  # what of the resource it takes per fair rate
        ("flow_link", np.int32),
        ("flow", np.int32),
    ],
    align=True,
)

RESOURCE_ROW = np.dtype(
    [
        ("unit", np.float64),  # a power of two so small that sums of rates in whole units are exact,
        ("per_unit", np.float64),  # and one over it
        ("left", np.int64),  # what of the capacity is not given away, in units
        ("demand", np.float64),  # what the users whose fair rate is looked for take together per fair rate,
        ("n_unfrozen", np.int32),  # and how many they are
        ("n_users", np.int32),
        ("first", np.int32),  # row of its users
        ("dirty", np.bool_),  # a full resource that somebody has left, or
        ("touched", np.bool_),  # one with new unfrozen users
        ("full", np.float64),  # fair rate of those that cannot have more because of it; infinite where there are none
        ("top", np.float64),  # no user has a higher fair rate
    ],
    align=True,
)
"""As large as a line of a processor's cache; of all tables, these rows are read most often and in no order."""


class Tables(NamedTuple):
    """All state of a run; changed in place."""

    connection_of: (
        Any  # int32[n_transfers]: columns, of which some are read out of order, so that what is read is small
    )
    op: Any  # uint8[n_transfers]
    n_bytes: Any  # float64[n_transfers]
    waiting: Any  # int32[n_transfers], predecessors that are not yet sent, or complete
    start: Any  # float64[n_transfers], s
    sent: Any  # float64[n_transfers], s
    done: Any  # float64[n_transfers], s
    connection: Any
    flow: Any
    flow_link: Any
    resource: Any
    queue: Any  # int32[n_transfers], transfers by connection, in program order
    first: Any  # int64[n_transfers + 1], rows of successors:
    successor: Any  # int32[m], 2 * transfer + (1 when it waits for completion)
    user: Any  # by resource
    finish: Any  # float64[n_flows], s; the key in the heap may be earlier
    finish_key: Any  # float64[n_flows], s
    finish_place: Any  # int32[n_flows]
    finish_heap: Any  # int32[n_flows]
    full_at: Any  # float64[n_resources], fair rate at which a resource may be full
    full_place: Any  # int32[n_resources]
    full_heap: Any  # int32[n_resources]
    event_time: Any  # float64[2 * n_connections], the next arrival and a late start of each connection
    event_code: Any  # int64[2 * n_connections]
    work: Any  # int32[3 * n_connections], what is to be looked at now
    trying: Any  # bool[n_connections], whether a connection is in `work`
    beginning: Any  # int32[n_flows]
    dirty: Any  # int32[n_resources]
    listed: Any  # int32[n_flows]
    touched: Any  # int32[n_resources]
    raised: Any  # int32[largest number of users]
    changed: Any  # int32[n_flows]
    counter: Any  # int64[N_COUNTERS]
    variants: Any  # int64[n_flows + 1], rows of flow links that only some of those use for whom a flow stands,
    variant: Any  # int64[n_variants + 1]
    variant_flow_link: Any  # int32[m]
    broken: Any  # int64[n_variants], hash of when who uses these could have more than the flow that stands for him
    has_representatives: Any  # bool[1], whether flows stand for others at all


CACHE_LINE = 64


def share_table(capacity: NDArray[np.float64], n_flow_links: NDArray[np.int64]) -> NDArray[Any]:
    """Lay out the resources.

    Parameters
    ----------
    capacity : float64[n_resources], bytes/s
        Infinite where a resource is never in the way.
    n_flow_links : int64[n_resources]
        How many flows may use each.
    """
    resource = np.zeros(len(capacity), RESOURCE_ROW)
    capacity = np.minimum(capacity, 1e300)
    # sums of floats would depend on the order of the users, and that on the order of the jobs
    resource["unit"] = np.ldexp(1.0, np.frexp(capacity)[1] - 61)
    resource["per_unit"] = 1 / resource["unit"]
    resource["left"] = (capacity * resource["per_unit"]).astype(np.int64)
    resource["first"][1:] = np.cumsum(n_flow_links)[:-1]
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
    shared : (connection, flow, flow_link, resource)
        Tables at the beginning, copied.
    queue, successors, variants
        As in :class:`Tables`.
    """
    connection, flow, flow_link, resource = (_copied(table) for table in shared)
    connection_of, op, n_bytes, waiting = transfers
    start, sent, done = (np.zeros(len(waiting)) for _ in range(3))
    n_connections, n_flows, n_flow_links, n_resources = len(connection), len(flow), len(flow_link), len(resource)
    most = int(np.diff(np.append(resource["first"], n_flow_links)).max(initial=0))
    i, f = np.int32, np.float64
    none = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, i)
    return Tables(
        connection_of, op, n_bytes, waiting.copy(), start, sent, done, connection, flow, flow_link, resource, queue,
        *successors, np.empty(n_flow_links, USER_ROW), np.empty(n_flows, f), np.empty(n_flows, f), np.full(n_flows, -1,
        i), np.empty(n_flows, i), np.empty(n_resources, f), np.full(n_resources, -1, i), np.empty(n_resources, i),
        np.empty(2 * n_connections, f), np.empty(2 * n_connections, np.int64), np.empty(3 * n_connections + 1, i),
        np.zeros(n_connections, np.bool_), np.empty(n_flows, i), np.empty(n_resources, i), np.empty(n_flows, i),
        np.empty(n_resources, i), np.empty(most, i), np.empty(n_flows, i), np.zeros(N_COUNTERS, np.int64), *(none if
        variants is None else variants), np.zeros(max(len((variants or none)[1]) - 1, 0), np.int64), np.array([variants
        is not None]),
    )  # fmt: skip


def _copied(table: NDArray[Any]) -> NDArray[Any]:
    """Copy a table to where its rows begin with lines of the cache, if they are as large as these."""
    room = np.empty(table.nbytes + CACHE_LINE, np.uint8)
    begin = -room.ctypes.data % CACHE_LINE
    copy = room[begin : begin + table.nbytes].view(table.dtype)
    copy[:] = table
    return copy
