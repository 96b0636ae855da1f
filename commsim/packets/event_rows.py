"""The tables of events, links, routes and looks at links that kernels work on, one row per thing; each a NumPy record.

Everything that can happen next has a fixed number, its *event*, and at most one pending time: a link ends sending its
packet, the first packet on its way along a link arrives, a pause takes effect, a timer fires. So the queue of events is
as long as the network is large, however many packets are under way, and equal times are served in the order of the
events' numbers: what leaves, what arrives, pauses, then timers, each by the number of the link or of the
timer; a change of links comes last. A link sends one packet at a time, so no tie is left to the order of insertion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import COUNT_FROM_FRONT, Records

# Kernels of this package, each of which imports these rows, have no negative index, which is then not looked for. It is
# said here since registering the package imports no module for kernels.
COUNT_FROM_FRONT.add("commsim.packets")

N_BUCKETS = 1 << 15  # of the timing wheel,
N_HALVES = 1 << 12  # and of the wheel of halves of its span
NEVER = np.iinfo(np.int64).max
PS = 1e12  # picoseconds per second
LINE = 64  # bytes of the processor's cache
ENDLESS = 1 << 61  # bytes
LONGEST = 1e6  # seconds; far inside the range of an int64 of picoseconds
LAST_TIME = 1 << 62  # ps, 53 days: what begins until then and takes LONGEST is in the range, too


Rows = Records
Row = np.void

EVENT_ROW = np.dtype([("when", np.int64), ("after", np.int32), ("before", np.int32)], align=True)

WHEEL_ROW = np.dtype(
    [
        ("shift", np.int64),  # logarithm of a bucket's width in ps
        ("open", np.int64),  # the bucket that events are taken from,
        ("open_head", np.int64),  # and its first and last event, or -1
        ("open_tail", np.int64),
        ("both_ways", np.int64),  # whether that list is linked backwards, too
        ("half", np.int64),  # of the wheel's span that the open bucket is in
        ("n_near", np.int64),  # events in buckets,
        ("n_middle", np.int64),  # and in halves
        ("far", np.int64),  # the first one that is farther ahead, or -1,
        ("far_half", np.int64),  # and the least half of those
        ("scheduled_head", np.int64),  # events that are not yet in any of them, or -1
        ("scheduled_tail", np.int64),
    ]
)

# The first two lines of cache have all that most packets need of a link; a row is four.
LINK_ROW = np.dtype(
    [
        ("done", np.int64),  # ps: the packet that is being sent has left
        ("latency", np.int64),  # ps
        ("ps_per_byte", np.float64),
        ("serving", np.int32),  # packet, or -1
        ("pipe_head", np.int32),  # on their way
        ("pipe_tail", np.int32),
        ("to", np.int32),  # node
        ("low_head", np.int32),  # data
        ("low_tail", np.int32),
        ("high_head", np.int32),  # what goes first
        ("high_tail", np.int32),
        ("awaited", np.bool_),  # an arrival is scheduled
        ("evented", np.bool_),  # an event tells when a packet has left; else that is found out when somebody asks
        ("paused", np.uint8),  # classes, as bits,
        ("pausing", np.uint8),  # and what the other end has asked for
        ("lossy", np.bool_),
        ("tapped", np.bool_),  # whether packets that leave are recorded
        ("costs", np.bool_),  # packets take time beside their bytes
        ("bad", np.bool_),  # state of losses
        ("low", np.int64),  # bytes queued, with those being sent
        ("high", np.int64),
        ("room", np.int64),  # bytes of data that the queue takes
        ("peak", np.int64),  # bytes of data at most
        ("marks", np.int64),  # NO_MARKS, BETWEEN or AT_HOST: which packets it marks, and whether queues have ends
        ("n_packets", np.int64),  # that left,
        ("n_bytes", np.int64),
        ("packet_time", np.int64),  # ps, for each packet beside its bytes
        ("first_time", np.int64),  # ps, more for the first packet of a message: the sender's overhead
        ("last_time", np.int64),  # ps, more for the last packet of a message that ends here: the receiver's
        ("n_trimmed", np.int64),
        ("n_dropped", np.int64),
        ("n_marked", np.int64),
        ("n_arrived", np.int64),  # packets that were taken off the other end while it loses some
        ("served", np.int64),  # key of the packet that it has sent last, where classes have weights
        ("loss", np.float64),  # share of packets that vanish, in the good state,
        ("loss_bad", np.float64),  # and in the bad one (Gilbert-Elliott)
        ("to_bad", np.float64),  # chance to change the state with a packet
        ("to_good", np.float64),
        ("xoff", np.int64),  # bytes of a class held by the next node that pause this link for it; 0 for never
        ("xon", np.int64),
        ("shared", np.int32),  # buffer that it shares with other links, or -1
        ("pause_pending", np.bool_),
        ("unused", np.int64, (2,)),
    ],
    align=True,
)

BUFFER_ROW = np.dtype([("total", np.int64), ("used", np.int64), ("alpha", np.float64)], align=True)

ROUTE_ROW = np.dtype([("link", np.int32), ("last", np.bool_)], align=True)  # last: of its stream

STREAM_ROW = np.dtype(
    [
        ("begin", np.int32),  # in the table of routes
        ("end", np.int32),
        ("target", np.int32),  # TO_...
        ("owner", np.int32),  # number of the aggregator, worker, server, flow
        ("child", np.int32),  # at the aggregator: which child it comes from
        ("priority", np.int32),  # of its packets in queues; the least goes first
        ("job", np.int32),  # of aggregation, behind those of flows
    ],
    align=True,
)

SAMPLE_ROW = np.dtype([("time", np.int64), ("busy_slots", np.int64), ("queued", np.int64)], align=True)

TAP_ROW = np.dtype(
    [
        ("time", np.int64),
        ("arrives", np.int64),  # ps: at the other end of the link
        ("sent", np.int64),  # ps: of flows: the data packet left its sender
        ("number", np.int64),
        ("link", np.int32),
        ("stream", np.int32),
        ("slot", np.int32),
        ("size", np.int32),
        ("position", np.int16),
        ("kind", np.uint8),
        ("flags", np.uint8),
        ("event", np.uint8),  # AT_MAKER and so on, as bits
    ],
    align=True,
)


class EventQueue(NamedTuple):
    """The events that are pending.

    Parameters
    ----------
    wheel : WHEEL_ROW
        State.
    event : EVENT_ROW[n_events]
        Time of each event, and its neighbours in the list that it is in.
    bucket : int32[N_BUCKETS]
        First event of each bucket of the fine wheel, or -1.
    bits : uint64[N_BUCKETS / 64]
        Bit of each bucket that holds events.
    middle : int32[N_HALVES]
        First event of each half of the span, or -1.
    """

    wheel: Row
    event: Rows
    bucket: NDArray[np.int32]
    bits: NDArray[np.uint64]
    middle: NDArray[np.int32]


def event_queue(n_events: int, shift: int) -> EventQueue:
    """Lay out the queue of so many events, none pending, with buckets of ``2**shift`` picoseconds."""
    wheel = np.zeros(1, WHEEL_ROW)
    for field in ("open", "open_head", "scheduled_head", "far"):
        wheel[field] = -1
    wheel["far_half"], wheel["shift"] = NEVER, shift
    return EventQueue(
        wheel[0],
        np.zeros(n_events, EVENT_ROW),
        np.full(N_BUCKETS, -1, np.int32),
        np.zeros(N_BUCKETS // 64, np.uint64),
        np.full(N_HALVES, -1, np.int32),
    )


def on_lines(table: Any) -> Any:
    """Let a table begin where a cache line does, so that a row of 64 bytes is on one line; copied unless it does."""
    if table.ctypes.data % LINE == 0:
        return table
    aligned = zeros_on_lines(len(table), table.dtype)
    aligned[:] = table
    return aligned


def zeros_on_lines(n: int, dtype: Any) -> Any:
    """Rows of zeros from the beginning of a cache line on."""
    n_bytes = n * np.dtype(dtype).itemsize
    raw: Any = np.zeros(n_bytes + LINE, np.uint8)
    begin = -raw.ctypes.data % LINE
    return raw[begin : begin + n_bytes].view(dtype)
