"""The rules of a run in the kernels' units: what does not change while it lasts."""

from __future__ import annotations

import math

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import fabric_oversubscription
from commsim.packets.codes import HPCC, WINDOW
from commsim.packets.event_rows import ENDLESS, LAST_TIME, LONGEST, NEVER, PS
from commsim.packets.links.equal_cost_links import EqualCostWays
from commsim.packets.transports.control_constants import NoConstants, in_kernel_units
from commsim.packets.transports.spraying import BALANCINGS, Spraying

LATE = 1e9  # ps: 1 ms, the least timeout of RoCE's NICs, where packets may wait in queues without end
REFERENCE = 100e9 / 8 * 12e-6  # bytes: 100 Gbit/s times 12 us, which NSCC's constants are for

Rules = dict[str, float]

RULES_ROW = np.dtype(
    [
        ("transport", np.int64),
        ("balancing", np.int64),
        ("entropies", np.int64),
        ("trims", np.bool_),
        ("on_path", np.bool_),  # packets keep to a path; answers go before data where they do not
        ("goes_back", np.bool_),  # after a loss all since then is sent again
        ("counts_packets", np.bool_),  # a window over one path is of packets, however small, and so are their answers
        ("queue", np.int64),  # bytes of data before a switch's link with which a packet still finds room
        ("ecn_max", np.int64),  # bytes from which all packets are marked, 0 for never;
        ("ecn_min", np.int64),  # and from which some are, at random
        ("marks_last", np.bool_),  # also by links to hosts
        ("mtu", np.int64),  # bytes on the wire of a full packet,
        ("header", np.int64),  # of its header, and of a packet that was trimmed,
        ("answer", np.int64),  # and of an answer
        ("ack_every", np.int64),  # bytes
        ("window", np.float64),  # bytes at first and, for the receiver's credit, in all
        ("give_up", np.int64),  # ps
        ("follows_rtt", np.bool_),  # a sender waits at least for the round trips that it measured, and longer each time
        ("rtt", np.int64),  # ps: of the network without queues
        ("ps_per_byte", np.float64),  # of the hosts
        # NSCC
        ("target", np.float64),  # ps of queueing
        ("scale", np.float64),  # product of rate and round trip over that of 100 Gbit/s and 12 us
        ("proportional", np.float64),  # bytes/ps
        ("fair", np.float64),  # bytes
        ("steady", np.float64),  # bytes
        # credit
        ("per_pull", np.int64),  # bytes
        ("pull_share", np.float64),  # of the link's rate
        ("flowlet_gap", np.int64),  # ps
        ("choices", np.int64),  # links that an adaptive switch compares
        ("most_marked", np.float64),  # chance of a mark just below the queue that makes it certain
        ("paces", np.bool_),  # messages have rates
        # Swift
        ("delay_target", np.float64),  # ps of queueing
        ("delay_range", np.float64),  # ps by which it grows for small windows
        ("window_step", np.float64),  # packets a round trip: of Swift and HPCC, in bytes
        ("shrinking", np.float64),  # share of the excess delay (Swift), of the gradient (TIMELY)
        ("most_shrunk", np.float64),
        # HPCC
        ("load", np.float64),  # share of a link that is aimed at
        ("stages", np.int64),
        # TIMELY
        ("low", np.float64),  # ps
        ("high", np.float64),
        ("smoothing", np.float64),
        ("rate_step", np.float64),  # bytes/ps, also of DCQCN
        ("segment", np.int64),  # bytes between two looks at the round trip
        ("patched", np.bool_),
        # DCQCN
        ("notifies", np.bool_),  # a receiver tells of marks by notifications
        ("gain", np.float64),
        ("notify_every", np.int64),  # ps
        ("notify_delay", np.int64),
        ("decay_time", np.int64),
        ("rise_time", np.int64),
        ("rise_bytes", np.int64),
        ("recovery", np.int64),
        ("fast_step", np.float64),  # bytes/ps
        ("least", np.float64),
        ("function", np.int64),  # address of a user's,
        ("hears_sent", np.bool_),  # which is told of what is sent, too
    ]
)


def rules_of(network: Network, ways: EqualCostWays, spraying: Spraying, *, flaps: bool = False) -> Rules:
    """Settle what the kernels need to know, in bytes and picoseconds.

    Parameters
    ----------
    network, ways, spraying
        Same as in :func:`commsim.packets.tables.build`.
    flaps : bool
        Whether links go down, so that packets are lost.
    """
    rates = network.bandwidth[ways.links[: len(ways.hosts)]]
    slowest = float(rates.min()) if len(rates) else 1.0  # a host by itself has no link
    mtu = spraying.payload + spraying.header
    wire = PS / slowest
    rtt = ways.n_hops * (2 * float(network.latency[ways.links].max(initial=0.0)) * PS + (mtu + spraying.header) * wire)
    if rtt > LONGEST * PS:
        raise InputError(f"{network.name}: packets are simulated where a round trip takes up to {LONGEST:g} s, and "
                         f"here it takes {rtt / PS:.3g} s: use the flow engine")  # fmt: skip
    product = rtt / wire
    rules, constants = spraying.settled
    least = max(product, rules.depth * PS / wire)
    queue = spraying.queue
    if queue is None:
        endless = spraying.on_path and rules.usual_path  # others are slowed by marks and trimming
        queue = math.inf if endless else math.ceil(least / mtu) * mtu
    deep = queue if math.isfinite(queue) else 0.0  # a queue without end marks where the transport says, or never
    loss = network.loss if spraying.loss is None else spraying.loss
    loses = (
        flaps
        or math.isfinite(queue)
        or bool(np.isfinite(network.buffer).any() or math.isfinite(spraying.shared_buffer) or np.any(loss))
    )
    begin, end, most_marked = rules.red or (0.25 * deep * wire / PS, 0.75 * deep * wire / PS, 1.0)
    marks = spraying.ecn if spraying.ecn is not None else (begin * PS / wire, end * PS / wire, most_marked)
    target = 0.75 * rtt if spraying.trims else rtt
    scale = product / REFERENCE
    # a window beside a rate, HPCC's, begins with a link's worth
    window = (product if rules.paces else 1.5 * product) if rules.has_window else 1e15
    narrow = fabric_oversubscription(network) if rules.narrows else 1.0
    return {
        "transport": rules.kind,
        "balancing": BALANCINGS[spraying.balancing],
        "goes_back": spraying.recovery == "go-back-n",
        "counts_packets": spraying.on_path and rules.kind == WINDOW,
        "mtu": mtu,
        "answer": spraying.header if spraying.ack_bytes is None else spraying.ack_bytes,
        "ack_every": (spraying.ack_every or rules.ack_packets) * mtu or rules.ack_every,
        "window": spraying.window if spraying.window is not None else window,
        "follows_rtt": not math.isfinite(queue),
        "give_up": _patience(spraying, queue * wire, loses),
        "rtt": rtt,
        "ps_per_byte": wire,
        "target": target,
        "scale": scale,
        "proportional": 4 * spraying.payload * scale * (target / 12e6) / target,
        "fair": 5 * spraying.payload * scale,
        "steady": 0.15 * spraying.payload * scale,
        "per_pull": rules.per_pull * (spraying.payload if rules.per_pull > 1 else mtu),
        "pull_share": rules.share,
        "least_rate": max(0.01, 0.9 / narrow) if narrow > 1.0 + 1e-9 else 1.0,
        "flowlet_gap": round(PS * spraying.flowlet_gap) or rtt,
        "queue": min(queue, ENDLESS),
        "ecn_min": min(marks[0], ENDLESS),
        "ecn_max": min(marks[1], ENDLESS),
        "most_marked": marks[2] if len(marks) > 2 else 1.0,
        "n_notes": ways.n_hops - 1 if rules.kind == HPCC else 0,
        **{name: getattr(spraying, name) for name in ("entropies", "trims", "on_path", "header", "choices")},
        **{name: getattr(rules, name) for name in ("marks_last", "paces", "patched", "notifies")},
        **in_kernel_units(rules.like or NoConstants(), rules.patched, rtt, wire, mtu),
        **in_kernel_units(constants, rules.patched, rtt, wire, mtu),
    }


def _patience(spraying: Spraying, full_queue: float, loses: bool) -> float:
    """Time without an answer after which a packet is sent again, ps; for ever where nothing can be lost."""
    if not loses:
        return NEVER
    if spraying.rto is not None:
        return min(spraying.rto * PS, float(LAST_TIME))
    # the deepest queues on the way, three times two classes, after 15 us
    return min(15e6 + 6 * full_queue, float(LAST_TIME)) if math.isfinite(full_queue) else LATE
