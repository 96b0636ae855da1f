"""The flow engine: fluid max-min fair sharing on routed links, event by event.

A message pays its path's latency once and its bytes once, at the rate that its bottleneck gives it: cut-through,
never once per hop. Alone it takes o + bytes/B + L, and gamma * bytes more when it is reduced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import PhysicsError
from commsim.core.limits import give_back_memory
from commsim.core.result import Result
from commsim.routing.flaps import Flaps

from .flow_job import chunk_bytes, not_negative
from .flow_plan import MANY, FlowPlan
from .flow_state import FlowState, allocate_state
from .flow_times import FlowTimes, job_results
from .message_costs import MessageCosts, added_by_protocol, measured_costs, started
from .physics import check_physics
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
    starts = np.broadcast_to(not_negative("start", starts), plan.n_participants)
    played = play(plan, n_bytes, starts=starts, framing=framing, kernel=kernel)
    t, times, costs = played.state, played.times, played.costs
    left = len(plan.connection_of) - int(t.counter["n_done"])
    if left:
        stuck = int(np.flatnonzero(t.waiting > 0)[0])
        raise PhysicsError(f"deadlock: {left} transfers never completed, transfer {stuck} among them")
    del played, t  # tables that the checks need no more
    check_physics(plan, times, costs)
    return times


class FlowRun(NamedTuple):
    """What the kernel leaves: its state, the times, and the costs of a network with measured curves."""

    state: FlowState
    times: FlowTimes
    costs: MessageCosts | None


def play(
    plan: FlowPlan,
    n_bytes: ArrayLike,
    *,
    starts: ArrayLike = 0.0,
    ready: ArrayLike = 0.0,
    framing: Framing | None = None,
    kernel: Callable[[FlowState], None] | None = None,
) -> FlowRun:
    """Simulate the plan once, and check nothing: a participant may start at infinity, so that its messages never do.

    The parameters are those of :func:`simulate_plan`, and `ready`: float64[n_connections], s, before which none sends.
    Times of what has not happened are infinite.
    """
    from .flow_kernel import simulate

    on_wire = (framing or Framing()).on_wire(not_negative("payload", n_bytes))
    on_wire = np.array(np.broadcast_to(on_wire, len(plan.connection_of)))
    transfers = plan.connection_of, plan.op, on_wire, plan.waiting
    costs = measured_costs(plan, transfers[2])
    entered = started(plan, np.broadcast_to(np.asarray(starts, np.float64), plan.n_participants), costs)
    may_send: NDArray[np.float64] = np.maximum(entered, ready)
    flight = None
    if costs is not None and plan.network.curves is not None:  # work in place of bytes: what a link at full rate takes
        transfers = *transfers[:2], costs.occupancy * plan.network.curves.bandwidth, transfers[3]
        flight = costs.flight
    elif plan.network.protocol is not None:
        flight = plan.connection["latency"][plan.connection_of] + added_by_protocol(plan, on_wire)
    several = len({job.priority for job in plan.jobs}) > 1
    shared = plan.connection, plan.flow, plan.flow_link, plan.resource
    if len(on_wire) > MANY:
        give_back_memory()  # of the layout
    t = allocate_state(transfers, shared, plan.queue, plan.successors, flight=flight)
    t.connection["ready"] = may_send
    for moments in (t.start, t.sent, t.done):
        moments[:] = np.inf
    if kernel is None:
        simulate(t, several)
    else:
        kernel(t)
    times = FlowTimes(on_wire, t.start, t.sent, t.done, may_send, int(t.counter["n_events"]))
    return FlowRun(t, times, costs)


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


def compile_events() -> None:
    """Compile the event engine: a second process does so while the first compiles what lays out its tables.

    The message of this simulation is laid out without the compiler, and its tables have the types of all others.
    """
    from commsim.core.network import Network, both_ways, kinds, node_names
    from commsim.core.placement import Placement
    from commsim.core.program import Program

    from .flow_job import FlowJob
    from .flow_plan import plan_flows

    network = Network("pair", node_names(h=2, switch=1), kinds(2, 1), *both_ways([0, 1], [2, 2]), 1.0, 0.0)
    program = Program(2, 1)
    program.copy(0, src=0, dst=1)
    plan = plan_flows(network, [FlowJob(program.build("pair"), Placement(np.arange(2)))])
    simulate_flows(plan, 1.0)
