"""Messages over a network whose hosts spray packets: what is to be simulated, its run, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.jit import compile_all
from commsim.core.network import Network
from commsim.engine.packet.packet_state import event_queue, zeros_on_lines
from commsim.engine.packet.traffic_state import ADDED, RECEIVER_ROW
from commsim.engine.packet.wheel_kernel import bucket_shift, schedule
from commsim.routing.flaps import Flaps

from . import fabric_state as tables
from .credit_kernel import INTERVAL
from .fabric_flaps import FabricFlaps
from .fabric_rules import RULES_ROW, rules_of
from .fabric_state import CHANGE, DONE, FULL, NEVER, PS, STUCK, Fabric, Row, Rows
from .host_kernel import begin_run
from .host_kernel import run as run_kernel
from .spraying import MOST_ENTROPIES, Messages, Spraying
from .ways import Ways, ways_of
from .work import Work, work_of

SAMPLES = 1024  # at first
MOST_NEEDED = 16  # packets that one event may make
MOST_EARLY = 4096  # packets that a receiver can hold before one that it lacks


@dataclass(frozen=True, slots=True, eq=False)
class SprayedRun:
    """What came of a run.

    Parameters
    ----------
    received, finished : float64[n_messages], s
        Time from a message's start to its last byte at the receiver, and to the last acknowledgement at the sender.
    delay : float64[n_messages], s
        Queueing delay, smoothed, as known at the end to a sender whose transport measures it.
    received_bytes : int64[n_messages], bytes
        Bytes received on the wire, each packet counted once.
    counters : dict of str to int
        Packets sent, sent again, trimmed, dropped, marked and so on.
    link_bytes, link_peak : int64[n_links], bytes
        What left each link, in the order of the network's; the most data that queued before it.
    sampled : float64[n], s
        Times at which the links were sampled, without those at which nothing was under way.
    counted : int64[n, 3]
        Packets sent again, trimmed and marked until then, in all.
    queued, sent : int64[n, n_links], bytes
        What queued before each link then, and what it had sent.
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
    sampled: NDArray[np.float64]
    counted: NDArray[np.int64]
    queued: NDArray[np.int64]
    sent: NDArray[np.int64]
    rules: dict[str, float] = field(default_factory=dict)


def simulate(network: Network, messages: Messages, spraying: Spraying, flaps: Flaps | None = None) -> SprayedRun:
    """Send messages over a network, packet by packet.

    Parameters
    ----------
    network : Network
        Hosts with one link each, and switches; every link needs some latency.
    messages : Messages
        Messages to send, with source and destination.
    spraying : Spraying
        Transport, load balancing and switches.
    flaps : Flaps, optional
        Cables between switches that go down for a while.

    Returns
    -------
    SprayedRun
        Times and counts.

    Raises
    ------
    InputError
        If the network has other nodes, a link has no latency, a cable of a host flaps, or one after the run.
    """
    ways = ways_of(network)
    changes = None if flaps is None else FabricFlaps(network, ways, flaps)
    return _result(ways, run_fabric(build(network, ways, work_of(messages, spraying), spraying), changes))


class Stop(Protocol):
    """What is done at times at which the kernels stop."""

    @property
    def next(self) -> float:
        """When it is due, in seconds; infinity for never again."""

    def begin(self, fabric: Fabric) -> None:
        """Prepare, before anything is sent."""

    def make(self, fabric: Fabric) -> Fabric:
        """Do what is due."""


def run_fabric(fabric: Fabric, changes: FabricFlaps | None, *others: Stop) -> Fabric:
    """Run to the end; tables that are full grow.

    Parameters
    ----------
    fabric : Fabric
        Laid out by :func:`build`.
    changes : FabricFlaps, optional
        Changes of links during the run.
    *others : Stop
        What else the run stops for, after changes.

    Returns
    -------
    Fabric
        All state at the end.

    Raises
    ------
    InputError
        If a cable is to come up after the run.
    """
    compile_all()
    stops: list[Stop] = [*([] if changes is None else [changes]), *others]
    for stop in stops:
        stop.begin(fabric)
    _set_stop(fabric, stops)
    begin_run(fabric)
    while (why := run_kernel(fabric)) != DONE:
        if why == STUCK:
            raise RuntimeError("nothing is left that could happen, and messages are unfinished: a bug")
        if why == CHANGE:
            now = min(stop.next for stop in stops)
            for stop in stops:
                if stop.next <= now:
                    fabric = stop.make(fabric)
            _set_stop(fabric, stops)
        if why == FULL and fabric.state["n_free"] < fabric.state["most_needed"]:
            fabric = _grown(fabric)
        width = tables.N_COUNTED + 2 * len(fabric.watched)
        if fabric.state["n_samples"] * width >= len(fabric.sample):
            fabric = fabric._replace(sample=np.concatenate((fabric.sample, np.zeros_like(fabric.sample))))
    if changes is not None:
        changes.flaps.require_begun(float(fabric.flow["finished_at"].max(initial=0)) / PS)
    return fabric


def _set_stop(fabric: Fabric, stops: list[Stop]) -> None:
    """Let the run stop when something is due next."""
    when = min((stop.next for stop in stops), default=np.inf)
    if np.isfinite(when):
        queue = fabric.events
        schedule(queue, len(queue.event) - 1, round(when * PS))


def build(network: Network, ways: Ways, work: Work, spraying: Spraying) -> Fabric:
    """Lay out all tables of a run.

    Parameters
    ----------
    network, ways : Network, Ways
        Network, and its equal-cost sets.
    work : Work
        Flows and their messages.
    spraying : Spraying
        Transport, load balancing and switches.

    Raises
    ------
    InputError
        If a link has no latency, or a number is out of its range.
    """
    rate, n_hosts, n_switches = network.bandwidth[ways.links], len(ways.hosts), len(ways.switches)
    latency = np.round(network.latency[ways.links] * PS).astype(np.int64)
    rules = rules_of(network, ways, spraying)
    generator = np.random.default_rng(spraying.seed)
    link: Rows = zeros_on_lines(len(ways.links), tables.LINK_ROW)
    for name in ("serving", "low_head", "low_tail", "high_head", "high_tail", "pipe_head", "pipe_tail"):
        link[name] = -1
    link["ps_per_byte"], link["latency"], link["to"] = PS / rate, latency, ways.to
    link["room"] = np.minimum(rules["queue"], network.buffer[ways.links])
    longest = float((latency + (spraying.payload + spraying.header) * PS / rate).max(initial=1.0))
    link["loss"] = network.loss[ways.links] if spraying.loss is None else spraying.loss
    link["first_time"] = np.rint(network.overhead[network.src[ways.links]] * PS)
    link["last_time"] = np.rint(network.recv_overhead[network.dst[ways.links]] * PS)
    if link["room"].min(initial=NEVER) < rules["mtu"]:
        raise InputError(f"a link's buffer holds at least one packet of {rules['mtu']} bytes")
    marks = np.ones(len(link), bool)
    marks[: 2 * n_hosts] = spraying.settled[0].marks_last  # their receivers keep the last queue short
    for name in ("ecn_min", "ecn_max"):
        link[name] = np.where(marks, rules[name], 0)
    flow, ring = _flows(work, spraying, rules, generator)
    host = _hosts(n_hosts, rules, generator)
    state = np.zeros((), tables.STATE_ROW)
    state["draws"] = generator.integers(1 << 62)
    state["n_hosts"], state["n_switches"], state["n_edges"] = n_hosts, n_switches, int(ways.edge.max()) + 1
    state["n_unfinished"], state["first_free"] = len(flow), -1
    state["most_needed"] = MOST_NEEDED
    learns = spraying.balancing in ("bitmap", "reps", "mixed")
    let = np.zeros(n_switches * tables.N_FLOWLETS if spraying.balancing == "flowlet" else 1, tables.FLOWLET_ROW)
    let["link"] = -1
    row = np.zeros((), RULES_ROW)
    for name in RULES_ROW.names or ():
        row[name] = rules.get(name, 0)  # what the transport does not have
    every = round(PS * spraying.sample)
    state["sample_every"], state["sample_at"] = every, every or NEVER
    watched = np.arange(len(link) if every else 0, dtype=np.int32)
    width = tables.N_COUNTED + 2 * len(watched)
    # hosts send, pace and reconsider; packets arrive; flows have timers; links change
    n_events = 3 * n_hosts + len(link) + (ADDED + 1) * len(flow) + 1
    notes = int(rules["n_notes"])
    noted = np.zeros(notes * len(flow), tables.NOTE_ROW)
    noted["link"] = -1
    fabric = Fabric(
        _row(state), _row(row), link, host, flow, np.zeros(0, tables.PACKET_ROW), ways.way, ways.ways,
        ways.edge, ways.edge_switch, generator.integers(1 << 63, size=n_switches, dtype=np.uint64), _receivers(work),
        work.message, work.queue, *work.successors, work.adding, np.zeros(n_hosts if work.adding.size else 0, np.int64),
        np.zeros(work.n_jobs * len(link) if work.n_jobs > 1 else 0, np.int64),
        np.zeros(ring, np.uint8), np.zeros(ring, np.int32), np.zeros(ring if learns else 0, np.uint16),
        np.zeros(len(flow) * spraying.entropies, np.uint8),
        np.zeros(len(flow) * tables.N_RECYCLED, np.uint16), let, event_queue(n_events, bucket_shift(longest)),
        np.zeros(0, tables.NOTE_ROW), noted, watched, np.zeros(SAMPLES * width, np.int64),
    )  # fmt: skip
    return _grown(fabric)


def _row(table: NDArray[np.void]) -> Row:
    """Take the one row of a table, which is not a copy of it."""
    row: Row = table.reshape(1)[0]
    return row


def _grown(fabric: Fabric) -> Fabric:
    """Double the packets' table; the new rows are free."""
    old, state = fabric.packet, fabric.state
    new = _in_lines(max(2 * len(old), 1024))
    new[: len(old)] = old
    new["after"][len(old) : -1] = np.arange(len(old) + 1, len(new))
    new["after"][-1] = state["first_free"]
    state["first_free"] = len(old)
    state["n_free"] += len(new) - len(old)
    note = np.zeros(len(new) * int(fabric.rules["n_notes"]), tables.NOTE_ROW)
    note[: len(fabric.note)] = fabric.note
    return fabric._replace(packet=new, note=note)


def _in_lines(n: int) -> Rows:
    """Make rows for packets that each fill a line of the processor's cache, not parts of two."""
    size = tables.PACKET_ROW.itemsize
    room = np.zeros((n + 1) * size, np.uint8)
    begin = -room.ctypes.data % size
    return room[begin : begin + n * size].view(tables.PACKET_ROW)


def _flows(work: Work, spraying: Spraying, rules: dict[str, float], generator: np.random.Generator) -> tuple[Rows, int]:
    """Fill the flows' table; return it with the length of their rings in all."""
    n = len(work.src)
    flow: Rows = zeros_on_lines(n, tables.FLOW_ROW)
    flow["message"], flow["end"] = work.of_flow[:-1], work.of_flow[1:]
    count = work.message["end"][work.queue[work.of_flow[1:] - 1]].astype(np.int64)
    flow["src"], flow["dst"], flow["n_packets"] = work.src, work.dst, count
    flow["local"], flow["job"], flow["ready"] = work.src == work.dst, work.job, np.round(work.ready * PS)
    flow["received_at"] = flow["finished_at"] = -1
    length = 1 << np.ceil(np.log2(np.minimum(count, MOST_EARLY))).astype(np.int64)
    flow["ring"], flow["ring_mask"] = np.cumsum(length) - length, length - 1
    flow["window"] = rules["window"]
    # windows of DCTCP and Swift grow as far as the network lets them
    flow["most"] = 1e15 if rules["transport"] in (tables.DCTCP, tables.SWIFT) else rules["window"]
    flow["credit"], flow["blind"] = rules["window"], True
    flow["base_rtt"], flow["give_up"] = rules["rtt"], NEVER
    # HPCC's first window is that of a round trip
    flow["rate"], flow["aim"] = rules.get("begin", 1.0) / rules["ps_per_byte"], rules["window"]
    for name in ("rise_at", "cut_at", "next_cut_at", "last_cut_at"):
        flow[name] = NEVER
    flow["decayed_at"] = flow["notified_at"] = -1
    flow["marked"] = 1.0 if rules["transport"] == tables.DCQCN else 0.0
    flow["latest"] = -1
    for name in ("next_ready", "next_pull", "next_idle"):
        flow[name] = -1
    flow["flip"] = generator.integers(spraying.entropies, size=n)
    flow["upper"] = generator.integers(MOST_ENTROPIES // spraying.entropies, size=n) * spraying.entropies
    if spraying.balancing == "ecmp":
        flow["upper"] += flow["flip"]
    return flow, int(length.sum())


def _receivers(work: Work) -> Rows:
    """Fill the table of the flows' other ends."""
    receiver = np.zeros(len(work.src), RECEIVER_ROW)
    receiver["message"] = receiver["complete"] = work.of_flow[:-1]
    receiver["end"], receiver["node"] = work.of_flow[1:], work.dst
    receiver["boundary"] = work.message["end"][work.queue[work.of_flow[:-1]]]
    return receiver


def _hosts(n_hosts: int, rules: dict[str, float], generator: np.random.Generator) -> Rows:
    """Fill the hosts' table."""
    host = np.zeros(n_hosts, tables.HOST_ROW)
    host["up"], host["down"] = np.arange(n_hosts), np.arange(n_hosts) + n_hosts
    for name in ("control_head", "ready_head", "pull_head", "idle_head"):
        host[name] = -1
    host["pacer"] = host["rate_at"] = NEVER
    host["rate"] = 1.0
    if rules["least_rate"] < 1.0:
        host["rate_at"] = (0.75 + 0.5 * generator.random(n_hosts)) * INTERVAL
    return host


def _result(ways: Ways, fabric: Fabric) -> SprayedRun:
    flow, state, rules = fabric.flow, fabric.state, fabric.rules
    in_order, n = np.argsort(ways.links), len(fabric.watched)
    width, at = tables.N_COUNTED + 2 * n, tables.N_COUNTED
    sample = fabric.sample[: state["n_samples"] * width].reshape(-1, width)
    kept = ("n_sent", "n_resent", "n_trimmed", "n_dropped", "n_marked", "n_acks", "n_nacks", "n_pulls", "n_timeouts",
            "n_duplicates", "n_early", "n_hops", "n_notified")  # fmt: skip
    used = {"window": float(rules["window"]), "rtt": float(rules["rtt"]) / PS, "target": float(rules["target"]) / PS}
    room = fabric.link["room"][-1:], fabric.link["ecn_min"][-1:], fabric.link["ecn_max"][-1:]
    used |= {name: float(value[0]) for name, value in zip(("queue", "ecn_min", "ecn_max"), room, strict=True)}
    return SprayedRun(
        received=(flow["received_at"] - flow["ready"]) / PS,
        finished=(flow["finished_at"] - flow["ready"]) / PS,
        delay=flow["delay"] / PS,
        received_bytes=flow["received"].copy(),
        counters={name: int(state[name]) for name in kept},
        link_bytes=fabric.link["n_bytes"][in_order],
        link_peak=fabric.link["peak"][in_order],
        sampled=sample[:, 0] / PS,
        counted=sample[:, 1:at].copy(),
        queued=sample[:, at : at + n][:, in_order[:n]],
        sent=sample[:, at + n :][:, in_order[:n]],
        rules=used,
    )
