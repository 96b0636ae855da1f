"""Messages over a network whose hosts spray packets: what is to be simulated, its run, and what came of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import process_time
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, PhysicsError
from commsim.core.jit import compile_all
from commsim.core.network import Network
from commsim.engine.packet import run_state as rows_of
from commsim.engine.packet.aggregated.traffic_state import Jobs
from commsim.engine.packet.hosts.host_kernel import MARGIN, begin_run
from commsim.engine.packet.hosts.host_kernel import run as run_kernel
from commsim.engine.packet.hosts.work import work_of
from commsim.engine.packet.links.flapping import Flapping
from commsim.engine.packet.links.link_tables import more_records, with_packets
from commsim.engine.packet.links.pauses import deadlocked, named
from commsim.engine.packet.links.ways import Ways, ways_of
from commsim.engine.packet.links.wheel_kernel import schedule
from commsim.engine.packet.packet_state import (
    AT_HOST,
    BETWEEN,
    CHANGE,
    DONE,
    FULL,
    LAST_TIME,
    NEVER,
    PS,
    TOO_LATE,
)
from commsim.engine.packet.run_state import Fabric
from commsim.engine.packet.tables import Tables, build, with_more_packets
from commsim.engine.packet.transports.spraying import Messages, Spraying
from commsim.routing.flaps import Flaps

MAX_PACKETS = 1 << 25  # at once, 2 GiB of them
LOOK_EVERY = 10 * 10**9  # ps between two looks for deadlock


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
        If the network has other nodes, a cable of a host flaps, or one after the run, or packets keep to a path.
    """
    if spraying.on_path:
        raise InputError("a pattern has no routing, which the balancing path keeps to: use the balancing ecmp")
    ways = ways_of(network)
    if flaps is not None and flaps.rto:
        spraying = dataclasses.replace(spraying, rto=flaps.rto)
    stops = [] if flaps is None else [Flapping(network, ways, flaps)]
    tables = build(network, ways, work_of(messages, spraying), spraying, flaps=flaps is not None)
    tables, finished, _ = run_fabric(tables, stops, np.zeros(0, np.int64))
    require_finished(tables, finished, network, ways)
    if flaps is not None:
        flaps.require_begun(float(tables.fabric.flow["finished_at"].max(initial=0)) / PS)
    return _result(ways, tables.fabric)


def require_finished(tables: Tables, finished: bool, network: Network, ways: Ways) -> None:
    """Raise an error that says why flows or workers never finished, where some did not.

    Raises
    ------
    InputError
        If links wait for each other, or packets were dropped that are never sent again.
    PhysicsError
        If nothing can happen any more for another reason. This is a bug in commsim.
    """
    if finished:
        return
    state = tables.fabric.state
    left = f"{state['n_unfinished']} messages or workers never finished"
    if state["drops_full"] and (tables.jobs.job["rto"] == 0).any():
        raise InputError(
            f"{left}: a switch system never repeats a packet, and {state['drops_full']} were dropped at full queues of "
            f"{network.name}; give larger buffers"
        )
    if cycle := deadlocked(tables.fabric):
        raise InputError(
            f"{left}: links that are paused (PFC) wait for each other in a cycle, "
            f"{named(ways.links[cycle].tolist(), network)}; pause later, or route without cycles"
        )
    raise PhysicsError(f"deadlock: {left}")


class Stop(Protocol):
    """What is done at times at which the kernels stop."""

    @property
    def next(self) -> float:
        """When it is due, in seconds; infinity for never again."""

    def begin(self, fabric: Fabric) -> None:
        """Prepare, before anything is sent."""

    def make(self, fabric: Fabric) -> Fabric:
        """Do what is due."""


def run_fabric(tables: Tables, stops: Sequence[Stop], worker_starts: NDArray[np.int64]) -> tuple[Tables, bool, float]:
    """Run to the end; tables that are full grow.

    Parameters
    ----------
    tables : Tables
        Laid out by :func:`build`.
    stops : sequence of Stop
        What the run stops for; what is due at the same time is done in this order.
    worker_starts : int64[n_workers], ps
        Time at which each worker of a job that switches aggregate begins.

    Returns
    -------
    tables : Tables
        All state at the end.
    finished : bool
        False when nothing but timers can happen any more and some worker or flow has not finished.
    cpu : float, s
        Taken, without compilation.
    """
    compile_all()
    fabric, jobs = tables
    state = fabric.state
    unfinished, state["n_unfinished"] = int(state["n_unfinished"]), 0
    run_kernel(fabric, jobs)  # compiles, or loads, before the clock starts
    state["n_unfinished"] = unfinished
    began = process_time()
    for stop in stops:
        stop.begin(fabric)
    _set_stop(fabric, stops)
    begin_run(fabric, jobs, worker_starts)
    pauses = bool(fabric.link["xoff"].any())
    state["look_at"] = LOOK_EVERY if pauses else NEVER
    while (why := run_kernel(fabric, jobs)) in (FULL, CHANGE):
        if why == CHANGE:
            now = min(stop.next for stop in stops)
            for stop in stops:
                if stop.next <= now:
                    fabric = stop.make(fabric)
            _set_stop(fabric, stops)
            continue
        if pauses and deadlocked(fabric):
            break
        state["look_at"] = state["now"] + LOOK_EVERY if pauses else NEVER
        fabric, jobs = _with_room(fabric, jobs)
    if why == TOO_LATE:
        raise InputError(
            f"packets are simulated for up to {LAST_TIME / PS / 86400:.0f} days, and have not all arrived by then: use "
            "the flow engine, or shorter latencies"
        )
    return Tables(fabric, jobs), why == DONE, process_time() - began


def _with_room(fabric: Fabric, jobs: Jobs) -> Tables:
    """Double what is nearly full."""
    state = fabric.state
    if state["n_free"] < state["most_needed"]:
        n = len(fabric.packet)
        if n > MAX_PACKETS // 2:
            raise InputError(
                f"{n} packets are on their way at once: they are repeated (rto) faster than links can send them, or "
                "windows are too large"
            )
        fabric = with_more_packets(fabric)
        jobs = with_packets(jobs, len(fabric.packet) - n)
    width = rows_of.N_COUNTED + 2 * len(fabric.watched)
    fabric = fabric._replace(
        sample=more_records("sample", fabric.sample, state["n_samples"] * width, width, state["now"])
    )
    fabric = fabric._replace(tap=more_records("tap", fabric.tap, state["n_tapped"], MARGIN, state["now"]))
    log = more_records("log", jobs.log, state["n_log"], MARGIN, state["now"])
    return Tables(fabric, jobs._replace(log=log))


def _set_stop(fabric: Fabric, stops: Sequence[Stop]) -> None:
    """Let the run stop when something is due next."""
    when = min((stop.next for stop in stops), default=np.inf)
    if np.isfinite(when):
        queue = fabric.events
        schedule(queue, len(queue.event) - 1, round(when * PS))


def _result(ways: Ways, fabric: Fabric) -> SprayedRun:
    flow, state, rules = fabric.flow, fabric.state, fabric.rules[0]
    in_order, n = np.argsort(ways.links), len(fabric.watched)
    width, at = rows_of.N_COUNTED + 2 * n, rows_of.N_COUNTED
    sample = fabric.sample[: state["n_samples"] * width].reshape(-1, width)
    kept = {
        "n_sent": "n_sent", "n_resent": "retransmissions", "n_trimmed": "n_trimmed", "n_marked": "marks",
        "n_acks": "n_acks", "n_nacks": "n_nacks", "n_pulls": "n_pulls", "n_timeouts": "timeouts",
        "n_duplicates": "duplicates", "n_early": "out_of_order", "n_hops": "packet_hops", "n_notified": "n_notified",
    }  # fmt: skip
    counters = {name: int(state[field]) for name, field in kept.items()}
    counters["n_dropped"] = int(state["drops_full"] + state["drops_loss"])
    used = {"window": float(rules["window"]), "rtt": float(rules["rtt"]) / PS, "target": float(rules["target"]) / PS}
    last = fabric.link[-1]
    marks = last["marks"] == BETWEEN or (last["marks"] == AT_HOST and rules["marks_last"])
    used |= {"queue": float(last["room"])} | {name: float(rules[name] * marks) for name in ("ecn_min", "ecn_max")}
    return SprayedRun(
        received=(flow["received_at"] - flow["ready"]) / PS,
        finished=(flow["finished_at"] - flow["ready"]) / PS,
        delay=flow["delay"] / PS,
        received_bytes=flow["received"].copy(),
        counters=counters,
        link_bytes=fabric.link["n_bytes"][in_order],
        link_peak=fabric.link["peak"][in_order],
        sampled=sample[:, 0] / PS,
        counted=sample[:, 1:4].copy(),
        queued=sample[:, at : at + n][:, in_order[:n]],
        sent=sample[:, at + n :][:, in_order[:n]],
        rules=used,
    )
