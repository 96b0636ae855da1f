"""The tables that the flow kernels work on, one row per thing; a row of each is a NumPy record.

A *connection* is what shares source, destination and channel: its transfers are sent one after the other, and received
one after the other. So a connection owns two *flows*, things that can use resources: flow ``w`` sends, flow
``n_connections + w`` receives. A *resource* is a link, the reduction unit of a node, a message engine, or a rate cap. A
*flow link* says that a flow may use a resource; while it does, it is among the resource's *users*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records

IDLE, OVERHEAD, DATA, RECEIVING, REDUCING = range(-1, 4)

# Structured rows, of one of the record types below.
Rows = Records
Row = np.void
Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]
Offsets = NDArray[np.int64]

COUNTERS = np.dtype(
    [
        ("n_heap", np.int64),  # flows that have an end,
        ("n_waiting", np.int64),  # events,
        ("n_work", np.int64),  # what is to be looked at now,
        ("n_beginning", np.int64),  # flows that enter, and so on for each list below
        ("n_dirty", np.int64),
        ("n_listed", np.int64),
        ("n_touched", np.int64),
        ("n_changed", np.int64),
        ("n_done", np.int64),  # complete transfers
        ("n_events", np.int64),  # phases that started or ended
        ("n_unfrozen", np.int64),
    ]
)

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

# What of a flow no run changes.
FLOW_ROW = np.dtype(
    [
        ("begin", np.int32),  # flow links: up to `port` what an overhead uses, an engine and the sender's port, or
        ("data", np.int32),  # the receiver's last links; from `data` what bytes use, a route without engine,
        ("port", np.int32),  # or what adds them, a receiver's reduction unit
        ("end", np.int32),
        ("priority", np.int32),  # 0 goes first
        ("weight", np.float64),
    ],
    align=True,
)

RUNNING_FLOW_ROW = np.dtype(
    [
        ("begin", np.int32),  # these as in FLOW_ROW
        ("data", np.int32),
        ("port", np.int32),
        ("end", np.int32),
        ("phase", np.int32),
        ("transfer", np.int32),
        ("priority", np.int32),
        ("unfrozen", np.bool_),  # whether the present solve is looking for its fair rate, and
        ("changed", np.bool_),  # whether it has found another
        ("listed", np.bool_),  # whether it represents others, which are to be looked at
        ("weight", np.float64),
        ("work", np.float64),  # bytes left at time `since`
        ("since", np.float64),
        ("fair_rate", np.float64),  # rate per weight
    ],
    align=True,
)

USER_ROW = np.dtype(
    [
        ("fair_rate", np.float64),  # or UNFROZEN, or WAITING
        ("flow_link", np.int32),
        ("flow", np.int32),
    ],
    align=True,
)

# As large as a line of a processor's cache; of all tables, these rows are read most often and in no order.
RESOURCE_ROW = np.dtype(
    [
        ("unit", np.float64),  # a power of two so small that sums of rates in whole units are exact,
        ("per_unit", np.float64),  # and one over it
        ("left", np.int64),  # what of the capacity is not given away, in units
        ("demand", np.float64),  # what the users whose fair rate is looked for take together per fair rate,
        ("n_unfrozen", np.int32),  # and how many they are
        ("n_users", np.int32),
        ("first", np.int32),  # row of its users
        ("dirty", np.bool_),  # a full resource that a flow has left, or
        ("touched", np.bool_),  # one with new unfrozen users
        ("full", np.float64),  # fair rate of those that cannot have more because of it; infinite without any
        ("top", np.float64),  # no user has a higher fair rate
    ],
    align=True,
)
CACHE_LINE = 64


@dataclass(frozen=True, slots=True, eq=False)
class FlowLinks:
    """Flow links, those of each flow one after the other.

    Parameters
    ----------
    resource : int32[n]
        Resource that the flow may use.
    share : float64[n]
        Part of the flow's rate that the resource carries; empty where all are 1.
    """

    resource: Numbers
    share: Floats

    def __len__(self) -> int:
        return len(self.resource)

    @property
    def shares(self) -> Floats:
        """float64[n]: the shares, also where all are 1."""
        return self.share if len(self.share) else np.broadcast_to(1.0, len(self))


def owners(flow: Rows) -> Numbers:
    """Return the flow of each flow link.

    Returns
    -------
    int32[n_flow_links]
    """
    return np.repeat(np.arange(len(flow), dtype=np.int32), flow["end"] - flow["begin"])


class FlowState(NamedTuple):
    """All state of a run of the event engine; changed in place, but for the flow links."""

    connection_of: Numbers  # [n_transfers]: columns, partly read out of order, so that what is read is small
    op: NDArray[np.uint8]  # [n_transfers]
    n_bytes: Floats  # [n_transfers]
    waiting: Numbers  # [n_transfers], predecessors that are not yet sent, or complete
    start: Floats  # [n_transfers], s
    sent: Floats  # [n_transfers], s
    done: Floats  # [n_transfers], s
    connection: Rows  # CONNECTION_ROW[n_connections]
    flow: Rows  # RUNNING_FLOW_ROW[n_flows], twice as many: those that send, then those that receive
    resource_of: Numbers  # [n_flow_links], in the order of flows
    share: Floats  # [n_flow_links], of the flow's rate that the resource carries; none where all are 1
    resource: Rows  # RESOURCE_ROW[n_resources]
    queue: Numbers  # [n_transfers], transfers by connection, in program order
    first: Offsets  # [n_transfers + 1], rows of successors:
    successor: Numbers  # [m], 2 * transfer + (1 when it waits for completion)
    user: Rows  # USER_ROW[n_flow_links], by resource
    place: Numbers  # [n_flow_links], among the users, while the flow uses the resource
    finish: Floats  # [n_flows], s; the key in the heap may be earlier
    finish_key: Floats  # [n_flows], s
    finish_place: Numbers  # [n_flows]
    finish_heap: Numbers  # [n_flows]
    full_at: Floats  # [n_resources], fair rate at which a resource may be full
    full_place: Numbers  # [n_resources]
    full_queue: Numbers  # [n_resources]
    event_time: Floats  # [2 * n_connections], the next arrival and a late start of each connection
    event_code: Offsets  # [2 * n_connections]
    work: Numbers  # [3 * n_connections], what is to be looked at now
    trying: NDArray[np.bool_]  # [n_connections], whether a connection is in `work`
    beginning: Numbers  # [n_flows]
    dirty: Numbers  # [n_resources]
    listed: Numbers  # [n_flows], representatives to be looked at; or, with priorities, flows to be filled
    touched: Numbers  # [n_resources]
    raised: Numbers  # [largest number of users]
    changed: Numbers  # [n_flows]
    counter: np.void  # COUNTERS
    variants: Offsets  # [n_flows + 1], rows of flow links that only some of those use that a flow represents,
    variant: Offsets  # [n_variants + 1]
    variant_link: Numbers  # [m]
    broken: Offsets  # [n_variants], hash of when those that use these could have more than their representative
    has_representatives: NDArray[np.bool_]  # [1], whether flows represent others at all
    flight: Floats  # [n_transfers], s, from sent to arrived; none where it is the latency of the connection


def share_table(capacity: NDArray[np.float64], n_flow_links: NDArray[np.int64]) -> Rows:
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


def allocate_state(
    transfers: tuple[Numbers, NDArray[np.uint8], Floats, Numbers],
    shared: tuple[Rows, Rows, FlowLinks, Rows],
    queue: Numbers,
    successors: tuple[Offsets, Numbers],
    variants: tuple[Offsets, Offsets, Numbers] | None = None,
    flight: Floats | None = None,
) -> FlowState:
    """Allocate what a run needs.

    Parameters
    ----------
    transfers : (int32[n], uint8[n], float64[n], int32[n])
        Connection, operation, bytes, and how many it waits for, of each; the last is copied.
    shared : (connection, flow, flow_link, resource)
        Rows at the beginning: FLOW_ROW for flows. Copied but for the flow links, which no run changes.
    queue, successors, variants, flight
        Same as in :class:`FlowState`.
    """
    flow_link = shared[2]
    connection, resource = (_copied(table) for table in (shared[0], shared[3]))
    flow = _on_lines(len(shared[1]), RUNNING_FLOW_ROW)
    for name in FLOW_ROW.names or ():
        flow[name] = shared[1][name]
    flow["phase"], flow["transfer"] = IDLE, -1
    connection_of, op, n_bytes, waiting = transfers
    start, sent, done = np.zeros((3, len(waiting)))
    n, c, r = len(flow), len(connection), len(resource)
    most = int(np.diff(np.append(resource["first"], len(flow_link))).max(initial=0))
    first_variant, first_link, variant_link = variants or (np.empty(0, int), np.empty(0, int), np.empty(0, np.int32))
    finish, finish_key, full_at, event_time = (np.empty(k) for k in (n, n, r, 2 * c))
    finish_heap, full_queue, work, beginning, dirty, listed, touched, raised, changed = (
        np.empty(k, np.int32) for k in (n, r, 3 * c + 1, n, r, n, r, most, n)
    )
    return FlowState(
        connection_of, op, n_bytes, waiting.copy(), start, sent, done,
        connection, flow, flow_link.resource, flow_link.share, resource, queue, *successors,
        np.empty(len(flow_link), USER_ROW), np.zeros(len(flow_link), np.int32),
        finish, finish_key, np.full(n, -1, np.int32), finish_heap, full_at, np.full(r, -1, np.int32), full_queue,
        event_time, np.empty(2 * c, np.int64), work, np.zeros(c, np.bool_), beginning, dirty, listed, touched, raised,
        changed, np.zeros(1, COUNTERS)[0], first_variant, first_link, variant_link,
        np.zeros(max(len(first_link) - 1, 0), np.int64), np.array([variants is not None]),
        np.empty(0) if flight is None else flight,
    )  # fmt: skip


def _copied(table: Rows) -> Rows:
    copy = _on_lines(len(table), table.dtype)
    copy[:] = table
    return copy


def _on_lines(n: int, dtype: np.dtype[np.void]) -> Rows:
    """Return rows of zeros that begin with lines of the cache, if they are as large as these."""
    n_bytes = n * dtype.itemsize
    room = np.zeros(n_bytes + CACHE_LINE, np.uint8)
    begin = -room.ctypes.data % CACHE_LINE
    return room[begin : begin + n_bytes].view(dtype)
