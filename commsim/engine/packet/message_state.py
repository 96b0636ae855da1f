"""The tables of ordinary messages, packet by packet, one row per thing.

A *flow* is a wire of the plan, seen from its sender: a stream of packets numbered from 0 through all its messages. Its
*receiver* has the same number. A flow has at most one packet in its host's queue, so flows of one host take turns.
"""

from __future__ import annotations

import numpy as np

# transports
WINDOW, DCTCP, DCQCN = range(3)

# timers of a flow, and their bits in `pending`
GO, TIMEOUT, RISE = range(3)
N_TIMERS = (1, 2, 3)  # of each transport

UNLIMITED = 1 << 60

TRANSPORT_ROW = np.dtype(
    [
        ("kind", np.uint8),
        ("flags", np.uint8),  # of data packets
        ("keeps", np.bool_),  # whether receivers keep packets that come early
        ("ack_every", np.int32),  # packets
        ("packet_size", np.int32),  # bytes on the wire
        ("ack_size", np.int32),
        ("n_words", np.int32),  # of 64 packets each, that a receiver can note as early
        ("max_window", np.int64),  # packets that may be outstanding
        ("rto", np.int64),  # ps; 0 for never
        ("gain", np.float64),
        ("cnp_interval", np.int64),  # ps
        ("decay_time", np.int64),
        ("rise_time", np.int64),
        ("rise_bytes", np.int64),
        ("n_recovery", np.int32),  # rises that go half-way back
        ("additive", np.float64),  # bytes per ps
        ("hyper", np.float64),
        ("min_rate", np.float64),
    ],
    align=True,
)

FLOW_ROW = np.dtype(
    [
        ("next", np.int64),  # packet to send
        ("una", np.int64),  # the first that is not acknowledged
        ("limit", np.int64),  # end of the message that has begun
        ("fresh", np.int64),  # the first that was never sent
        ("resend", np.int64),  # to be repeated before all others, or -1
        ("free_at", np.int64),  # ps: not before this, by the rate
        ("window", np.float64),  # packets
        ("dup", np.int32),  # acknowledgements that repeated the last one
        ("queued", np.bool_),  # a packet waits in the host's queue
        ("recovering", np.bool_),
        ("local", np.bool_),  # both ends are one node
        ("pending", np.uint8),  # timers
        ("first", np.int64),  # packet of the message that has begun
        ("last_size", np.int32),  # bytes of that message's last packet on the wire
        ("stream", np.int32),
        ("message", np.int32),  # place in `queue` of the message that is being sent, or is next
        ("end", np.int32),
        ("deadline", np.int64),
        ("round_trip", np.int64),  # smoothed, ps; 0 before the first
        ("deviation", np.int64),
        ("recover", np.int64),  # packet whose acknowledgement ends the recovery
        ("alpha", np.float64),  # estimate of the share of marks
        ("n_acks", np.int64),  # of this round,
        ("n_marks", np.int64),  # and those with a mark
        ("round_end", np.int64),
        ("cut_end", np.int64),
        ("threshold", np.float64),  # of slow start
        ("backoff", np.int64),
        ("ready", np.int64),  # ps: when both ends have entered the collective
        ("rate", np.float64),  # bytes per ps
        ("line", np.float64),
        ("target", np.float64),
        ("alpha_at", np.int64),
        ("rise_at", np.int64),
        ("n_sent", np.int64),  # bytes since the last rise by bytes
        ("by_time", np.int32),  # rises since the last cut
        ("by_bytes", np.int32),
    ],
    align=True,
)

RECEIVER_ROW = np.dtype(
    [
        ("expected", np.int64),  # packet
        ("boundary", np.int64),  # end of the message that is being received
        ("quiet_until", np.int64),  # ps: no congestion notification before
        ("message", np.int32),  # its place in `queue`
        ("end", np.int32),
        ("back", np.int32),  # stream of acknowledgements
        ("early", np.int32),  # its first word of packets that came early
        ("since_ack", np.int32),
        ("n_early", np.int32),  # packets that came early
        ("nacked", np.bool_),
    ],
    align=True,
)

MESSAGE_ROW = np.dtype(
    [
        ("first", np.int64),  # packets of its flow
        ("end", np.int64),
        ("start", np.int64),  # ps; -1 before
        ("sent", np.int64),
        ("done", np.int64),
        ("flow", np.int32),
        ("waiting", np.int32),  # messages that are not yet sent, or complete
        ("last_size", np.int32),  # bytes of its last packet on the wire
    ],
    align=True,
)
