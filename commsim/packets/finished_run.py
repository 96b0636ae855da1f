"""What came of a packet run: looks at its links, times of messages, checks, and counters."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, PhysicsError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow_job import SLACK
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.flow_times import FlowTimes
from commsim.engine.physics import check_order
from commsim.packets.codes import AT_HOST, BETWEEN
from commsim.packets.event_rows import ENDLESS, PS, SAMPLE_ROW, Rows
from commsim.packets.hosts.work import PacketLayout
from commsim.packets.link_samples import LinkSamples, LinkWatch
from commsim.packets.links.equal_cost_links import EqualCostWays
from commsim.packets.links.flapping import Flapping
from commsim.packets.packet_rows import N_COUNTED
from commsim.packets.packet_rows import RunState as Kernel
from commsim.packets.tables import Tables

# Counters of results and of a run, and the fields of its state that have them.
RESULT_COUNTERS = {
    "packet_hops": "packet_hops", "retransmissions": "retransmissions", "duplicates": "duplicates",
    "drops_loss": "drops_loss", "drops_full": "drops_full", "trimmed": "n_trimmed", "marks": "marks",
    "pauses": "n_pauses", "out_of_order": "out_of_order", "timeouts": "timeouts",
}  # fmt: skip
COUNTERS = {
    "n_sent": "n_sent", "n_resent": "retransmissions", "n_trimmed": "n_trimmed", "n_marked": "marks",
    "n_acks": "n_acks", "n_nacks": "n_nacks", "n_pulls": "n_pulls", "n_timeouts": "timeouts",
    "n_duplicates": "duplicates", "n_early": "out_of_order", "n_hops": "packet_hops", "n_notified": "n_notified",
    "n_pauses": "n_pauses",
}  # fmt: skip
# Transfers that are checked at once, so that numbers of each take little memory beside their times.
PIECE = 2**18
SAMPLED = ("sent again", "trimmed", "marked")  # packets that samples count


@dataclass(frozen=True, slots=True, eq=False)
class PacketRun:
    """What happened in a run.

    Parameters
    ----------
    results : tuple of Result
        One per job of the plan, then one per job that switches aggregate. Counters of what packets met with are of all
        jobs together; `link_bytes` has what data packets and answers put on each link, repeated ones too.
    times : FlowTimes
        Times of every transfer of the plan.
    tables : Tables
        All state at the end.
    layout : PacketLayout
        What was sent, over which links.
    cpu : float, s
        CPU time of the simulation proper.
    """

    results: tuple[Result, ...]
    times: FlowTimes
    tables: Tables
    layout: PacketLayout
    cpu: float

    @property
    def received(self) -> NDArray[np.float64]:
        """float64[n_flows], s: from the time at which each flow could begin until its receiver had its last byte."""
        flow = self.tables.fabric.flow
        return np.asarray((flow["received_at"] - flow["ready"]) / PS, np.float64)

    @property
    def finished(self) -> NDArray[np.float64]:
        """float64[n_flows], s: from then until its sender had the last acknowledgement."""
        flow = self.tables.fabric.flow
        return np.asarray((flow["finished_at"] - flow["ready"]) / PS, np.float64)

    @property
    def counters(self) -> dict[str, int]:
        """Packets sent, sent again, trimmed, dropped, marked and so on, and the longest queue, of all jobs together."""
        state, link = self.tables.fabric.state, self.tables.fabric.link
        counters = {name: int(state[field]) for name, field in COUNTERS.items()}
        dropped = {"n_dropped": int(state["drops_full"] + state["drops_loss"])}
        return counters | dropped | {"peak_queue_bytes": int(link["peak"].max(initial=0))}

    @property
    def rules(self) -> dict[str, float]:
        """Window, queue, marks, round trip and target of delay of the first transport, in bytes and seconds."""
        rules, ways = self.tables.fabric.rules[0], self.layout.ways
        of_port = ways.first_between - 1 if ways.n_ports else -1
        last = self.tables.fabric.link[int(ways.ways[-1]) if len(ways.ways) else of_port]
        used = {name: float(rules[name]) / scale for name, scale in (("window", 1), ("rtt", PS), ("target", PS))}
        marks = last["marks"] == BETWEEN or (last["marks"] == AT_HOST and rules["marks_last"])
        used |= {"queue": float(min(last["room"], rules["queue"]))} | {
            name: float(rules[name] * marks) for name in ("ecn_min", "ecn_max")
        }
        return used

    def samples(self, network: Network) -> LinkSamples:
        """Return what its links did over time, from the beginning, where they were sampled.

        Parameters
        ----------
        network : Network
            Network of the run.
        """
        rows, links = self._samples, self.layout.ways.links[self.tables.fabric.watched]
        at = np.concatenate((np.zeros((1, rows.shape[1]), np.int64), rows))
        queued, sent = np.zeros((2, len(at), network.n_links), np.int64)
        np.add.at(queued.T, links, at[:, N_COUNTED : N_COUNTED + len(links)].T)
        np.add.at(sent.T, links, at[:, N_COUNTED + len(links) :].T)
        counts = {name: at[:, 1 + k] for k, name in enumerate(SAMPLED)}
        return LinkSamples(at[:, 0] / PS, queued, sent, counts, np.minimum(self.rules["queue"], network.buffer))

    @property
    def _samples(self) -> NDArray[np.int64]:
        fabric = self.tables.fabric
        width = N_COUNTED + 2 * len(fabric.watched)
        return np.asarray(fabric.sample[: fabric.state["n_samples"] * width].reshape(-1, width))

    @property
    def series(self) -> Rows:
        """SAMPLE_ROW[n]: busy slots and bytes in queues over time, when asked for."""
        rows, n = self._samples, len(self.tables.fabric.watched)
        series = np.zeros(len(rows), SAMPLE_ROW)
        series["time"], series["busy_slots"] = rows[:, 0], rows[:, 4]
        series["queued"] = rows[:, N_COUNTED : N_COUNTED + n].sum(axis=1)
        return series

    @property
    def taps(self) -> Rows:
        """TAP_ROW[n]: packets that left the tapped links, by the network's numbers of links, when asked for."""
        fabric = self.tables.fabric
        if missed := int(fabric.state["n_missed"]):
            raise InputError(f"{missed} packets were not recorded: too many left at once; record a smaller message")
        taps = fabric.tap[: fabric.state["n_tapped"] - fabric.state["tap_spare"]].copy()
        if len(taps):
            taps["link"] = self.layout.ways.links[taps["link"]]
        return taps[np.argsort(taps["time"], kind="stable")] if fabric.state["taps_flows"] else taps


class Look:
    """Shows the links of a run to a watch, in the order of the network's.

    Parameters
    ----------
    watch : LinkWatch
        Keeps what it is shown.
    n_links : int
        Number of links of the network.
    ways : EqualCostWays
        Links of the run.
    """

    def __init__(self, watch: LinkWatch, n_links: int, ways: EqualCostWays) -> None:
        self._watch, self._n_links, self._ways = watch, n_links, ways

    @property
    def next(self) -> float:
        """When the next look is due."""
        return self._watch.next

    def begin(self, fabric: Kernel) -> None:
        """Begin with the empty network."""
        room = np.full(self._n_links, np.inf)
        given = fabric.link["room"][: len(self._ways.links)].astype(np.float64)
        room[self._ways.links] = np.where(given < ENDLESS, given, np.inf)
        self._watch.open(room)
        self.make(fabric)

    def make(self, fabric: Kernel) -> Kernel:
        """Look."""
        state = fabric.state
        queued = self._ways.in_order(fabric.link["low"] + fabric.link["high"], self._n_links)
        sent = self._ways.in_order(fabric.link["n_bytes"], self._n_links)
        counts = [int(state[name]) for name in ("retransmissions", "marks", "drops_loss", "drops_full")]
        self._watch.note(queued, sent, np.array(counts))
        return fabric


def times_of(fabric: Kernel, *, keep: bool = True) -> FlowTimes:
    """Return when each message started, was sent and was complete.

    Unless `keep`, seconds take the memory of the picoseconds in `fabric.times`.
    """
    message, queue = fabric.message, fabric.queue[: len(fabric.message)]
    end = message["end"][queue]
    n_packets = end.copy()
    n_packets[1:] -= end[:-1]
    firsts = np.concatenate((np.zeros(1, np.int32), fabric.flow["end"]))
    firsts = firsts[firsts < len(queue)]  # messages that begin their flow
    n_packets[firsts] = end[firsts]
    on_wire = np.empty(len(message))
    on_wire[queue] = n_packets
    on_wire -= 1.0
    mtu = fabric.rules["mtu"][fabric.flow["rule"]]
    for at in range(0, len(on_wire), PIECE):
        piece = slice(at, at + PIECE)
        on_wire[piece] *= mtu[message["flow"][piece]]
        on_wire[piece] += message["last_size"][piece]
    seconds = np.empty(fabric.times.shape) if keep else fabric.times.view(np.float64)
    for at in range(0, len(on_wire), PIECE):
        seconds[:, at : at + PIECE] = fabric.times[:, at : at + PIECE] / PS
    start, sent, done = seconds
    return FlowTimes(on_wire, start, sent, done, fabric.flow["ready"] / PS, int(fabric.state["packet_hops"]))


def check_run(laid: PacketLayout, fabric: Kernel, times: FlowTimes, changes: Flapping | None = None) -> None:
    """Raise if a byte was not delivered exactly once, a link carried more than it can, or a message came too early.

    Raises
    ------
    PhysicsError
        Naming the flow, the link or the transfer.
    """
    plan, flow, network, ways, work = laid.plan, fabric.flow, laid.network, laid.ways, laid.work
    if plan is None or not len(times.done):
        return
    crosses = ~flow["local"]
    wanted = np.bincount(plan.connection_of, times.bytes_on_wire, len(flow))
    wrong = crosses & (flow["received"] != wanted)
    if wrong.any() or (flow["expected"] != flow["n_packets"]).any():
        f = int(wrong.argmax())
        raise PhysicsError(f"flow {f} has {flow['received'][f]} bytes, and was sent {wanted[f]}")
    end = fabric.state["now"] / PS
    slack = SLACK * end + (fabric.link["n_packets"].max(initial=0) + 16) / PS
    busy = fabric.link["n_bytes"][: len(ways.links)] / network.bandwidth[ways.links]
    if (busy > end + slack).any():
        worst = int(busy.argmax())
        raise PhysicsError(
            f"link {network.link_name(int(ways.links[worst]))} carried {busy[worst]} s of bytes in {end} s"
        )
    keeps = fabric.rules["on_path"][flow["rule"]]
    fixed, per_byte = _alone(plan, laid, keeps)
    rerouted = changes.was_rerouted if changes is not None and keeps.all() else np.zeros(len(flow), np.bool_)
    for at in range(0, len(times.done), PIECE):
        piece = slice(at, at + PIECE)
        of = plan.connection_of[piece]
        alone = fixed[of] + per_byte[of] * times.bytes_on_wire[piece]
        if work.adding.size:
            alone += work.adding[piece] / PS
        alone[rerouted[of]] = 0.0  # they took more links than the plan's
        took = times.done[piece] - times.start[piece]
        if (alone - took).max() > slack:
            i = int((alone - took).argmax())
            raise PhysicsError(f"transfer {at + i} took {took[i]} s, but takes at least {alone[i]} s")
    check_order(plan, times, slack)


def _alone(
    plan: FlowPlan, laid: PacketLayout, keeps: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute what messages of each flow take at least: latencies, s, and s/byte of the slowest link on their way.

    `keeps` says which flows keep to their paths; others must take the links of their hosts.
    """
    network, ways, work = laid.network, laid.ways, laid.work.flow
    crosses = np.diff(plan.routes.first) > 0
    rate, fixed = np.full(len(plan.ends), np.inf), plan.routes.latency.copy()
    np.minimum.at(
        rate, np.repeat(np.arange(len(crosses)), np.diff(plan.routes.first)), network.bandwidth[plan.routes.link]
    )
    src, dst = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends].T.copy()
    if not keeps.all():
        up, down = ways.links[work["src"][~keeps]], ways.links[work["dst"][~keeps] + len(ways.hosts)]
        rate[~keeps] = np.minimum(network.bandwidth[up], network.bandwidth[down])
        fixed[~keeps] = network.latency[up] + network.latency[down]
        src[~keeps], dst[~keeps], crosses[~keeps] = network.src[up], network.dst[down], ~work["local"][~keeps]
    fixed = fixed + network.overhead[src] + network.recv_overhead[dst]
    return np.where(crosses, fixed, 0.0), np.where(crosses, 1 / rate, 0.0)


def with_counters(
    laid: PacketLayout, fabric: Kernel, times: FlowTimes, results: Sequence[Result], changes: Flapping | None
) -> tuple[Result, ...]:
    """Add to results what packets met with, and the bytes that each job put on links; repeated packets are on the wire.

    Packets are counted once each, and none whose sender is its receiver: it crosses no link.
    """
    state, flow = fabric.state, fabric.flow
    counters = {name: float(state[field]) for name, field in RESULT_COUNTERS.items()}
    counters["packets"] = flow["n_packets"][~flow["local"]].sum(dtype=np.float64)
    resent = np.bincount(flow["job"], flow["resent"], minlength=len(results))
    counters["peak_queue_bytes"] = float(fabric.link["peak"].max(initial=0))
    if changes is not None:
        counters["rerouted"] = float(changes.was_rerouted.sum())
    return tuple(
        dataclasses.replace(
            result,
            link_bytes=link_bytes(laid, fabric, times, j),
            bytes_on_wire=result.bytes_on_wire + float(resent[j]),
            counters={**result.counters, **counters},
        )
        for j, result in enumerate(results)
    )


def link_bytes(laid: PacketLayout, fabric: Kernel, times: FlowTimes, job: int | None = None) -> NDArray[np.float64]:
    """Bytes that one job, or all, put on links; on those inside machines sprayed messages put theirs once.

    Returns
    -------
    float64[n_links], bytes
    """
    carried = fabric.link["n_bytes"]
    if job is not None and len(fabric.carried):
        carried = fabric.carried.reshape(-1, len(carried))[job]
    n_bytes = laid.ways.in_order(carried, laid.network.n_links).astype(np.float64)
    if laid.legs is not None and laid.plan is not None:
        plan, (link, flow) = laid.plan, laid.legs
        of_flow = np.bincount(plan.connection_of, times.bytes_on_wire, minlength=len(plan.ends))
        if job is not None:
            of_flow = np.where(plan.job_of_connection == job, of_flow, 0.0)
        n_bytes += np.bincount(link, of_flow[flow], minlength=len(n_bytes))
    return n_bytes
