"""The tables of packets, flows, hosts and the run that the kernels work on, one row per thing; each a NumPy record.

Events wait in the timing wheel of the packet engine; a packet makes one for each link, and one as it leaves its host.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.packets.event_rows import EventQueue, Row, Rows

N_FLOWLETS = 4096  # that a switch tells apart
N_COUNTED = 5  # of a sample, before what is of links: its time, packets sent again, trimmed and marked, busy slots
STARTED, SENT, COMPLETE = range(3)  # times of a message
N_RECYCLED = 256  # entropies of good acknowledgements that a sender keeps

_PACKET_FIELDS = {
    # name: type and place; what only one kind of packet needs lies where another kind has something else
    "when": (np.int64, 0),  # ps: it arrives at the end of its link; in a queue of classes, its key; before, a link
    "sent": (np.int64, 8),  # ps: the data packet left its sender; acknowledgements return it
    "amount": (np.int64, 16),  # bytes received in all, or the sum of credit asked for or given
    "bitmap": (np.uint64, 24),  # of an acknowledgement: what has come of the 64 packets from `base_of` it on
    "flow": (np.int32, 32),
    "number": (np.int32, 36),  # of the data packet, or of the one that is answered; -1 before a flow's turn
    "expected": (np.int32, 40),  # of an acknowledgement: first packet that the receiver lacks
    "n_noted": (np.int32, 40),  # of data: the links that have noted their state
    "came_over": (np.int32, 44),  # link, or -1
    "next": (np.int32, 48),  # in a list, or -1
    "size": (np.int32, 52),  # bytes on the wire
    "target": (np.int32, 56),  # host
    "hop": (np.int32, 56),  # place in the table of routes, where the packet follows a stream
    "entropy": (np.uint16, 60),
    "kind": (np.uint8, 62),
    "flags": (np.uint8, 63),
    # of jobs that switches aggregate, as in `packets.event_rows`
    "tag": (np.int64, 8),
    "message": (np.int32, 16),
    "worker": (np.int32, 20),
    "slot": (np.int32, 24),
    "position": (np.int16, 28),
    "stream": (np.int32, 32),
}
PACKET_ROW = np.dtype(
    {
        "names": list(_PACKET_FIELDS),
        "formats": [kind for kind, _ in _PACKET_FIELDS.values()],
        "offsets": [place for _, place in _PACKET_FIELDS.values()],
        "itemsize": 64,
    }
)

HOST_ROW = np.dtype(
    [
        ("n_ready", np.int32),  # flows that wait for their turn in its queue
        ("pull_head", np.int32),  # messages to it that want credit
        ("pull_tail", np.int32),
        ("idle_head", np.int32),  # and those that have what they asked for
        ("idle_tail", np.int32),
        ("pacer", np.int64),  # ps: credit may be given next; NEVER while nobody wants any
        ("pacer_free", np.int64),  # ps: and not before
        # the receiver's rate where the network is narrower than its hosts
        ("rate_at", np.int64),  # ps: it is reconsidered
        ("rate", np.float64),  # share of the link's
        ("congestion", np.float64),  # smoothed share of marked packets
        ("n_got", np.int32),  # whole packets since, and marked ones of them
        ("n_marked", np.int32),
    ],
    align=True,
)

# Eight lines of cache: the first two have what a packet needs at its sender, the third what it needs at its receiver.
# One flow: the messages of one sender to one receiver, whose packets are numbered from 0 through all of them.
FLOW_ROW = np.dtype(
    [
        # what every packet needs at its sender,
        ("src", np.int32),
        ("dst", np.int32),
        ("first", np.int32),  # packet of the message that has begun,
        ("limit", np.int32),  # and the first after it
        ("last_size", np.int32),  # bytes on the wire of that message's last packet
        ("highest", np.int32),  # packets sent once
        ("acknowledged", np.int32),  # all packets before this one have been
        ("n_resend", np.int32),
        ("n_packets", np.int32),  # of all its messages
        ("n_ready", np.int16),  # times that it waits for its turn at the host's link,
        ("turns", np.int16),  # and how often it may: its share of the link
        ("pending", np.uint8),  # timers, as bits
        ("rank", np.uint8),  # class of its packets; the least goes first
        ("rule", np.uint8),  # row of its rules
        ("local", np.bool_),  # both ends are one host
        ("ring_mask", np.int32),  # its entries in `mark`, `sent_at` and `tried`, used in a circle,
        ("ring", np.int64),  # and the first of them
        ("window", np.float64),  # bytes
        # and its answer
        ("in_flight", np.int64),  # bytes
        ("give_up", np.int64),  # ps: look for a packet without an answer
        ("free_at", np.int64),  # ps: the next packet may go
        ("cap", np.float64),  # bytes/ps that its job may send at most
        ("known", np.int64),  # bytes received, as acknowledged
        ("credit", np.int64),  # bytes
        ("finished_at", np.int64),  # ps: last acknowledgement at the sender
        ("message", np.int32),  # place in `queue` of the message that is being sent, or is next
        ("end", np.int32),  # of its messages in `queue`
        # what it needs at its receiver
        ("job", np.int32),
        ("expected", np.int32),
        ("latest", np.int32),  # highest number that came
        ("n_early", np.int32),  # packets that came before one that is expected
        ("unanswered", np.int64),  # bytes
        ("received", np.int64),  # bytes on the wire
        ("notified_at", np.int64),  # ps: the receiver sent its last notification, or will
        ("received_at", np.int64),  # ps: its last byte came; -1 before
        ("owes", np.bool_),  # an acknowledgement when nothing is missing
        ("is_pulling", np.bool_),
        ("is_idle", np.bool_),
        ("blind", np.bool_),  # has heard nothing yet
        ("next_pull", np.int32),
        ("asked", np.int64),  # bytes of credit
        # credit, messages, and losses
        ("ready", np.int64),  # ps: both ends have begun
        ("pulled", np.int64),  # bytes of credit got in all
        ("given", np.int64),
        ("base_rtt", np.int64),  # ps
        ("delay", np.float64),  # ps: smoothed
        ("most", np.float64),  # bytes: of the window
        ("first_resend", np.int32),  # none before it is to be sent again
        ("round_end", np.int32),  # number of the packet that ends it
        ("cut_end", np.int32),  # and of the first packet that was sent after the last cut (DCTCP)
        ("trimmed", np.bool_),  # since the window was last compared
        ("is_fast", np.bool_),
        # windows that adapt
        ("gain", np.float64),  # bytes squared that the window is to grow by, times itself
        ("gained", np.int64),  # bytes acknowledged since it grew
        ("achieved", np.int64),  # bytes acknowledged since the window was last compared with them
        ("compare_at", np.int64),  # ps
        ("ignored", np.int64),  # bytes answered since the window collapsed,
        ("to_ignore", np.int64),  # of those that were in flight
        ("fast", np.float64),  # bytes acknowledged in a row without a queue
        ("shrunk_at", np.int64),  # ps
        # DCTCP, and round trips
        ("marked", np.float64),  # smoothed share of marked bytes (DCTCP)
        ("round_bytes", np.int64),  # bytes acknowledged in the present round, and marked ones of them
        ("round_marked", np.int64),
        ("grown_at", np.int64),
        ("round_trip", np.int64),  # ps, smoothed; 0 before the first
        ("deviation", np.int64),
        ("backoff", np.int64),  # timeouts in a row
        ("next_idle", np.int32),
        ("stage", np.int32),  # rounds (HPCC) or rises in a row (TIMELY)
        # a rate that adapts
        ("rate", np.float64),  # bytes/ps
        ("aim", np.float64),  # the rate that DCQCN goes half-way to, or HPCC's window at the last round, in bytes
        ("rise_at", np.int64),  # ps: the next rise by time
        ("cut_at", np.int64),  # ps: notifications take effect; NEVER without one
        ("next_cut_at", np.int64),
        ("last_cut_at", np.int64),
        ("decayed_at", np.int64),  # ps: the estimate of congestion was last brought up to date
        ("paced_bytes", np.int64),  # since the last rise by bytes
        # more of that, and entropies
        ("heard", np.float64),  # HPCC: smoothed load of the path; TIMELY: smoothed difference of round trips, in ps
        ("last_rtt", np.int64),  # ps
        ("by_time", np.int32),  # rises since the last cut (DCQCN)
        ("by_bytes", np.int32),
        ("turn", np.int32),  # entropies
        ("flip", np.int32),
        ("upper", np.int32),
        ("recycled_head", np.int32),
        ("n_recycled", np.int32),
        # acknowledgements
        ("asking", np.int32),  # the receiver was asked to answer all packets before this one,
        ("answer_to", np.int32),  # and does so by itself before this one
        ("tapped", np.bool_),  # its packets are recorded on tapped links, where only those of some flows are
        ("resent", np.int64),  # bytes sent again
    ],
    align=True,
)

# what a link tells the data packets that leave it (HPCC)
NOTE_ROW = np.dtype(
    [
        ("queue", np.int64),  # bytes
        ("sent", np.int64),  # bytes that have left the link
        ("when", np.int64),  # ps
        ("link", np.int32),  # -1 for none
    ],
    align=True,
)

FLOWLET_ROW = np.dtype([("when", np.int64), ("link", np.int32)], align=True)

STATE_ROW = np.dtype(
    [
        ("now", np.int64),  # ps
        ("seed", np.int64),  # of losses
        ("draws", np.uint64),  # state of the generator of all else
        ("n_hosts", np.int64),
        ("n_edges", np.int64),  # switches with hosts
        ("n_classes", np.int64),  # of packets
        ("n_entropies", np.int64),  # of a flow at most
        ("n_notes", np.int64),  # links of the longest path whose state packets carry; 0 for none
        ("pauses", np.bool_),  # switches pause links
        ("shares", np.bool_),  # links of a switch share its buffer
        ("least_rate", np.float64),  # share that a receiver with credit never goes below; 1 for a fixed rate
        ("first_timer", np.int64),  # events: timers of flows,
        ("first_pacer", np.int64),  # then receivers that give credit, and that reconsider their rates,
        ("first_rate", np.int64),
        ("first_worker_timer", np.int64),  # and workers; the last event is a change of links
        ("n_unfinished", np.int64),  # flows and workers
        ("first_free", np.int32),
        ("n_free", np.int64),
        ("sent_head", np.int64),  # packets that the present event has sent, or -1
        ("sent_tail", np.int64),
        ("most_needed", np.int64),  # packets that an event may make
        ("n_sent", np.int64),  # data packets, and those sent again
        ("retransmissions", np.int64),
        ("n_acks", np.int64),
        ("n_nacks", np.int64),
        ("n_pulls", np.int64),
        ("timeouts", np.int64),
        ("duplicates", np.int64),
        ("out_of_order", np.int64),
        ("packet_hops", np.int64),
        ("n_trimmed", np.int64),
        ("drops_loss", np.int64),
        ("drops_full", np.int64),
        ("marks", np.int64),
        ("n_pauses", np.int64),  # times that a link was paused for a class
        ("n_notified", np.int64),
        ("events", np.int64),  # these of jobs that switches aggregate:
        ("collisions", np.int64),
        ("busy_slots", np.int64),
        ("n_log", np.int64),  # records in the log, and messages that it makes
        ("n_messages", np.int64),
        ("sample_at", np.int64),  # ps: the links are looked at next; NEVER for not at all,
        ("sample_every", np.int64),  # ps
        ("n_samples", np.int64),
        ("n_tapped", np.int64),  # packets recorded on tapped links,
        ("taps_flows", np.bool_),  # only those of some flows,
        ("tap_spare", np.int64),  # rows that are left free for what one event may then record,
        ("n_missed", np.int64),  # and packets that found no room
        ("look_at", np.int64),  # ps: timers stop the run from here on, to look for links that pause each other
    ]
)


class RunState(NamedTuple):
    """All state of a run.

    Parameters
    ----------
    state, rules : STATE_ROW, RULES_ROW[n_rules]
        Time and counters; what does not change: rules of the run, then of jobs with a transport of their own.
    link, host, flow, packet : LINK_ROW[n_links], HOST_ROW[n_hosts], FLOW_ROW[n_flows], PACKET_ROW[n]
        Links, hosts, messages, packets under way and free ones.
    way, ways : int32[n_switches * n_edges + 1], int32[n]
        Index of the first link that leads packets of a switch on to the switch of a host, and the links.
    edge, edge_switch : int32[n_hosts]
        Number of the switch that a host is on among those with hosts, and among all.
    salt : uint64[n_switches]
        Salt of each switch's hash.
    times : int64[3, n_messages], ps
        When each message started, was sent and was complete; -1 before.
    receiver, message, queue, first_successor, successor, adding, adder_free
        Same as in :class:`commsim.packets.hosts.work.FlowWork`; when each node has added all, in ps.
    carried : int64[n_jobs * n_links], bytes
        Bytes of each job that left each link; empty where there is one job.
    mark, sent_at : uint8[n], int32[n]
        State of each packet of a message; when it was sent last, in ns.
    tried : uint16[n]
        Entropy that each packet was sent with; empty where a sender does not learn from what is lost.
    penalty, recycled : uint8[n_flows * n_entropies], uint16[n_flows * N_RECYCLED]
        How often an entropy is to be left out; entropies to be used again.
    flowlet : FLOWLET_ROW[n_switches * N_FLOWLETS]
        Time at which a packet of a message, or of another one with the same hash, passed last, and its next hop; -1
        before.
    events : EventQueue
        Events that are pending.
    note, noted : NOTE_ROW[n_packets * n_notes], NOTE_ROW[n_flows * n_notes]
        What the links on a packet's path said, and what they said to the last packet of a message that was answered.
    watched, sample : int32[n], int64[n_rows * (N_COUNTED + 2 * n)]
        Links that are looked at; time in ps, queued and sent bytes of each.
    stream, route : STREAM_ROW[n_streams], ROUTE_ROW[n_hops]
        Ways of packets that keep to one: of each flow there, then of each flow back, where flows do; then of jobs.
    buffer : BUFFER_ROW[n_buffers]
        Buffers that links of a switch share.
    held, last_key : int64[n_links * n_classes]
        Bytes that came over each link and are still in the next node's queues; key of the last packet that was queued.
    class_weight : float64[n_classes]
        Share of a link that each class may have; empty where the first class goes first.
    tap : TAP_ROW[n]
        Room for packets that are recorded.
    engine_of : int32[2 * n_flows]
        Group of message engines that each flow's messages occupy when they are sent, and when they are received; -1
        where the link alone says when. Empty where no group is used by more links than it has engines.
    engine, engine_free : int64[n_groups + 1], int64[n_engines]
        First engine of each group; and when each engine is through with what it has, in ps.
    told : TOLD_ROW[n_flows]
        What a user's congestion control is told; empty where there is none.
    """

    state: Row
    rules: Rows
    link: Rows
    host: Rows
    flow: Rows
    packet: Rows
    way: NDArray[np.int32]
    ways: NDArray[np.int32]
    edge: NDArray[np.int32]
    edge_switch: NDArray[np.int32]
    salt: NDArray[np.uint64]
    receiver: Rows
    message: Rows
    times: NDArray[np.int64]
    queue: NDArray[np.int32]
    first_successor: NDArray[np.int64]
    successor: NDArray[np.int32]
    adding: NDArray[np.int64]
    adder_free: NDArray[np.int64]
    carried: NDArray[np.int64]
    mark: NDArray[np.uint8]
    sent_at: NDArray[np.int32]
    tried: NDArray[np.uint16]
    penalty: NDArray[np.uint8]
    recycled: NDArray[np.uint16]
    flowlet: Rows
    events: EventQueue
    note: Rows
    noted: Rows
    watched: NDArray[np.int32]
    sample: NDArray[np.int64]
    stream: Rows
    route: Rows
    buffer: Rows
    held: NDArray[np.int64]
    last_key: NDArray[np.int64]
    class_weight: NDArray[np.float64]
    tap: Rows
    engine_of: NDArray[np.int32]
    engine: NDArray[np.int64]
    engine_free: NDArray[np.int64]
    told: Rows
