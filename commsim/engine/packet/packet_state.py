"""The tables that the packet kernels work on, one row per thing; a row of each is a NumPy record.

Everything that can happen next has a fixed number, its *event*, and at most one pending time: a link ends sending its
packet, the first packet on its way along a link arrives, a pause takes effect, a timer fires. So the queue of events is
as long as the network is large, however many packets are under way, and equal times are served in the order of the
events' numbers: what leaves, what arrives, pauses, then timers, each by the number of the link or of the
timer. A link sends one packet at a time, so no tie is left to the order of insertion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

N_BUCKETS = 1 << 15  # of the timing wheel,
N_HALVES = 1 << 12  # and of the wheel of halves of its span
NEVER = np.iinfo(np.int64).max

# what a row of the clock holds
NOW, OPEN, N_NEAR, N_FAR, SHIFT, FREE_PACKET, N_FREE, N_EVENTS, N_HOPS = range(9)
N_LOG, N_MESSAGES, N_BUSY_SLOTS, NEXT_SAMPLE, N_SAMPLES, N_TAPPED, N_UNFINISHED, SEED = range(9, 17)
DROPPED_LOSS, DROPPED_TAIL, MARKED, RETRANSMITTED, DUPLICATES, STALE, OUT_OF_ORDER, COLLISIONS = range(17, 25)
QUEUED, N_TIMEOUTS, SAMPLE_EVERY, N_ADDED, N_LINKS, HALF, N_MIDDLE = range(25, 32)
OPEN_HEAD, OPEN_TAIL, ASKED, LAST_ASKED, SENT_HEAD, SENT_TAIL = range(32, 38)
CLOCK_LENGTH = 40

# why the kernel returns
DONE, FULL, STUCK = 0, 1, 2

# what a packet is
DATA, ACK, CONTRIBUTION, RESULT = range(4)

# who takes a packet at the end of its stream
TO_AGGREGATOR, TO_WORKER, TO_SERVER, TO_RECEIVER, TO_SENDER, TO_UNIT = range(6)

# flags of a packet
ECN_CAPABLE, ECN_MARKED, RESENT, COLLIDED, FIRST, REPLY, GAP, EMPTY = 1, 2, 4, 8, 16, 32, 64, 128

VERSION = 1 << 30  # of a slot: which of its two versions

EVENT_ROW = np.dtype([("when", np.int64), ("after", np.int32), ("before", np.int32)], align=True)

LINK_ROW = np.dtype(
    [
        ("ps_per_byte", np.float64),
        ("latency", np.int64),  # ps
        ("packet_time", np.int64),  # ps, for each packet beside its bytes
        ("first_time", np.int64),  # ps, more for the first packet of a message: the sender's overhead
        ("head", np.int32),  # of the queue
        ("tail", np.int32),
        ("pipe_head", np.int32),  # of the packets on their way
        ("pipe_tail", np.int32),
        ("busy", np.bool_),
        ("paused", np.bool_),
        ("pausing", np.bool_),  # what the other end has asked for
        ("pause_pending", np.bool_),
        ("bad", np.bool_),  # state of the Gilbert-Elliott model
        ("tapped", np.bool_),  # whether packets that leave are recorded
        ("shared", np.int32),  # buffer that it shares with other links, or -1
        ("queued", np.int64),  # bytes, with the packet that is being sent
        ("buffer", np.int64),  # bytes
        ("held", np.int64),  # bytes that came over this link and are still in the next node's queues
        ("xoff", np.int64),  # bytes held that pause this link; 0 for never
        ("xon", np.int64),
        ("ecn_min", np.int64),  # bytes queued from which packets are marked at random, 0 for never
        ("ecn_max", np.int64),  # from which all are
        ("ecn_probability", np.float64),
        ("loss", np.float64),  # in the good state
        ("loss_bad", np.float64),
        ("to_bad", np.float64),
        ("to_good", np.float64),
        ("n_queued", np.int64),  # packets that were let into the queue,
        ("n_packets", np.int64),  # that left it,
        ("n_arrived", np.int64),  # that were taken off the other end, lost or not
        ("n_bytes", np.int64),
        ("n_dropped", np.int64),
        ("n_marked", np.int64),
        ("peak", np.int64),  # bytes queued at most
    ],
    align=True,
)

BUFFER_ROW = np.dtype([("total", np.int64), ("used", np.int64), ("alpha", np.float64)], align=True)

PACKET_ROW = np.dtype(
    [
        ("arrival", np.int64),
        ("number", np.int64),  # sequence number, or the message of an aggregation job
        ("bits", np.uint64),  # workers whose values it holds
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
    ],
    align=True,
)

JOB_ROW = np.dtype(
    [
        ("worker", np.int32),  # the first, and
        ("n_workers", np.int32),  # how many
        ("window", np.int32),  # messages that a worker may have outstanding
        ("packets", np.int32),  # per message
        ("versions", np.int32),
        ("n_trees", np.int32),
        ("tensor", np.int32),  # the first, and
        ("n_tensors", np.int32),  # how many
        ("bytes_first", np.int32),  # on the wire, of the first packet of a message,
        ("bytes_middle", np.int32),
        ("bytes_last", np.int32),
        ("bytes_only", np.int32),
        ("bytes_empty", np.int32),  # of a packet without values
        ("segment", np.float64),  # packets that the congestion window grows by in a round
        ("max_window", np.int32),  # packets
        ("rto", np.int64),  # ps; 0 for never
        ("gain", np.float64),  # of the congestion window's estimate of marks; 1 halves it on any mark
        ("unclaimed", np.int32),  # the slot that the server hands out next
        ("pool", np.int32),  # shared slots of a switch
        ("shared", np.bool_),
        ("sliding", np.bool_),  # messages go in order; else each slot clocks itself
        ("ecn", np.bool_),
        ("forgets", np.bool_),  # does not check `seen`: what goes wrong then
        ("restarts", np.bool_),  # starts every tensor at slot 0: what goes wrong then
        ("rounds", np.int64),  # its slots' first row in the table of first rounds, or -1: nothing is skipped
        ("owned", np.int64),  # the first word of its workers' non-zero blocks, and
        ("owned_words", np.int64),  # words per worker
    ],
    align=True,
)

TENSOR_ROW = np.dtype(
    [("first", np.int64), ("end", np.int64), ("lead", np.int64), ("chunk", np.int64), ("end_chunk", np.int64)],
    align=True,
)  # messages first..end-1, of which `lead` carry exponents only; the first chunk, in packets, and the end

WORKER_ROW = np.dtype(
    [
        ("job", np.int32),
        ("node", np.int32),
        ("number", np.int32),  # in its job
        ("up", np.int32),  # streams to its aggregators, one per tree
        ("entry", np.int32),  # the first of its window
        ("tensor", np.int32),
        ("left", np.int64),  # messages of the tensor without result
        ("next", np.int64),  # message to send
        ("base", np.int64),  # the first without result
        ("limit", np.int64),  # the message whose result ends the round of the congestion window
        ("congestion_window", np.float64),  # packets
        ("n_marked", np.int64),  # results of this round with a mark,
        ("n_results", np.int64),  # and all
        ("marks", np.float64),  # running estimate of the share of marks
        ("head", np.int32),  # of the outstanding entries, in the order of their timers
        ("tail", np.int32),
        ("finished", np.int64),  # ps
        ("n_resent", np.int64),
        ("started", np.bool_),
        ("timer_pending", np.bool_),
    ],
    align=True,
)

ENTRY_ROW = np.dtype(
    [
        ("message", np.int64),  # outstanding, or -1
        ("deadline", np.int64),
        ("after", np.int32),
        ("before", np.int32),
        ("slot", np.int32),  # when slots are shared
        ("expected", np.int16),  # position of the next packet of the result
        ("resent", np.bool_),
        ("done", np.bool_),
    ],
    align=True,
)

AGGREGATOR_ROW = np.dtype(
    [
        ("job", np.int32),
        ("node", np.int32),
        ("fan_in", np.int32),
        ("up", np.int32),  # stream to the parent, or -1
        ("down", np.int32),  # streams to the children, from here
        ("down_end", np.int32),
        ("slots", np.int32),  # its first row of the table of slots
        ("order", np.int32),  # its first row of the expected positions; per child and message slot
        ("unit", np.int32),  # stream through the aggregation unit, or -1
        ("everyone", np.uint64),  # bits of the workers below
    ],
    align=True,
)

SERVER_ROW = np.dtype(
    [
        ("job", np.int32),
        ("down", np.int32),  # stream to its switch
        ("fragments", np.int32),  # its first row of the table of fragments; one per message
        ("register", np.int32),  # its first register
        ("n_registers", np.int32),
        ("everyone", np.uint64),
    ],
    align=True,
)

FRAGMENT_ROW = np.dtype([("seen", np.uint64), ("slot", np.int32)], align=True)

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


class Tables(NamedTuple):
    """All state of a run; changed in place."""

    clock: Any
    event: Any
    bucket: Any
    bits: Any
    middle: Any
    heap: Any
    link: Any
    buffer: Any
    packet: Any
    stream: Any
    route: Any
    job: Any
    tensor: Any
    worker: Any
    entry: Any
    aggregator: Any
    server: Any
    fragment: Any
    slot: Any
    order: Any
    log: Any
    sample: Any
    tap: Any
    transport: Any
    flow: Any
    receiver: Any
    message: Any
    queue: Any
    first: Any
    successor: Any
    early: Any
    round_first: Any
    round_block: Any
    owned: Any
    filled: Any
