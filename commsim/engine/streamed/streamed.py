"""The event engine for rings of any size: the same events and the same shares, with state for each connection.

A ring of 8,192 ranks has 134 million transfers on 8,192 connections. What each connection sends next, and whether it
may, follows from how many messages it and its feeder have sent and completed, so nothing is kept for a transfer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import PhysicsError
from commsim.core.jit import Records
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow_job import FlowJob, chunk_bytes, not_negative, one_job_result
from commsim.engine.flow_state import FlowLinks, FlowState, allocate_state, share_table
from commsim.engine.flow_tables import lay_out_connections, lay_out_flows
from commsim.engine.recurrence.between_phases import ConnectionWaits, find_all_waits
from commsim.engine.recurrence.ring_phases import RingPhase, connections_of, find_ring_phases
from commsim.engine.trace_files import TraceFile
from commsim.engine.ways.costs import MAX_STREAMED
from commsim.routing.routing import Routes, find_routes

from .ring_connections import RingConnections, in_order, lay_out_ring_connections, mark_uncontended

Table = Records


@dataclass(frozen=True, slots=True, eq=False)
class StreamedPlan:
    """A schedule of phases on a network.

    Parameters
    ----------
    network, job
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    phases : tuple of RingPhase
        Phases in program order.
    begin : int64[n_phases]
        First ring connection of each.
    waits : tuple of tuple of ConnectionWaits
        Waits of each phase for each earlier one.
    ring_connections : RingConnections
        State of the ring connections at the beginning.
    shared : (connection, flow, flow_link, resource)
        Tables of flow_state at the beginning.
    ends : int32[n_connections, 2]
        Participants at the two ends of each connection.
    routes : Routes
        Route of each connection.
    """

    network: Network
    job: FlowJob
    phases: tuple[RingPhase, ...]
    begin: NDArray[np.int64]
    waits: tuple[tuple[ConnectionWaits, ...], ...]
    ring_connections: RingConnections
    shared: tuple[Table, Table, FlowLinks, Table]
    ends: NDArray[np.int32]
    routes: Routes


def plan_streamed(
    network: Network,
    job: FlowJob,
    *,
    routing: str | None = None,
    seed: int = 0,
    phases: tuple[RingPhase, ...] | None = None,
) -> StreamedPlan | None:
    """Lay out connections and ring connections.

    Parameters
    ----------
    network, job, routing, seed
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    phases : tuple of RingPhase, optional
        Phases of the schedule; they are looked for unless given.

    Returns
    -------
    StreamedPlan or None
        None if the schedule is not made of rings, has too many messages to simulate or too many connections that meet,
        or its messages are not equal chunks.
    """
    schedule = job.schedule
    if job.messages is not None or schedule.n_transfers > MAX_STREAMED:
        return None
    phases = phases or find_ring_phases(schedule)
    if not phases:
        return None
    waits = find_all_waits(phases, schedule.n_addresses)
    if waits is None:
        return None
    job.placement.check(network, schedule.n_ranks, schedule.n_helpers)
    ends, channel, connections = connections_of(phases, schedule.n_participants)
    nodes = job.placement.nodes[ends]
    routes = find_routes(network, nodes[:, 0], nodes[:, 1], channel, routing=routing, seed=seed)
    flow, flow_link, capacity = lay_out_flows(network, [job], routes, nodes, np.zeros(len(ends), np.intp), job.weight)
    connection = lay_out_connections(network, np.zeros(len(ends), np.int64), nodes, routes, (flow, flow_link, capacity))
    resource = share_table(capacity, np.bincount(flow_link.resource, minlength=len(capacity)))
    ring_connections, lead = lay_out_ring_connections(phases, connections, waits, len(ends))
    if len(phases) == 1 and not phases[0].has_slots:
        mark_uncontended(
            ring_connections.row, bool(ring_connections.run_reduces.any()), connection, flow, flow_link, resource
        )
    connection["upcoming"], connection["receive"] = np.where(ring_connections.row["uncontended"][lead], -1, lead), lead
    begin = np.cumsum([0, *(len(w) for w in connections)])[:-1]
    return StreamedPlan(
        network, job, phases, begin, waits, ring_connections, (connection, flow, flow_link, resource), ends, routes
    )


def simulate_streamed(
    plan: StreamedPlan,
    size: float,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
) -> Result | None:
    """Simulate one size.

    Parameters
    ----------
    plan : StreamedPlan
        Plan from :func:`plan_streamed`.
    size : float, bytes
        Size of the collective.
    starts, framing, trace
        Same as in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    Result or None
        None if times of transfers are wanted, or one phase might have to wait for something in the middle of another.

    Raises
    ------
    InputError
        If the size is not positive and finite, or a start is negative or not finite.
    PhysicsError
        If a link carried more than it can, or something never completed. This is a bug in commsim.
    """
    from .streamed_kernel import stream

    schedule = plan.job.schedule
    entered = np.broadcast_to(not_negative("start", starts), schedule.n_participants)
    chunk = chunk_bytes(plan.job, size)
    if trace:
        return None
    ring_connections = plan.ring_connections._replace(row=plan.ring_connections.row.copy())
    count = np.concatenate([phase.count.ravel() for phase in plan.phases])
    ring_connections.row["n_bytes"] = n_bytes = (framing or Framing()).on_wire(count * chunk)
    ring_connections.row["send"], ring_connections.row["reduce"] = (
        n_bytes / ring_connections.row["rate"],
        n_bytes / ring_connections.row["reduce_rate"],
    )
    t = _state(plan, len(ring_connections.row))
    t.connection["ready"] = entered[plan.ends].max(axis=1, initial=0.0)
    stream(t, ring_connections)
    if t.counter["n_done"] < schedule.n_transfers:
        raise PhysicsError(f"deadlock: {schedule.n_transfers - t.counter['n_done']} transfers never completed")
    if not in_order(ring_connections.row, plan.begin, plan.waits):
        return None
    per_connection = np.bincount(
        ring_connections.row["connection"], weights=ring_connections.row["n_rounds"] * ring_connections.row["n_bytes"]
    )
    return one_job_result(
        plan.network,
        schedule,
        size,
        entered=entered,
        last=float(ring_connections.row["done_at"].max()),
        carried=plan.routes.carried(per_connection, plan.network.n_links),
        counters={"events": float(t.counter["n_events"])},
    )


def _state(plan: StreamedPlan, n_ring_connections: int) -> FlowState:
    """Allocate the state of connections and resources, with no transfers.

    A ring connection is at most one message ahead of what its feeder has completed. So around a cycle, no more messages
    are on their way than it has ring connections: that many arrivals, and each connection's start, are all events that
    are ever waited for.
    """
    none = np.empty(0, np.int32)
    transfers = none, np.empty(0, np.uint8), np.empty(0), none
    t = allocate_state(transfers, plan.shared, none, (np.zeros(1, np.int64), none))
    room = n_ring_connections + len(plan.ends)
    return t._replace(event_time=np.empty(room), event_code=np.empty(room, np.int64))
