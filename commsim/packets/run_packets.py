"""Runs of the packet engine: every message cut into packets, over a transport, on real queues.

A transfer's `sent` is when its last packet has first left its host, and what waits for that may overwrite its data
then: a sender keeps what it may have to repeat. `done` is when its receiver has all its packets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.jit import Kernel, expected_work
from commsim.core.limits import give_back_memory
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow import payload
from commsim.engine.flow_job import not_negative
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.flow_times import job_results
from commsim.engine.message_costs import refuse_curves
from commsim.packets.aggregated.aggregation import Ran, ValuePasses, aggregation_results, packets_at_once
from commsim.packets.aggregated.packet_job import AggregationJob, priority_ranks
from commsim.packets.aggregated.packet_plan import aggregation_rows
from commsim.packets.finished_run import Look, PacketRun, check_run, link_bytes, times_of, with_counters
from commsim.packets.hosts.work import lay_out, nothing_sent
from commsim.packets.link_samples import LinkWatch
from commsim.packets.links.flapping import Flapping
from commsim.packets.links.queues import Fabric
from commsim.packets.packet_work import check_repeats, steps_of
from commsim.packets.run_loop import NO_WORKERS, Stop, run_fabric
from commsim.packets.tables import build
from commsim.packets.transports.spraying import Spraying, in_packets, over_path
from commsim.routing.flaps import Flaps

if TYPE_CHECKING:
    from commsim.packets.flow_capture import FlowCapture
    from switch_model.payload import Payload


MANY = 1 << 18  # messages, whose tables take tens of megabytes
SUMS = "switch_model.replay:compile_sums"
MOST_RULES = 256  # that a flow's row can number


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
    capture : FlowCapture
        Records the packets of one flow.
    flaps : Flaps
        Cables that go down during the run; what they carry then is lost, and sent again.
    watch : LinkWatch
        Is shown the links again and again.
    by_job : sequence of Spraying or None
        How each job of the plan is sent, None as the others. Losses, pauses, shared buffers and weights of classes are
        the run's.
    """

    starts: ArrayLike
    seed: int
    framing: Framing | None
    trace: bool
    tapped: Sequence[int]
    capture: FlowCapture | None
    flaps: Flaps | None
    watch: LinkWatch | None
    by_job: Sequence[Spraying | None]


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
    plan, sizes, how
        Same as in :func:`run_packets`.
    **options
        Those of :class:`RunOptions`.

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
    plan, sizes, how
        Same as in :func:`run_packets`; no plan for no messages.
    **options
        Those of :class:`RunOptions`.
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
    check_repeats(network, jobs, how.fabric)
    refuse_curves(network, "the packet engine takes messages that cost a line", "the engine flow or alpha-beta")
    flaps, watch = options.get("flaps"), options.get("watch")
    if flaps is not None and flaps.rto:
        how = dataclasses.replace(how, rto=flaps.rto)
    hows, rule = _rules_of_jobs(how, plan, options)
    used = hows if plan is None else [hows[i] for i in np.unique(rule)]
    keeping, spraying = ([one.on_path for one in used].count(kept) for kept in (True, False))
    if flaps is not None and keeping and spraying:
        raise InputError("flaps are modelled where all jobs keep to a path, or all spray packets")
    if flaps is not None and jobs:
        raise InputError("flaps are not modelled for packets of switch systems")
    of_plan = [job.priority for job in plan.jobs] if plan is not None else []
    ranks = priority_ranks([*of_plan, *(job.priority for job in jobs)], how.fabric)
    entered = np.broadcast_to(
        not_negative("start", options.get("starts", 0.0)), plan.n_participants if plan is not None else 0
    )
    many = False
    if plan is None:
        laid = nothing_sent(network, how)
    else:
        if many := len(plan.connection_of) > MANY:
            give_back_memory()  # of the search for dependencies
        laid = lay_out(plan, payload(plan, sizes), entered, hows, rule, ranks, beside=bool(jobs))
    of_jobs = aggregation_rows(laid, jobs, ranks[len(of_plan) :])
    capture = options.get("capture")
    if capture is not None and (plan is None or flaps is not None):
        raise InputError("packets of a flow are recorded where messages are sent and no cable flaps")
    flows = [] if capture is None or plan is None else capture.flows(plan)
    tables = build(laid, of_jobs, tapped=options.get("tapped", ()), flows=flows, flaps=flaps is not None)
    if many:
        give_back_memory()  # of the layout
    if jobs:
        tables.fabric.state["most_needed"] += packets_at_once(tables.jobs, jobs)
    stops: list[Stop] = []
    changes = None
    if flaps is not None:
        changes = Flapping(laid.network, laid.ways, flaps, None if spraying else plan)
        stops.append(changes)
    if watch is not None:
        stops.append(Look(watch, network.n_links, laid.ways))
    starts = np.concatenate([NO_WORKERS, *(job.starts_ps() for job in jobs)])
    sums = ValuePasses(tables.jobs, jobs, tensors, how.seed) if jobs and values else None
    if sums is not None:
        Kernel.needed_soon = SUMS
    with expected_work(steps_of(plan, sizes, jobs, how), first=True):
        tables, cpu = run_fabric(laid, tables, stops, starts, None if sums is None else sums.take)
    if watch is not None and np.isfinite(watch.next):
        stops[-1].make(tables.fabric)
    times = times_of(tables.fabric, keep=not many)
    results: tuple[Result, ...] = ()
    if changes is not None:
        changes.flaps.require_begun(float(times.done.max(initial=0.0)))
    if laid.plan is not None:
        check_run(laid, tables.fabric, times, changes)
        found = job_results(laid.plan, times, sizes, entered, options.get("trace", False), "packet")
        results = with_counters(laid, tables.fabric, times, found, changes)
    if jobs:
        carried = [link_bytes(laid, tables.fabric, times, laid.work.n_jobs + j) for j in range(len(jobs))]
        peak = float(tables.fabric.link["peak"][: len(laid.ways.links)].max())
        ran = Ran(tables.fabric.state, tables.jobs, carried, peak)
        results += aggregation_results(ran, jobs, cpu, sums)
    run = PacketRun(results, times, tables, laid, cpu)
    if capture is not None:
        capture.take(run)
    return run


def _rules_of_jobs(
    how: Spraying, plan: FlowPlan | None, options: RunOptions
) -> tuple[list[Spraying], NDArray[np.uint8]]:
    """Return how messages are sent, the run's own way first, and which of these the flows of each job have.

    The first one is not among them where every job has another.
    """
    hows, of_job = [how], []
    for own in () if plan is None else options.get("by_job") or [None] * len(plan.jobs):
        one = how
        if own is not None:
            one = dataclasses.replace(
                in_packets(own, options.get("framing")), rto=own.rto or how.rto, loss=how.loss, seed=how.seed
            )
        hows += [] if one in hows else [one]
        of_job.append(hows.index(one))
    if len(hows) > MOST_RULES:
        raise InputError(f"a run has at most {MOST_RULES} ways in which packets are sent, got {len(hows)}")
    numbers = np.array(of_job, np.uint8)
    return hows, numbers[plan.job_of_connection] if plan is not None else numbers


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
