"""The packet engine for ordinary collectives: every message cut into packets, over a transport, on real queues.

A transfer's `sent` is when its last packet has first left its host, and what waits for that may overwrite its data
then: a sender keeps what it may have to repeat. `done` is when its receiver has all packets in order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError, PhysicsError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow import payload
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.flow_times import FlowTimes
from commsim.engine.link_samples import LinkWatch
from commsim.engine.physics import check_order
from commsim.engine.results import SLACK, job_results, not_negative
from commsim.routing.flaps import Flaps

from .link_changes import LinkChanges, Stop, Stops
from .message_plan import message_rows
from .packet_job import priority_ranks
from .packet_run import COUNTERS, PacketRun, Tables, lay_out, record, run_to_end
from .packet_state import PS, Links
from .pauses import deadlocked, named
from .run_kernel import start_flows
from .transport import ROCE, Dcqcn, Dctcp, Fabric, Transport, Window

PACKETS_PER_EVENT = 4  # at most, where each flow has one packet in its host's queue


class PacketOptions(TypedDict, total=False):
    """Arguments of :func:`run_messages`."""

    fabric: Fabric | None
    seed: int
    starts: ArrayLike
    framing: Framing | None
    trace: bool
    watch: LinkWatch | None


@dataclass(frozen=True, slots=True, eq=False)
class MessageRun(PacketRun):
    """What happened in a run of ordinary messages.

    In results `link_bytes` has what data packets and acknowledgements put on each link, repeated ones too.

    Parameters
    ----------
    times : FlowTimes
        Times of every transfer of the plan.
    """

    times: FlowTimes


def run_messages(
    plan: FlowPlan,
    sizes: ArrayLike,
    *,
    transport: Transport | None = None,
    fabric: Fabric | None = None,
    seed: int = 0,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool = False,
    tapped: Sequence[int] = (),
    sample_every: float = 0.0,
    flaps: Flaps | None = None,
    watch: LinkWatch | None = None,
) -> MessageRun:
    """Simulate all jobs of a plan together, and keep all that was recorded.

    Parameters
    ----------
    plan : FlowPlan
        What runs where. Every wire is a flow over one path, its acknowledgements take the path back.
    sizes : float64[n_jobs] or float, bytes
        Size of each job's collective; its chunks are equal parts of it.
    transport : Transport, optional
        How flows send; by default an ideal window.
    fabric : Fabric, optional
        Queues, marks, pauses and losses; by default what the transport assumes, with the network's own buffers
        and losses.
    seed : int
        Seed of losses and marks.
    starts : float64[n_participants] or float, s
        Time at which each participant, numbered through all jobs, enters its collective.
    framing : Framing, optional
        How messages are cut into packets; by default RoCE's 4,096 and 82 bytes.
    trace : bool
        Whether results keep the times of every transfer.
    tapped : sequence of int
        Links whose packets are recorded.
    sample_every : float, s
        Interval of the series; 0 for none.
    flaps : Flaps, optional
        Cables that go down during the run; what they carry then is lost, and repeated by the transport.
    watch : LinkWatch, optional
        Is shown the links again and again.

    Raises
    ------
    InputError
        If the plan needs what this engine does not have, a number is out of its range, packets of a transport
        that never repeats them were dropped, or a flap begins after the run.
    PhysicsError
        If the result contradicts capacity or causality, or the run cannot end though nothing was dropped.
    """
    transport = transport or Window()
    framing = framing or ROCE
    fabric = fabric or transport.fabric(float(plan.network.bandwidth.max(initial=1.0)))
    starts = np.broadcast_to(not_negative("start", starts), plan.n_participants)
    ranks = priority_ranks([job.priority for job in plan.jobs], fabric)
    rows = message_rows(plan, payload(plan, sizes), starts, framing, transport, fabric, ranks)
    tables = lay_out(seed=seed, **rows)
    record(tables, tapped, sample_every)
    if watch is not None:  # only then do links know at any time what queues before them
        tables.links.link["timed"] = False
    changes = None if flaps is None else LinkChanges(plan, flaps)
    stops: list[Stop] = [stop for stop in (changes, watch) if stop is not None]
    tables, cpu = _run(tables, packets_at_once(tables), plan.network, Stops(stops))
    if watch is not None:
        watch.finish(tables)
    results, times = message_results(plan, tables, sizes, starts, trace, changes)
    return MessageRun(results, tables, cpu, times)


def simulate_messages(
    plan: FlowPlan,
    sizes: ArrayLike,
    *,
    transport: Transport | None = None,
    flaps: Flaps | None = None,
    **options: Unpack[PacketOptions],
) -> tuple[Result, ...]:
    """Simulate all jobs of a plan together; counters say what flaps cost each.

    Parameters
    ----------
    plan, sizes, transport, flaps
        Same as in :func:`run_messages`, whose other arguments follow. An `rto` in flaps becomes the transport's.

    Returns
    -------
    tuple of Result
        One per job; with flaps, ``flap_lost_s`` of their counters is by how much they are later.
    """
    if flaps is None:
        return run_messages(plan, sizes, transport=transport, **options).results
    if isinstance(transport or Window(), Window):
        raise InputError(
            "what a flap loses the transport `window` never repeats; use transport dctcp or dcqcn, or engine flow"
        )
    assert isinstance(transport, Dctcp | Dcqcn)
    if flaps.rto:
        transport = dataclasses.replace(transport, rto=flaps.rto)
    late = run_messages(plan, sizes, transport=transport, flaps=flaps, **options).results
    options["trace"], options["watch"] = False, None
    whole = run_messages(plan, sizes, transport=transport, **options).results
    return tuple(
        dataclasses.replace(r, counters={**r.counters, "flap_lost_s": r.time - w.time})
        for r, w in zip(late, whole, strict=True)
    )


def packets_at_once(tables: Tables) -> int:
    """Packets that one event of a flow may need at most."""
    return PACKETS_PER_EVENT - 1 + int(tables.flows.flow["turns"].max(initial=1))


def message_results(
    plan: FlowPlan,
    tables: Tables,
    sizes: ArrayLike,
    starts: NDArray[np.float64],
    trace: bool,
    changes: LinkChanges | None = None,
) -> tuple[tuple[Result, ...], FlowTimes]:
    """Check a run that is over; return the results of its jobs, and the times of all transfers."""
    times = _times(tables)
    if changes is not None:
        changes.flaps.require_begun(float(times.done.max(initial=0.0)))
    _check_packets(plan, times, tables, changes)
    return _with_counters(plan, tables, job_results(plan, times, sizes, starts, trace, "packet"), changes), times


def _run(tables: Tables, margin: int, network: Network, stops: Stops) -> tuple[Tables, float]:
    """Run to the end, with a margin of free packets for each event. Returns the tables and the CPU seconds taken.

    Raises
    ------
    InputError
        If packets were dropped and are not repeated.
    PhysicsError
        If nothing can happen any more.
    """

    def begin(t: Tables) -> None:
        start_flows(t.links, t.flows)
        stops.begin(t)

    tables, finished, cpu = run_to_end(tables, margin, begin, stops.make)
    require_finished(tables, finished, network)
    return tables, cpu


def require_finished(tables: Tables, finished: bool, network: Network) -> None:
    """Raise an error that names why messages were never complete, where some were not.

    Raises
    ------
    InputError
        If packets were dropped and are not repeated, or links wait for each other.
    PhysicsError
        If nothing can happen any more for another reason.
    """
    if not finished:
        state = tables.links.state
        left = f"{state['n_unfinished']} messages were never complete"
        if state["drops_full"]:
            raise InputError(
                f"{left}: the transport never repeats a packet, and {state['drops_full']} were dropped at full "
                "buffers; pause earlier, or give larger buffers"
            )
        if cycle := deadlocked(tables.links):
            raise InputError(
                f"{left}: links that are paused (PFC) wait for each other in a cycle, {named(cycle, network)}; "
                "pause later, or route without cycles"
            )
        raise PhysicsError(f"deadlock: {left}")


def _times(tables: Tables) -> FlowTimes:
    message, transport = tables.flows.message, tables.flows.transport
    n_packets = message["end"] - message["first"]
    return FlowTimes(
        ((n_packets - 1) * float(transport["packet_size"]) + message["last_size"]).astype(np.float64),
        message["start"] / PS,
        message["sent"] / PS,
        message["done"] / PS,
        tables.flows.flow["ready"] / PS,
        int(tables.links.state["events"]),
    )


def _with_counters(
    plan: FlowPlan, tables: Tables, results: tuple[Result, ...], changes: LinkChanges | None
) -> tuple[Result, ...]:
    links, message, n_flows = tables.links, tables.flows.message, len(tables.flows.flow)
    counters = {
        "packet_hops": links.state["packet_hops"],
        "packets": message["end"].astype(np.float64).sum() - message["first"].astype(np.float64).sum(),
        "retransmissions": links.state["retransmissions"],
        **{name: links.state[name] for name in COUNTERS},
        "peak_queue_bytes": links.link["peak"].max(initial=0),
    }
    first = len(links.stream) - 2 * n_flows  # streams of jobs that aggregate come before
    if changes is None:
        stream = np.repeat(np.arange(len(links.stream)), links.stream["end"] - links.stream["begin"]) - first
    else:
        stream = changes.hop_stream - first
        counters["rerouted"] = changes.was_rerouted.sum()
    job = plan.job_of_connection[stream % n_flows] if n_flows else stream
    n_bytes = links.route["n_bytes"].astype(np.float64)
    counted = []
    for j, result in enumerate(results):
        data, acks = (
            np.bincount(links.route["link"][which], n_bytes[which], plan.network.n_links).astype(np.float64)
            for which in ((job == j) & (stream >= 0) & (stream < n_flows), (job == j) & (stream >= n_flows))
        )
        more = {"data_link_bytes": data.sum(), "ack_link_bytes": acks.sum()}
        numbers = {**result.counters, **{name: float(value) for name, value in (counters | more).items()}}
        counted.append(dataclasses.replace(result, link_bytes=data + acks, counters=numbers))
    return tuple(counted)


def _check_packets(plan: FlowPlan, times: FlowTimes, tables: Tables, changes: LinkChanges | None) -> None:
    """Raise if a link carried more than it can, a message was too fast or out of order, or packets vanished.

    Times may be off by half a picosecond of rounding per packet.

    Raises
    ------
    PhysicsError
        Naming the link or the transfer.
    """
    if not len(times.done):
        return
    link, network = tables.links.link, plan.network
    end = tables.links.state["now"] / PS
    slack = SLACK * end + (link["n_packets"].max(initial=0) + 16) / PS
    busy = link["n_bytes"][: network.n_links] / network.bandwidth
    if (busy > end + slack).any():
        worst = int(busy.argmax())
        raise PhysicsError(f"link {network.link_name(worst)} carried {busy[worst]} s of bytes in {end} s")
    crosses = np.diff(plan.routes.first) > 0
    slowest = np.full(len(plan.ends), np.inf)
    np.minimum.at(slowest, np.repeat(np.arange(len(crosses)), np.diff(plan.routes.first)),
                  network.bandwidth[plan.routes.link])  # fmt: skip
    src, dst = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends].T
    costs = network.overhead[src] + network.recv_overhead[dst] + plan.routes.latency
    alone = np.where(crosses, costs, 0.0)[plan.connection_of]
    if tables.flows.adding.size:
        alone += tables.flows.adding / PS
    alone += times.bytes_on_wire / slowest[plan.connection_of]
    if changes is not None:
        alone[changes.was_rerouted[plan.connection_of]] = 0.0  # they took more ways than the plan's
    early = alone - (times.done - times.start)
    if early.max() > slack:
        i = int(early.argmax())
        raise PhysicsError(f"transfer {i} took {times.done[i] - times.start[i]} s, but takes at least {alone[i]} s")
    check_order(plan, times, slack)
    count = np.bincount(_in_queues(tables.links), minlength=len(link))
    if (link["n_queued"] != link["n_packets"] + count).any():
        raise PhysicsError(f"packets vanished from {(link['n_queued'] != link['n_packets'] + count).sum()} queues")


def _in_queues(links: Links) -> list[int]:
    """Link of every packet that still waits in a queue."""
    waiting = []
    for number in np.flatnonzero(links.link["head"] >= 0):
        p = links.link["head"][number]
        while p >= 0:
            waiting.append(int(number))
            p = links.packet["next"][p]
    return waiting
