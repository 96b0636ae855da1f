"""Runs of the packet engine: every message cut into packets, over a transport, on real queues.

A transfer's `sent` is when its last packet has first left its host, and what waits for that may overwrite its data
then: a sender keeps what it may have to repeat. `done` is when its receiver has all its packets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, Unpack

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
from commsim.engine.message_costs import refuse_curves
from commsim.engine.packet.aggregated.aggregation import Ran, aggregation_results, packets_at_once
from commsim.engine.packet.aggregated.packet_job import AggregationJob, priority_ranks
from commsim.engine.packet.aggregated.packet_plan import aggregation_rows
from commsim.engine.packet.hosts.work import Work, no_work, paths_of, work_of_plan
from commsim.engine.packet.links.fabric import Fabric
from commsim.engine.packet.links.flapping import Flapping
from commsim.engine.packet.links.ways import Ways, ways_of, ways_of_paths
from commsim.engine.packet.packet_run import Stop, Tables, build, require_finished, run_fabric
from commsim.engine.packet.packet_state import PS, SAMPLE_ROW, Rows
from commsim.engine.packet.run_state import N_COUNTED
from commsim.engine.packet.run_state import Fabric as Kernel
from commsim.engine.packet.transports.spraying import Spraying, in_packets, over_path
from commsim.engine.physics import check_order
from commsim.engine.results import SLACK, job_results, not_negative
from commsim.routing.flaps import Flaps

if TYPE_CHECKING:
    from switch_model.payload import Payload


class RunOptions(TypedDict, total=False):
    """Arguments of :func:`run_packets` beside what is sent and how.

    Parameters
    ----------
    starts : float64[n_participants] or float, s
        Time at which each participant, numbered through all jobs, enters its collective.
    seed : int
        Seed of all random draws.
    framing : Framing
        How messages are cut into packets; by default as the transport says.
    trace : bool
        Whether results keep the times of every transfer.
    tapped : sequence of int
        Links whose packets are recorded.
    flaps : Flaps
        Cables that go down during the run; what they carry then is lost, and sent again.
    watch : LinkWatch
        Is shown the links again and again.
    """

    starts: ArrayLike
    seed: int
    framing: Framing | None
    trace: bool
    tapped: Sequence[int]
    flaps: Flaps | None
    watch: LinkWatch | None


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
    ways : Ways
        Numbers of links in the tables.
    cpu : float, s
        CPU time of the simulation proper.
    """

    results: tuple[Result, ...]
    times: FlowTimes
    tables: Tables
    ways: Ways
    cpu: float

    @property
    def series(self) -> Rows:
        """SAMPLE_ROW[n]: busy slots and bytes in queues over time, when asked for."""
        fabric = self.tables.fabric
        n = len(fabric.watched)
        rows = fabric.sample[: fabric.state["n_samples"] * (N_COUNTED + 2 * n)].reshape(-1, N_COUNTED + 2 * n)
        series = np.zeros(len(rows), SAMPLE_ROW)
        series["time"], series["busy_slots"] = rows[:, 0], rows[:, 4]
        series["queued"] = rows[:, N_COUNTED : N_COUNTED + n].sum(axis=1)
        return series

    @property
    def taps(self) -> Rows:
        """TAP_ROW[n]: packets that left the tapped links, by the network's numbers of links, when asked for."""
        fabric = self.tables.fabric
        taps = fabric.tap[: fabric.state["n_tapped"]].copy()
        if len(taps):
            taps["link"] = self.ways.links[taps["link"]]
        return taps


def run_packets(
    plan: FlowPlan, sizes: ArrayLike, how: Spraying | None = None, **options: Unpack[RunOptions]
) -> PacketRun:
    """Simulate all jobs of a plan together, packet by packet.

    Parameters
    ----------
    plan : FlowPlan
        What runs where; its routes are those of packets that keep to a path.
    sizes : float64[n_jobs] or float, bytes
        Size of each job's collective; its chunks are equal parts of it.
    how : Spraying, optional
        Transport, load balancing and switches; by default an ideal window over one path.
    **options
        Those of :class:`RunOptions`.

    Raises
    ------
    InputError
        If the plan or the network needs what the transport does not have, a number is out of its range, links wait for
        each other, or a flap begins after the run.
    PhysicsError
        If the result contradicts capacity or causality, or bytes were not delivered once.
    """
    return run_beside(plan, sizes, (), how, **options)


def simulate_packets(
    plan: FlowPlan, sizes: ArrayLike, how: Spraying | None = None, **options: Unpack[RunOptions]
) -> tuple[Result, ...]:
    """Simulate all jobs of a plan together; counters say what flaps cost each.

    Parameters
    ----------
    plan, sizes, how, **options
        Same as in :func:`run_packets`.

    Returns
    -------
    tuple of Result
        One per job; with flaps, ``flap_lost_s`` of their counters is by how much they are later.
    """
    late = run_packets(plan, sizes, how, **options).results
    if options.get("flaps") is None:
        return late
    options["trace"], options["watch"], options["flaps"] = False, None, None
    whole = run_packets(plan, sizes, how, **options).results
    return tuple(
        dataclasses.replace(r, counters={**r.counters, "flap_lost_s": r.time - w.time})
        for r, w in zip(late, whole, strict=True)
    )


def run_beside(
    plan: FlowPlan | None,
    sizes: ArrayLike,
    jobs: Sequence[AggregationJob],
    how: Spraying | None = None,
    *,
    network: Network | None = None,
    values: bool = True,
    tensors: Payload | None = None,
    **options: Unpack[RunOptions],
) -> PacketRun:
    """Simulate the jobs of a plan, as messages, beside jobs whose tensors switches add up.

    Packets of the latter keep to the links of the job's tree, where they meet those of messages, sprayed or not.

    Parameters
    ----------
    plan, sizes, how, **options
        Same as in :func:`run_packets`; no plan for no messages.
    jobs : sequence of AggregationJob
        Jobs that switches aggregate. They send as their system says, and know when they begin.
    network : Network, optional
        Where there is no plan.
    values : bool
        Whether real tensors are summed, and `exact` is known.
    tensors : Payload, optional
        The tensors; by default random integers.

    Raises
    ------
    InputError
        As in :func:`run_packets`, or if a job does not fit, or packets that a system never repeats were dropped.
    """
    how = how or over_path("window")
    how = dataclasses.replace(in_packets(how, options.get("framing")), seed=options.get("seed", 0))
    network = plan.network if plan is not None else network
    assert network is not None
    refuse_curves(network, "the packet engine takes messages that cost a line", "the engine flow or alpha-beta")
    flaps, watch = options.get("flaps"), options.get("watch")
    if flaps is not None and flaps.rto:
        how = dataclasses.replace(how, rto=flaps.rto)
    if flaps is not None and jobs:
        raise InputError("flaps are not modelled for packets of switch systems")
    if network.loss.any() and any(job.system.lossless for job in jobs):
        raise InputError(f"{network.name} loses packets, and a system here needs links without loss")
    of_plan = [job.priority for job in plan.jobs] if plan is not None else []
    ranks = priority_ranks([*of_plan, *(job.priority for job in jobs)], how.fabric)
    entered = np.broadcast_to(
        not_negative("start", options.get("starts", 0.0)), plan.n_participants if plan is not None else 0
    )
    paths = paths_of(plan, how, ranks) if how.on_path and plan is not None else None
    routes = () if paths is None else (paths.there, paths.back)
    ways = ways_of_paths(network, *routes) if how.on_path else ways_of(network)
    if plan is None:
        work = no_work(network)
    else:
        work = work_of_plan(plan, payload(plan, sizes), entered, ways, how, ranks, paths)
    of_jobs = aggregation_rows(network, jobs, how.fabric, ranks[len(of_plan) :]) if jobs else None
    tables = build(network, ways, work, how, of_jobs, tapped=options.get("tapped", ()), flaps=flaps is not None)
    if jobs:
        tables.fabric.state["most_needed"] += packets_at_once(tables.jobs, jobs)
    stops: list[Stop] = []
    changes = None
    if flaps is not None:
        changes = Flapping(network, ways, flaps, plan if how.on_path else None)
        stops.append(changes)
    if watch is not None:
        stops.append(Look(watch, network.n_links, ways))
    starts = np.concatenate([job.starts_ps() for job in jobs]) if jobs else np.zeros(0, np.int64)
    tables, finished, cpu = run_fabric(tables, stops, starts)
    require_finished(tables, finished, network, ways)
    if watch is not None and np.isfinite(watch.next):
        stops[-1].make(tables.fabric)
    times = _times(tables.fabric, how)
    results: tuple[Result, ...] = ()
    if changes is not None:
        changes.flaps.require_begun(float(times.done.max(initial=0.0)))
    if plan is not None:
        _check(plan, ways, work, tables.fabric, times, changes)
        found = job_results(plan, times, sizes, entered, options.get("trace", False), "packet")
        results = _with_counters(network, ways, tables.fabric, found, changes)
    if jobs:
        ran = Ran(tables.fabric.state, tables.jobs, tables.fabric.link[: len(ways.links)][np.argsort(ways.links)])
        results += aggregation_results(network, ran, jobs, cpu, tensors, how.seed if values else None)
    return PacketRun(results, times, tables, ways, cpu)


def simulate_aggregation(
    network: Network,
    jobs: Sequence[AggregationJob],
    *,
    fabric: Fabric | None = None,
    seed: int = 0,
    values: bool = True,
    payload: Payload | None = None,
    sample_every: float = 0.0,
    tapped: Sequence[int] = (),
) -> PacketRun:
    """Simulate jobs that switches aggregate, and nothing beside them.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    jobs : sequence of AggregationJob
        Jobs, at least one.
    fabric : Fabric, optional
        Queues and losses; by default infinite queues and the network's own losses.
    seed : int
        Seed of losses, marks and the tensors' values.
    values : bool
        Whether real tensors are summed, and `exact` is known.
    payload : Payload, optional
        The tensors; by default random integers.
    sample_every : float, s
        Interval of the series; 0 for none.
    tapped : sequence of int
        Links whose packets are recorded.

    Raises
    ------
    InputError
        Without a job, or if one does not fit.
    """
    if not jobs:
        raise InputError("a run needs at least one job, got none")
    how = dataclasses.replace(over_path("window", fabric=fabric or Fabric()), sample=sample_every)
    return run_beside(None, (), jobs, how, network=network, values=values, tensors=payload, seed=seed, tapped=tapped)


class Look:
    """Shows the links of a run to a watch, in the order of the network's.

    Parameters
    ----------
    watch : LinkWatch
        Keeps what it is shown.
    n_links : int
        Number of links of the network.
    ways : Ways
        Links of the run.
    """

    def __init__(self, watch: LinkWatch, n_links: int, ways: Ways) -> None:
        self._watch, self._n_links, self._ways = watch, n_links, ways

    @property
    def next(self) -> float:
        """When the next look is due."""
        return self._watch.next

    def begin(self, fabric: Kernel) -> None:
        """Begin with the empty network."""
        room = np.full(self._n_links, np.inf)
        room[self._ways.links] = fabric.link["room"][: len(self._ways.links)]
        self._watch.open(room)
        self.make(fabric)

    def make(self, fabric: Kernel) -> Kernel:
        """Look."""
        state = fabric.state
        queued, sent = np.zeros((2, self._n_links), np.int64)
        link = fabric.link[: len(self._ways.links)]
        queued[self._ways.links] = link["low"] + link["high"]
        sent[self._ways.links] = link["n_bytes"]
        counts = [int(state[name]) for name in ("retransmissions", "marks", "drops_loss", "drops_full")]
        self._watch.note(queued, sent, np.array(counts))
        return fabric


def _times(fabric: Kernel, spraying: Spraying) -> FlowTimes:
    message = fabric.message
    n_packets = (message["end"] - message["first"]).astype(np.int64)
    on_wire = (n_packets - 1) * float(spraying.payload + spraying.header) + message["last_size"]
    start, sent, done = (message[name] / PS for name in ("start", "sent", "done"))
    return FlowTimes(on_wire, start, sent, done, fabric.flow["ready"] / PS, int(fabric.state["packet_hops"]))


def _check(plan: FlowPlan, ways: Ways, work: Work, fabric: Kernel, times: FlowTimes, changes: Flapping | None) -> None:
    """Raise if a byte was not delivered exactly once, a link carried more than it can, or a message came too early.

    Raises
    ------
    PhysicsError
        Naming the flow, the link or the transfer.
    """
    if not len(times.done):
        return
    flow, network = fabric.flow, plan.network
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
    alone = _alone(plan, ways, work, times)
    if work.adding.size:
        alone = alone + work.adding / PS
    if changes is not None and work.paths is not None:
        alone[changes.was_rerouted[plan.connection_of]] = 0.0  # they took more links than the plan's
    early = alone - (times.done - times.start)
    if early.max() > slack:
        i = int(early.argmax())
        raise PhysicsError(f"transfer {i} took {times.done[i] - times.start[i]} s, but takes at least {alone[i]} s")
    check_order(plan, times, slack)


def _alone(plan: FlowPlan, ways: Ways, work: Work, times: FlowTimes) -> NDArray[np.float64]:
    """Compute the least time of each transfer: its bytes over the slowest link that it must take, and latencies."""
    network = plan.network
    if work.paths is None:
        up, down = ways.links[work.src], ways.links[work.dst + len(ways.hosts)]
        rate = np.minimum(network.bandwidth[up], network.bandwidth[down])
        fixed = network.latency[up] + network.latency[down]
        src, dst = network.src[up], network.dst[down]
        crosses = work.src != work.dst
    else:
        crosses = np.diff(plan.routes.first) > 0
        rate, fixed = np.full(len(plan.ends), np.inf), plan.routes.latency
        np.minimum.at(
            rate, np.repeat(np.arange(len(crosses)), np.diff(plan.routes.first)), network.bandwidth[plan.routes.link]
        )
        src, dst = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends].T
    fixed = fixed + network.overhead[src] + network.recv_overhead[dst]
    alone = np.where(crosses, fixed, 0.0)[plan.connection_of]
    return np.asarray(alone + np.where(crosses, 1 / rate, 0.0)[plan.connection_of] * times.bytes_on_wire)


def _with_counters(
    network: Network, ways: Ways, fabric: Kernel, results: tuple[Result, ...], changes: Flapping | None
) -> tuple[Result, ...]:
    state, message = fabric.state, fabric.message
    counters = {
        "packet_hops": state["packet_hops"],
        "packets": message["end"].astype(np.float64).sum() - message["first"].astype(np.float64).sum(),
        "retransmissions": state["retransmissions"],
        "duplicates": state["duplicates"],
        "drops_loss": state["drops_loss"],
        "drops_full": state["drops_full"],
        "trimmed": state["n_trimmed"],
        "marks": state["marks"],
        "out_of_order": state["out_of_order"],
        "timeouts": state["timeouts"],
        "peak_queue_bytes": fabric.link["peak"].max(initial=0),
    }
    if changes is not None:
        counters["rerouted"] = changes.was_rerouted.sum()
    carried = fabric.carried if len(fabric.carried) else fabric.link["n_bytes"]
    of_job = carried.reshape(len(results), len(fabric.link))[:, : len(ways.links)]
    counted = []
    for j, result in enumerate(results):
        n_bytes = np.zeros(network.n_links)
        n_bytes[ways.links] = of_job[j]
        numbers = {**result.counters, **{name: float(value) for name, value in counters.items()}}
        counted.append(dataclasses.replace(result, link_bytes=n_bytes, counters=numbers))
    return tuple(counted)
