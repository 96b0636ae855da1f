"""The flow engine: fluid max-min fair sharing on routed links, event by event.

A message pays its path's latency once and its bytes once, at the rate that its bottleneck gives it: cut-through,
never once per hop. Alone it takes o + bytes/B + L, and gamma * bytes more when it is reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError, PhysicsError
from commsim.core.network import Network
from commsim.core.operations import OPERATIONS
from commsim.core.result import Result, Trace
from commsim.core.schedule import Schedule
from commsim.routing.flaps import Flaps

from .flow_plan import FlowPlan, FlowTimes, Job, link_bytes
from .flow_state import FlowState, allocate_state
from .message_costs import measured_costs, started
from .physics import SLACK, check_links, check_physics
from .trace_files import TraceFile, keep_trace


def simulate_plan(
    plan: FlowPlan,
    n_bytes: ArrayLike,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    kernel: Callable[[FlowState], None] | None = None,
) -> FlowTimes:
    """Simulate the plan once.

    Parameters
    ----------
    plan : FlowPlan
        Plan from :func:`commsim.engine.flow_plan.plan_flows`.
    n_bytes : float64[n_transfers] or float, bytes
        Payload of each transfer.
    starts : float64[n_participants] or float, s
        Time at which each participant, numbered through all jobs, enters its collective.
    framing : Framing, optional
        How messages are cut into packets.
    kernel : callable, optional
        Function that plays the state in place of the event engine's kernel.

    Raises
    ------
    InputError
        If a payload or a start is negative or not finite.
    PhysicsError
        If the result contradicts capacity or causality. This is a bug in commsim.
    """
    from .flow_kernel import simulate

    on_wire = (framing or Framing()).on_wire(not_negative("payload", n_bytes))
    on_wire = np.array(np.broadcast_to(on_wire, len(plan.connection_of)))
    transfers = plan.connection_of, plan.op, on_wire, plan.waiting
    connections = plan.connection.copy()
    starts = np.broadcast_to(not_negative("start", starts), plan.n_participants)
    costs = measured_costs(plan, transfers[2])
    connections["ready"] = started(plan, starts, costs)
    flight = None
    if costs is not None and plan.network.curves is not None:  # work in place of bytes: what a link at full rate takes
        transfers = *transfers[:2], costs.occupancy * plan.network.curves.bandwidth, transfers[3]
        flight = costs.flight
    several = len({job.priority for job in plan.jobs}) > 1
    shared = connections, plan.flow, plan.flow_link, plan.resource
    t = allocate_state(transfers, shared, plan.queue, plan.successors, flight=flight)
    if kernel is None:
        simulate(t, several)
    else:
        kernel(t)
    left = len(plan.connection_of) - int(t.counter["n_done"])
    if left:
        stuck = int(np.flatnonzero(t.waiting > 0)[0])
        raise PhysicsError(f"deadlock: {left} transfers never completed, transfer {stuck} among them")
    times = FlowTimes(on_wire, t.start, t.sent, t.done, connections["ready"], int(t.counter["n_events"]))
    check_physics(plan, times, costs)
    return times


def simulate_flows(
    plan: FlowPlan,
    sizes: ArrayLike,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
    flaps: Flaps | None = None,
    kernel: Callable[[FlowState], None] | None = None,
) -> tuple[Result, ...]:
    """Simulate all jobs of a plan together.

    Parameters
    ----------
    plan : FlowPlan
        What runs where.
    sizes : float64[n_jobs] or float, bytes
        Size of each job's collective; its chunks are equal parts of it.
    starts, framing, kernel
        Same as in :func:`simulate_plan`; there is no other kernel with flaps.
    trace : bool or TraceFile
        Whether results keep the times of every transfer; or to which file they go instead, of all jobs together.
    flaps : Flaps, optional
        Cables that are down for a while. Counters then say how many connections were rerouted and stalled.

    Returns
    -------
    tuple of Result
        One per job.

    Raises
    ------
    InputError
        If a size is not positive and finite, or a flap ends after the run.
    """
    starts = np.broadcast_to(not_negative("start", starts), plan.n_participants)
    flapped = None
    if flaps is None:
        times = simulate_plan(plan, payload(plan, sizes), starts=starts, framing=framing, kernel=kernel)
    else:
        from .flow_flaps import simulate_flaps

        on_wire = np.array((framing or Framing()).on_wire(payload(plan, sizes)), np.float64)
        flapped = simulate_flaps(plan, on_wire, starts, flaps)
        times = flapped.times
    if isinstance(trace, TraceFile):
        keep_trace(trace, len(times.done), lambda which: (times.start[which], times.sent[which], times.done[which]))
    results = job_results(plan, times, sizes, starts, trace is True, engine="flow")
    return results if flapped is None else tuple(flapped.of_job(j, result) for j, result in enumerate(results))


def not_negative(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return `values` as floats; the kernels trust that none is negative or not finite.

    Raises
    ------
    InputError
        If one is.
    """
    array = np.asarray(values, np.float64)
    good = (array >= 0) & np.isfinite(array)
    if not good.all():
        raise InputError(f"{name} must be 0 or more and finite, got {array[~good][0]}")
    return array


def payload(plan: FlowPlan, sizes: ArrayLike) -> NDArray[np.float64]:
    """Bytes of each transfer: every job's data is cut into equal chunks, unless the job knows better.

    Returns
    -------
    float64[n_transfers], bytes

    Raises
    ------
    InputError
        If a size is not positive and finite.
    """
    sizes = np.broadcast_to(np.asarray(sizes, np.float64), len(plan.jobs))
    chunks = [chunk_bytes(job, float(size)) for job, size in zip(plan.jobs, sizes, strict=True)]
    n_bytes = np.empty(len(plan.count))
    for job, mine, size, chunk in zip(plan.jobs, plan.transfers_of, sizes, chunks, strict=True):
        dense = plan.count[mine] * chunk
        n_bytes[mine] = dense if job.messages is None else job.messages(float(size))
    return n_bytes


def chunk_bytes(job: Job, size: float) -> float:
    """Bytes of one chunk of a job's data.

    Raises
    ------
    InputError
        If the size is not positive and finite; 0 is legal for what carries no bytes.
    """
    operation = job.schedule.operation
    may_be_empty = operation != "custom" and OPERATIONS[operation].signals
    if not (size > 0 or (size == 0 and may_be_empty)) or not np.isfinite(size):
        raise InputError(f"size must be positive and finite, got {size}")
    return size / job.schedule.n_chunks


def job_results(
    plan: FlowPlan, times: FlowTimes, sizes: ArrayLike, starts: NDArray[np.float64], trace: bool, engine: str
) -> tuple[Result, ...]:
    """Cut the times of all transfers into one result per job."""
    sizes = np.broadcast_to(np.asarray(sizes, np.float64), len(plan.jobs))
    first = np.cumsum([0, *(job.schedule.n_participants for job in plan.jobs)])
    return tuple(
        _result(plan, times, j, float(sizes[j]), starts[first[j] : first[j] + job.schedule.n_ranks], trace, engine)
        for j, job in enumerate(plan.jobs)
    )


def _result(
    plan: FlowPlan, times: FlowTimes, j: int, size: float, entered: NDArray[np.float64], trace: bool, engine: str
) -> Result:
    schedule, mine = plan.jobs[j].schedule, plan.transfers_of[j]
    end = max(times.done[mine].max(initial=0.0), entered.max())
    crosses = np.diff(plan.routes.first) > 0
    on_wire = float(times.bytes_on_wire[mine][crosses[plan.connection_of[mine]]].sum())
    kept = Trace(times.start[mine], times.sent[mine], times.done[mine]) if trace else None
    counters = {"events": float(times.n_events)}
    return _put_together(schedule, engine, size, entered, end, (link_bytes(plan, times, j), on_wire), counters, kept)


def _put_together(
    schedule: Schedule,
    engine: str,
    size: float,
    entered: NDArray[np.float64],
    end: float,
    carried: tuple[NDArray[np.float64], float],
    counters: Mapping[str, float],
    trace: Trace | None,
) -> Result:
    took = float(end - entered.min()), float(end - entered.max())
    counters = {**counters, "transfers": float(schedule.n_transfers)}
    name, operation, n_ranks = schedule.name, schedule.operation, schedule.n_ranks
    return Result(name, operation, engine, n_ranks, size, *took, *carried, counters=counters, trace=trace)


def one_job_result(
    network: Network,
    schedule: Schedule,
    size: float,
    *,
    entered: NDArray[np.float64],
    last: float,
    begin: float = 0.0,
    carried: tuple[NDArray[np.float64], float],
    counters: Mapping[str, float],
    trace: Trace | None = None,
) -> Result:
    """Check the links, and put the result together.

    Parameters
    ----------
    network : Network
        Network that the job ran on.
    schedule, size
        What ran, and on how many bytes.
    entered : float64[n_participants], s
        Time at which each participant began.
    last, begin : float, s
        Time at which the last transfer was complete, and the time before which none used a link.
    carried : (float64[n_links], float), bytes
        What each link carried, headers included, and the sum of all messages that used one.
    counters : mapping of str to float
        Counters beside the number of transfers.
    trace : Trace, optional
        Times of every transfer.

    Raises
    ------
    PhysicsError
        If a link carried more than it can. This is a bug in commsim.
    """
    ranks = entered[: schedule.n_ranks]
    end = max(last, float(ranks.max()))
    check_links(network, carried[0], end - begin, SLACK * (end - begin))
    return _put_together(schedule, "flow", size, ranks, end, carried, counters, trace)
