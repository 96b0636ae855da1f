"""Messages over a network whose hosts spray packets: what is to be simulated, its run, and what came of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.jit import compile_all
from commsim.core.network import Network
from commsim.routing.network_metrics import most_oversubscribed

from . import fabric_state as tables
from .credit_kernel import INTERVAL
from .fabric_state import DONE, FULL, NEVER, PS, STUCK, Fabric, Row, Rows
from .host_kernel import run as run_kernel
from .spraying import BALANCINGS, MOST_ENTROPIES, TRANSPORTS, Messages, Spraying
from .ways import Ways, ways_of

MOST_EARLY = 4096  # packets that a receiver can hold before one that it lacks
REFERENCE = 100e9 / 8 * 12e-6  # bytes: 100 Gbit/s times 12 us, which NSCC's constants are for


@dataclass(frozen=True, slots=True, eq=False)
class SprayedRun:
    """What came of a run.

    Parameters
    ----------
    received, finished : float64[n_messages], s
        From a message's start until its receiver has it, and until its sender knows.
    delay : float64[n_messages], s
        Of queueing, smoothed, as a sender whose transport measures it knew it at the end.
    received_bytes : int64[n_messages], bytes
        On the wire, each packet once.
    counters : dict of str to int
        Packets sent, sent again, trimmed, dropped, marked and so on.
    link_bytes, link_peak : int64[n_links], bytes
        What left each link, in the order of the network's; the most data that queued before it.
    rules : dict of str to float
        Window, queue, marks and round trip that were used, in bytes and seconds.
    """

    received: NDArray[np.float64]
    finished: NDArray[np.float64]
    delay: NDArray[np.float64]
    received_bytes: NDArray[np.int64]
    counters: dict[str, int]
    link_bytes: NDArray[np.int64]
    link_peak: NDArray[np.int64]
    rules: dict[str, float] = field(default_factory=dict)


def simulate(network: Network, messages: Messages, spraying: Spraying) -> SprayedRun:
    """Send messages over a network, packet by packet.

    Parameters
    ----------
    network : Network
        Hosts with one link each, and switches; every link needs some latency.
    messages : Messages
        Who sends what to whom.
    spraying : Spraying
        Transport, load balancing and switches.

    Returns
    -------
    SprayedRun
        Times and counts.

    Raises
    ------
    InputError
        If the network has other nodes, or a link has no latency.
    """
    compile_all()
    ways = ways_of(network)
    fabric = _build(network, ways, messages, spraying)
    while (why := run_kernel(fabric)) != DONE:
        if why == STUCK:
            raise RuntimeError("nothing is left that could happen, and messages are unfinished: a bug")
        if why == FULL and fabric.state["n_free"] < fabric.state["most_needed"]:
            fabric = fabric._replace(packet=_grown(fabric))
    return _result(ways, fabric)


def _build(network: Network, ways: Ways, messages: Messages, spraying: Spraying) -> Fabric:
    rate, latency = network.bandwidth[ways.links], np.round(network.latency[ways.links] * PS).astype(np.int64)
    if latency.min(initial=1) < 1:
        raise InputError("sprayed transports need links with some latency, at least 1 ps")
    n_hosts, n_switches = len(ways.hosts), len(ways.switches)
    rules = _rules(network, ways, spraying)
    generator = np.random.default_rng(spraying.seed)
    link = np.zeros(len(ways.links), tables.LINK_ROW)
    for name in ("serving", "low_head", "low_tail", "high_head", "high_tail", "pipe_head", "pipe_tail"):
        link[name] = -1
    link["ps_per_byte"], link["latency"], link["to"] = PS / rate, latency, ways.to
    link["room"] = np.minimum(rules["queue"], network.buffer[ways.links])
    link["loss"] = network.loss[ways.links]
    if link["room"].min(initial=NEVER) < rules["mtu"]:
        raise InputError(f"a link's buffer holds at least one packet of {rules['mtu']} bytes")
    marks = np.ones(len(link), bool)
    marks[: 2 * n_hosts] = TRANSPORTS[spraying.transport].marks_last  # their receivers keep the last queue short
    for name in ("ecn_min", "ecn_max"):
        link[name] = np.where(marks, rules[name], 0)
    flow, ring = _flows(messages, spraying, rules, generator)
    host, flow_of = _hosts(messages, n_hosts, rules, generator)
    state = np.zeros((), tables.STATE_ROW)
    state["span"], state["draws"] = latency.min(), generator.integers(1 << 62)
    state["n_hosts"], state["n_switches"], state["n_edges"] = n_hosts, n_switches, int(ways.edge.max()) + 1
    state["n_unfinished"], state["first_free"] = len(flow), -1
    fastest = PS / rate.max() * spraying.header
    state["most_needed"] = 4 * int(state["span"] / fastest) + 4 * int(host["n_flows"].max(initial=0)) + 64
    by_flowlet = spraying.balancing == "flowlet"
    let = np.zeros(n_switches * tables.N_FLOWLETS if by_flowlet else 1, tables.FLOWLET_ROW)
    let["link"] = -1
    row = np.zeros((), tables.RULES_ROW)
    for name in tables.RULES_ROW.names or ():
        row[name] = rules[name]
    fabric = Fabric(
        _row(state), _row(row), link, host, flow, np.zeros(0, tables.PACKET_ROW), ways.inlet, ways.inlets, ways.way,
        ways.ways, ways.edge, ways.edge_switch, generator.integers(1 << 63, size=n_switches, dtype=np.uint64), flow_of,
        np.zeros(ring, np.uint8), np.zeros(ring, np.int32), np.zeros(len(flow) * spraying.entropies, np.uint8),
        np.zeros(len(flow) * tables.N_RECYCLED, np.uint16), let, np.full(2 * tables.N_BINS, -1, np.int32),
    )  # fmt: skip
    return fabric._replace(packet=_grown(fabric))


def _row(table: NDArray[np.void]) -> Row:
    """Take the one row of a table, which is not a copy of it."""
    row: Row = table.reshape(1)[0]
    return row


def _grown(fabric: Fabric) -> Rows:
    """Double the packets' table; the new rows are free."""
    old, state = fabric.packet, fabric.state
    new = _in_lines(max(2 * len(old), int(2 * state["most_needed"])))
    new[: len(old)] = old
    new["after"][len(old) : -1] = np.arange(len(old) + 1, len(new))
    new["after"][-1] = state["first_free"]
    state["first_free"] = len(old)
    state["n_free"] += len(new) - len(old)
    return new


def _in_lines(n: int) -> Rows:
    """Make rows for packets of which each fills a line of the processor's cache, not parts of two."""
    size = tables.PACKET_ROW.itemsize
    room = np.zeros((n + 1) * size, np.uint8)
    begin = -room.ctypes.data % size
    return room[begin : begin + n * size].view(tables.PACKET_ROW)


def _rules(network: Network, ways: Ways, spraying: Spraying) -> dict[str, float]:
    """Settle what the kernels need to know, in bytes and picoseconds."""
    slowest = float(network.bandwidth[ways.links[: len(ways.hosts)]].min())
    mtu = spraying.payload + spraying.header
    wire = PS / slowest
    rtt = ways.n_hops * (2 * float(network.latency[ways.links].max()) * PS + (mtu + spraying.header) * wire)
    product = rtt / wire
    queue = spraying.queue if spraying.queue is not None else math.ceil(product / mtu) * mtu
    marks = spraying.ecn if spraying.ecn is not None else (0.25 * queue, 0.75 * queue)
    target = 0.75 * rtt if spraying.trims else rtt
    scale = product / REFERENCE
    one = TRANSPORTS[spraying.transport]
    narrow = most_oversubscribed(network) if one.narrows else 1.0
    return {
        "transport": one.kind,
        "balancing": BALANCINGS[spraying.balancing],
        "entropies": spraying.entropies,
        "trims": spraying.trims,
        "mtu": mtu,
        "header": spraying.header,
        "ack_every": one.ack_every,
        "window": spraying.window if spraying.window is not None else 1.5 * product,
        # the deepest queues on the way, three times two classes, after 15 us
        "give_up": 15e6 + 6 * queue * wire,
        "rtt": rtt,
        "ps_per_byte": wire,
        "target": target,
        "scale": scale,
        "proportional": 4 * spraying.payload * scale * (target / 12e6) / target,
        "fair": 5 * spraying.payload * scale,
        "steady": 0.15 * spraying.payload * scale,
        "per_pull": one.per_pull * (spraying.payload if one.per_pull > 1 else mtu),
        "pull_share": one.share,
        "least_rate": max(0.01, 0.9 / narrow) if narrow > 1.0 + 1e-9 else 1.0,
        "flowlet_gap": round(PS * spraying.flowlet_gap) or rtt,
        "choices": spraying.choices,
        "queue": queue,
        "ecn_min": marks[0],
        "ecn_max": marks[1],
    }


def _flows(
    messages: Messages, spraying: Spraying, rules: dict[str, float], generator: np.random.Generator
) -> tuple[Rows, int]:
    """Fill the messages' table; return it with the length of their rings in all."""
    n = len(messages.src)
    flow = np.zeros(n, tables.FLOW_ROW)
    count = -(-messages.nbytes // spraying.payload)
    if n and count.max() >= 1 << 31:
        raise InputError(f"a message has fewer than 2**31 packets, got {count.max()}")
    flow["src"], flow["dst"], flow["n_packets"] = messages.src, messages.dst, count
    flow["last_size"] = messages.nbytes - (count - 1) * spraying.payload + spraying.header
    flow["start"] = np.round(messages.start * PS)
    flow["received_at"] = flow["finished_at"] = -1
    length = 1 << np.ceil(np.log2(np.minimum(count, MOST_EARLY))).astype(np.int64)
    flow["ring"], flow["ring_mask"] = np.cumsum(length) - length, length - 1
    flow["window"] = flow["most"] = rules["window"]
    flow["credit"], flow["blind"] = rules["window"], True
    flow["base_rtt"], flow["give_up"] = rules["rtt"], NEVER
    flow["latest"] = -1
    for name in ("next_ready", "next_pull", "next_idle"):
        flow[name] = -1
    flow["flip"] = generator.integers(spraying.entropies, size=n)
    flow["upper"] = generator.integers(MOST_ENTROPIES // spraying.entropies, size=n) * spraying.entropies
    if spraying.balancing == "ecmp":
        flow["upper"] += flow["flip"]
    return flow, int(length.sum())


def _hosts(
    messages: Messages, n_hosts: int, rules: dict[str, float], generator: np.random.Generator
) -> tuple[Rows, NDArray[np.int32]]:
    """Fill the hosts' table; return it with the messages by sender."""
    host = np.zeros(n_hosts, tables.HOST_ROW)
    flow_of = np.argsort(messages.src, kind="stable").astype(np.int32)
    host["first_flow"] = np.searchsorted(messages.src[flow_of], np.arange(n_hosts))
    host["n_flows"] = np.bincount(messages.src, minlength=n_hosts)
    host["up"], host["down"] = np.arange(n_hosts), np.arange(n_hosts) + n_hosts
    for name in ("control_head", "ready_head", "pull_head", "idle_head"):
        host[name] = -1
    host["timer"] = host["pacer"] = host["rate_at"] = NEVER
    first = np.full(n_hosts, NEVER)
    np.minimum.at(first, messages.src, np.round(messages.start * PS).astype(np.int64))
    host["timer"], host["rate"] = first, 1.0
    if rules["least_rate"] < 1.0:
        host["rate_at"] = (0.75 + 0.5 * generator.random(n_hosts)) * INTERVAL
    return host, flow_of


def _result(ways: Ways, fabric: Fabric) -> SprayedRun:
    flow, state, rules = fabric.flow, fabric.state, fabric.rules
    in_order = np.argsort(ways.links)
    kept = ("n_sent", "n_resent", "n_trimmed", "n_dropped", "n_marked", "n_acks", "n_nacks", "n_pulls", "n_timeouts",
            "n_duplicates", "n_early", "n_hops")  # fmt: skip
    used = {"window": float(rules["window"]), "rtt": float(rules["rtt"]) / PS, "target": float(rules["target"]) / PS}
    room = fabric.link["room"][-1:], fabric.link["ecn_min"][-1:], fabric.link["ecn_max"][-1:]
    used |= {name: float(value[0]) for name, value in zip(("queue", "ecn_min", "ecn_max"), room, strict=True)}
    return SprayedRun(
        received=(flow["received_at"] - flow["start"]) / PS,
        finished=(flow["finished_at"] - flow["start"]) / PS,
        delay=flow["delay"] / PS,
        received_bytes=flow["received"].copy(),
        counters={name: int(state[name]) for name in kept},
        link_bytes=fabric.link["n_bytes"][in_order],
        link_peak=fabric.link["peak"][in_order],
        rules=used,
    )
