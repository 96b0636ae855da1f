"""The tables that the packet kernels work on, one row per thing; a row of each is a NumPy record.

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

N_BUCKETS = 1 << 15  # of the timing wheel,
N_HALVES = 1 << 12  # and of the wheel of halves of its span
NEVER = np.iinfo(np.int64).max
PS = 1e12  # picoseconds per second
LINE = 64  # bytes of the processor's cache
ENDLESS = 1 << 61  # bytes
LONGEST = 1e6  # seconds; far inside the range of an int64 of picoseconds


Rows = NDArray[np.void]
Row = np.void

# why the kernel returns
DONE, FULL, STUCK, CHANGE = range(4)

# what a packet is: from CONTRIBUTION on, of a job that switches aggregate
DATA, TRIMMED, ACK, NACK, PULL, REQUEST, CNP, CONTRIBUTION, RESULT = range(9)

# what takes a packet at the end of its stream
TO_AGGREGATOR, TO_WORKER, TO_SERVER, TO_RECEIVER, TO_SENDER, TO_UNIT = range(6)

# flags of a packet
ECN_CAPABLE, ECN_MARKED, RESENT, COLLIDED, FIRST, REPLY, GAP, EMPTY = 1, 2, 4, 8, 16, 32, 64, 128
LAST = REPLY  # of a transport's packets, which reply to nothing: the last one of its message
# Flags are taken away with `& (ALL_FLAGS ^ flag)`: without the JIT, `~flag` is negative, which is no uint8.
ALL_FLAGS = 255

VERSION = 1 << 30  # of a slot: which of its two versions

EVENT_ROW = np.dtype([("when", np.int64), ("after", np.int32), ("before", np.int32)], align=True)

WHEEL_ROW = np.dtype(
    [
        ("shift", np.int64),  # logarithm of a bucket's width in ps
        ("open", np.int64),  # the bucket that events are taken from,
        ("open_head", np.int64),  # and its first and last event, or -1
        ("open_tail", np.int64),
        ("half", np.int64),  # of the wheel's span that the open bucket is in
        ("n_near", np.int64),  # events in buckets,
        ("n_middle", np.int64),  # and in halves
        ("far", np.int64),  # the first one that is farther ahead, or -1,
        ("far_half", np.int64),  # and the least half of those
        ("scheduled_head", np.int64),  # events that are not yet in any of them, or -1
        ("scheduled_tail", np.int64),
    ]
)

STATE_ROW = np.dtype(
    [
        ("now", np.int64),  # ps
        ("seed", np.int64),
        ("n_links", np.int64),
        ("first_worker_timer", np.int64),  # event
        ("first_flow_timer", np.int64),
        ("change_event", np.int64),  # at which the run stops, for links to change; the last of its time
        ("n_unfinished", np.int64),  # workers or messages
        ("first_free", np.int64),  # packet, and how many there are
        ("n_free", np.int64),
        ("n_classes", np.int64),  # priorities of streams
        ("sent_head", np.int64),  # packets that the present event has sent, or -1
        ("sent_tail", np.int64),
        ("queued", np.int64),  # bytes in all queues
        ("busy_slots", np.int64),
        ("n_log", np.int64),  # records in the log, messages that it makes,
        ("n_messages", np.int64),
        ("n_samples", np.int64),  # samples, and packets recorded on tapped links
        ("n_tapped", np.int64),
        ("next_sample", np.int64),  # ps
        ("sample_every", np.int64),
        ("look_at", np.int64),  # ps: timers stop the run from here on, to look for links that pause each other
        # what happened, as counted in results
        ("events", np.int64),
        ("packet_hops", np.int64),
        ("retransmissions", np.int64),
        ("duplicates", np.int64),
        ("drops_loss", np.int64),
        ("drops_full", np.int64),
        ("marks", np.int64),
        ("out_of_order", np.int64),
        ("collisions", np.int64),
        ("timeouts", np.int64),
    ]
)

# Two lines of cache have all that most packets need of a link; a row is four.
LINK_ROW = np.dtype(
    [
        ("ps_per_byte", np.float64),
        ("latency", np.int64),  # ps
        ("packet_time", np.int64),  # ps, for each packet beside its bytes
        ("head", np.int32),  # of the queue
        ("tail", np.int32),  # of a queue that is not timed
        ("pipe_head", np.int32),  # of the packets on their way; where timed, of those in the queue too
        ("pipe_tail", np.int32),
        ("timed", np.bool_),  # whether packets know when they leave as they come: nothing can change it later
        ("busy", np.bool_),  # sending; where timed, whether it will tell a flow that a packet has left
        ("paused", np.uint8),  # classes, as bits
        ("pausing", np.uint8),  # what the other end has asked for
        ("pause_pending", np.bool_),
        ("lossy", np.bool_),  # whether packets may be lost on it
        ("bad", np.bool_),  # state of the Gilbert-Elliott model
        ("tapped", np.bool_),  # whether packets that leave are recorded
        ("told", np.int32),  # where timed and busy: the packet whose flow gets the news
        ("free_at", np.int64),  # ps: where timed, when all that is queued has left
        ("queued", np.int64),  # bytes, with the packet that is being sent
        ("buffer", np.int64),  # bytes
        ("ecn_min", np.int64),  # bytes queued from which packets are marked at random, 0 for never
        ("n_queued", np.int64),  # packets that were let into the queue,
        ("n_packets", np.int64),  # that left it,
        ("n_arrived", np.int64),  # that were taken off the other end, lost or not
        ("n_bytes", np.int64),
        ("peak", np.int64),  # bytes queued at most
        ("loss", np.float64),  # in the good state
        ("to_bad", np.float64),
        ("first_time", np.int64),  # ps, more for the first packet of a message: the sender's overhead
        ("shared", np.int32),  # buffer that it shares with other links, or -1
        ("served", np.int64),  # key of the packet that it has sent last, where classes have weights
        ("xoff", np.int64),  # bytes of a class held by the next node that pause this link for it; 0 for never
        ("xon", np.int64),
        ("ecn_max", np.int64),  # from which all are marked
        ("ecn_probability", np.float64),
        ("loss_bad", np.float64),
        ("to_good", np.float64),
        ("n_dropped", np.int64),
        ("n_marked", np.int64),
        ("last_time", np.int64),  # ps, more for the last packet of a message that ends here: the receiver's overhead
        ("unused", np.int64, (2,)),
    ],
    align=True,
)

BUFFER_ROW = np.dtype([("total", np.int64), ("used", np.int64), ("alpha", np.float64)], align=True)

PACKET_ROW = np.dtype(
    [
        ("arrival", np.int64),  # ps; in a queue of several classes, its key: the least goes first
        ("number", np.int64),  # sequence number, or the message of an aggregation job
        ("tag", np.int64),  # of a result 1 + the slot that it names, or 0; else when it was sent, ps
        ("next", np.int32),
        ("hop", np.int32),  # place in the table of routes
        ("stream", np.int32),
        ("size", np.int32),  # bytes on the wire
        ("came_over", np.int32),  # link, or -1
        ("slot", np.int32),
        ("message", np.int32),  # of the value pass; -1 for a worker's own values
        ("worker", np.int32),  # whose own values it holds, or -1; the flow of a transport's packets
        ("position", np.int16),  # in its message
        ("kind", np.uint8),
        ("flags", np.uint8),
    ],
    align=True,
)

ROUTE_ROW = np.dtype([("link", np.int32), ("last", np.bool_), ("n_bytes", np.int64)], align=True)
# whether it is the last link of its stream, and the bytes of this stream that have left it

STREAM_ROW = np.dtype(
    [
        ("begin", np.int32),  # in the table of routes
        ("end", np.int32),
        ("target", np.int32),  # TO_...
        ("owner", np.int32),  # number of the aggregator, worker, server, flow
        ("child", np.int32),  # at the aggregator: which child it comes from
        ("priority", np.int32),  # of its packets in queues; the least goes first
    ],
    align=True,
)

SAMPLE_ROW = np.dtype([("time", np.int64), ("busy_slots", np.int64), ("queued", np.int64)], align=True)

TAP_ROW = np.dtype(
    [
        ("time", np.int64),
        ("number", np.int64),
        ("link", np.int32),
        ("stream", np.int32),
        ("slot", np.int32),
        ("size", np.int32),
        ("position", np.int16),
        ("kind", np.uint8),
        ("flags", np.uint8),
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


class Links(NamedTuple):
    """Links, the packets on them, and what is pending.

    Parameters
    ----------
    events : EventQueue
        Pending events.
    state : STATE_ROW
        Time, free packets and counters.
    link, buffer : LINK_ROW[n_links], BUFFER_ROW[n_buffers]
        Links, and the buffers that some share.
    packet : PACKET_ROW[n_packets]
        Packets under way, and free rows.
    stream, route : STREAM_ROW[n_streams], ROUTE_ROW[n_hops]
        Ways of packets, and their links.
    tap, sample : TAP_ROW[n], SAMPLE_ROW[n]
        Room for packets and states that are recorded.
    held : int64[n_links * n_classes], bytes
        Bytes that came over each link, of each class, and are still in the next node's queues.
    last_key : int64[n_links * n_classes]
        Key of the last packet of each class that was queued, where classes have weights.
    class_weight : float64[n_classes]
        Share of a link that each class may have; empty where the first class goes first.
    """

    events: EventQueue
    state: Row
    link: Rows
    buffer: Rows
    packet: Rows
    stream: Rows
    route: Rows
    tap: Rows
    sample: Rows
    held: NDArray[np.int64]
    last_key: NDArray[np.int64]
    class_weight: NDArray[np.float64]


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
