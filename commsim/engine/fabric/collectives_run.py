"""Schedules over a fabric that sprays: every transfer a message of a flow, which waits as in the other engines."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from time import process_time

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
from commsim.engine.packet.aggregation import Ran, aggregation_results, packets_at_once
from commsim.engine.packet.packet_job import AggregationJob, priority_ranks
from commsim.engine.packet.packet_plan import aggregation_rows
from commsim.engine.packet.packet_state import PS
from commsim.engine.packet.transport import Fabric
from commsim.engine.physics import check_order
from commsim.engine.results import SLACK, job_results, not_negative
from commsim.routing.flaps import Flaps

from .fabric_flaps import FabricFlaps
from .fabric_rules import rules_of
from .fabric_run import build, require_finished, run_fabric
from .fabric_state import Fabric as Tables
from .spraying import Spraying, in_packets
from .ways import Ways, ways_of, ways_of_paths
from .work import Work, paths_of, work_of_plan


def simulate_sprayed(
    plan: FlowPlan,
    sizes: ArrayLike,
    spraying: Spraying,
    *,
    starts: ArrayLike = 0.0,
    seed: int = 0,
    framing: Framing | None = None,
    flaps: Flaps | None = None,
    watch: LinkWatch | None = None,
    trace: bool = False,
    aggregated: Sequence[AggregationJob] = (),
    values: bool = True,
) -> tuple[Result, ...]:
    """Simulate all jobs of a plan together, their packets over many paths.

    Jobs that switches aggregate may run beside them: their packets keep to the links of the job's tree, where they
    meet those that are sprayed.

    Parameters
    ----------
    plan : FlowPlan
        What runs where; its routes are not used.
    sizes : float64[n_jobs] or float, bytes
        Size of each job's collective; its chunks are equal parts of it.
    spraying : Spraying
        Transport, load balancing and switches.
    starts : float64[n_participants] or float, s
        Time at which each participant, numbered through all jobs, enters its collective.
    seed : int
        Seed of all random draws.
    framing : Framing, optional
        How messages are cut into packets; by default as `spraying` says.
    flaps : Flaps, optional
        Cables between switches that go down for a while.
    watch : LinkWatch, optional
        Is shown the links again and again.
    trace : bool
        Whether results keep the times of every transfer.
    aggregated : sequence of AggregationJob
        Jobs that switches aggregate.
    values : bool
        Whether their tensors are summed, and `exact` is known.

    Returns
    -------
    tuple of Result
        One per job, those that switches aggregate last; with flaps, ``flap_lost_s`` of their counters is by how much
        they are later.

    Raises
    ------
    InputError
        If the plan or the network needs what sprayed transports do not have, or a number is out of its range.
    PhysicsError
        If the result contradicts capacity or causality, or bytes were not delivered once.
    """
    refuse_curves(plan.network, "the packet engine takes messages that cost a line", "the engine flow or alpha-beta")
    spraying = dataclasses.replace(in_packets(spraying, framing), seed=seed)
    entered = np.broadcast_to(not_negative("start", starts), plan.n_participants)
    ranks = priority_ranks([job.priority for job in (*plan.jobs, *aggregated)], spraying.meets)
    paths = paths_of(plan, spraying, ranks) if spraying.on_path else None
    ways = ways_of(plan.network) if paths is None else ways_of_paths(plan.network, paths.there, paths.back)
    changes = None if flaps is None else FabricFlaps(plan.network, ways, flaps)
    network = plan.network
    if flaps is not None and aggregated:
        raise InputError("flaps are not modelled for packets of switch systems")
    if network.loss.any() and any(job.system.lossless for job in aggregated):
        raise InputError(f"{network.name} loses packets, and a system here needs links without loss")
    work = work_of_plan(plan, payload(plan, sizes), entered, ways, spraying, ranks, paths)
    of_jobs = None
    if aggregated:
        of_jobs = aggregation_rows(network, aggregated, spraying.meets, ranks[len(plan.jobs) :])
    tables = build(network, ways, work, spraying, of_jobs)
    if aggregated:
        tables.fabric.state["most_needed"] += packets_at_once(tables.jobs, aggregated)
    look = None if watch is None else _Look(watch, network.n_links, ways)
    began = process_time()
    worker_starts = np.concatenate([job.starts_ps() for job in aggregated]) if aggregated else None
    tables, finished = run_fabric(tables, changes, *([] if look is None else [look]), worker_starts=worker_starts)
    cpu = process_time() - began
    require_finished(tables, finished, network)
    fabric = tables.fabric
    if look is not None and np.isfinite(look.next):
        look.make(fabric)
    times = _times(fabric, spraying)
    _check(plan, ways, work, fabric, times)
    results = _with_counters(network, ways, fabric, job_results(plan, times, sizes, entered, trace, "packet"))
    if aggregated:
        ran = Ran(fabric.state, tables.jobs, fabric.link[np.argsort(ways.links)])
        return results + aggregation_results(network, ran, aggregated, cpu, seed=seed if values else None)
    if flaps is None:
        return results
    whole = simulate_sprayed(plan, sizes, spraying, starts=starts, seed=seed)
    return tuple(
        dataclasses.replace(r, counters={**r.counters, "flap_lost_s": r.time - w.time})
        for r, w in zip(results, whole, strict=True)
    )


def queues_of(network: Network, spraying: Spraying) -> Fabric:
    """Return the queues and marks that packets of a switch system meet where others would be sprayed."""
    rules = rules_of(network, ways_of(network), spraying)
    return dataclasses.replace(
        spraying.meets, buffer=rules["queue"], ecn_min=rules["ecn_min"], ecn_max=rules["ecn_max"],
        ecn_probability=rules["most_marked"],
    )  # fmt: skip


class _Look:
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

    def begin(self, fabric: Tables) -> None:
        """Begin with the empty network."""
        room = np.full(self._n_links, np.inf)
        room[self._ways.links] = fabric.link["room"][: len(self._ways.links)]
        self._watch.open(room)
        self.make(fabric)

    def make(self, fabric: Tables) -> Tables:
        """Look."""
        state = fabric.state
        queued, sent = np.zeros((2, self._n_links), np.int64)
        link = fabric.link[: len(self._ways.links)]
        queued[self._ways.links] = link["low"] + link["high"]
        sent[self._ways.links] = link["n_bytes"]
        counts = [int(state[name]) for name in ("retransmissions", "marks", "drops_loss", "drops_full")]
        self._watch.note(queued, sent, np.array(counts))
        return fabric


def _times(fabric: Tables, spraying: Spraying) -> FlowTimes:
    message = fabric.message
    n_packets = (message["end"] - message["first"]).astype(np.int64)
    on_wire = (n_packets - 1) * float(spraying.payload + spraying.header) + message["last_size"]
    start, sent, done = (message[name] / PS for name in ("start", "sent", "done"))
    return FlowTimes(on_wire, start, sent, done, fabric.flow["ready"] / PS, int(fabric.state["packet_hops"]))


def _check(plan: FlowPlan, ways: Ways, work: Work, fabric: Tables, times: FlowTimes) -> None:
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


def _with_counters(network: Network, ways: Ways, fabric: Tables, results: tuple[Result, ...]) -> tuple[Result, ...]:
    state, message = fabric.state, fabric.message
    counters = {
        "packet_hops": state["packet_hops"],
        "packets": message["end"].astype(np.float64).sum() - message["first"].astype(np.float64).sum(),
        "retransmissions": state["retransmissions"],
        "duplicates": state["duplicates"],
        "dropped": state["drops_loss"] + state["drops_full"],
        "trimmed": state["n_trimmed"],
        "marks": state["marks"],
        "out_of_order": state["out_of_order"],
        "timeouts": state["timeouts"],
        "peak_queue_bytes": fabric.link["peak"].max(initial=0),
    }
    carried = fabric.carried if len(fabric.carried) else fabric.link["n_bytes"]
    of_job = carried.reshape(len(results), len(fabric.link))[:, : len(ways.links)]
    counted = []
    for j, result in enumerate(results):
        n_bytes = np.zeros(network.n_links)
        n_bytes[ways.links] = of_job[j]
        numbers = {**result.counters, **{name: float(value) for name, value in counters.items()}}
        counted.append(dataclasses.replace(result, link_bytes=n_bytes, counters=numbers))
    return tuple(counted)
