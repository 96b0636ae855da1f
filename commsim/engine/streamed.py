"""The full engine for rings of any size: the same events and the same shares, with state for each wire.

A ring of 8,192 ranks has 134 million transfers on 8,192 wires. What each wire sends next, and whether it may, follows
from how many messages it and its feeder have sent and completed, so nothing is kept for a transfer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import PhysicsError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.routing.routing import Routes, find_routes

from .flow import chunk_bytes, not_negative, one_job_result
from .flow_plan import Job
from .flow_state import N_DONE, N_EVENTS, Tables, share_table, tables
from .flow_tables import slot_tables, wire_table
from .recurrence.ring_phases import Turn, find_turns, wires_of
from .recurrence.rings import Waits, find_all_waits
from .ring_connections import Legs, in_order, lay_out_legs, mark_lone
from .trace_files import TraceFile

Table = NDArray[Any]

MAX_TRANSFERS = 2**32
"""Some minutes, or an hour where most wires share links."""


@dataclass(frozen=True, slots=True, eq=False)
class Streamed:
    """A schedule of turns on a network.

    Parameters
    ----------
    network, job
        As in :func:`commsim.engine.flow_plan.plan_flows`.
    turns : tuple of Turn
        In program order.
    begin : int64[n_turns]
        First leg of each.
    waits : tuple of tuple of Waits
        Of each turn, for each earlier one.
    legs : Legs
        At the beginning.
    shared : (wire, slot, entry, resource)
        Tables of flow_state at the beginning.
    ends : int32[n_wires, 2]
        Participants at the two ends of each wire.
    routes : Routes
        Of each wire.
    """

    network: Network
    job: Job
    turns: tuple[Turn, ...]
    begin: NDArray[np.int64]
    waits: tuple[tuple[Waits, ...], ...]
    legs: Legs
    shared: tuple[Table, Table, Table, Table]
    ends: NDArray[np.int32]
    routes: Routes


def plan_streamed(network: Network, job: Job, *, routing: str | None = None, seed: int = 0) -> Streamed | None:
    """Lay out wires and legs.

    Parameters
    ----------
    network, job, routing, seed
        As in :func:`commsim.engine.flow_plan.plan_flows`.

    Returns
    -------
    Streamed or None
        None if the schedule is not made of rings, has too many messages to play or too many wires that meet, or its
        messages are not equal chunks.
    """
    schedule = job.schedule
    turns = None if job.messages is not None or schedule.n_transfers > MAX_TRANSFERS else find_turns(schedule)
    if not turns:
        return None
    waits = find_all_waits(turns, schedule.n_addresses)
    if waits is None:
        return None
    job.placement.check(network, schedule.n_ranks, schedule.n_helpers)
    ends, channel, wires = wires_of(turns, schedule.n_participants)
    nodes = job.placement.nodes[ends]
    routes = find_routes(network, nodes[:, 0], nodes[:, 1], channel, routing=routing, seed=seed)
    slot, entry, capacity = slot_tables(network, [job], routes, nodes, np.zeros(len(ends), np.intp))
    wire = wire_table(network, np.zeros(len(ends), np.int64), nodes, routes, (slot, entry, capacity))
    resource = share_table(capacity, np.bincount(entry["resource"], minlength=len(capacity)))
    legs, lead = lay_out_legs(turns, wires, waits, len(ends))
    if len(turns) == 1:
        mark_lone(legs.leg, bool(legs.run_reduces.any()), wire, slot, entry, resource)
    wire["upcoming"], wire["receive"] = np.where(legs.leg["lone"][lead], -1, lead), lead
    begin = np.cumsum([0, *(len(w) for w in wires)])[:-1]
    return Streamed(network, job, turns, begin, waits, legs, (wire, slot, entry, resource), ends, routes)


def simulate_streamed(
    plan: Streamed,
    size: float,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
) -> Result | None:
    """Simulate one size.

    Parameters
    ----------
    plan : Streamed
        From :func:`plan_streamed`.
    size : float, bytes
        Of the collective.
    starts, wire, trace
        As in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    Result or None
        None if times of transfers are wanted, or one turn might have to wait for something in the middle of another.

    Raises
    ------
    InputError
        If the size is not positive and finite, or a start is negative or not finite.
    PhysicsError
        If a link carried more than it can, or something never completed: our bug.
    """
    schedule = plan.job.schedule
    entered = np.broadcast_to(not_negative("start", starts), schedule.n_participants)
    chunk = chunk_bytes(plan.job, size)
    if trace:
        return None
    legs = plan.legs._replace(leg=plan.legs.leg.copy())
    count = np.concatenate([turn.count.ravel() for turn in plan.turns])
    legs.leg["n_bytes"] = n_bytes = (framing or Framing()).on_wire(count * chunk)
    legs.leg["send"], legs.leg["reduce"] = n_bytes / legs.leg["rate"], n_bytes / legs.leg["reduce_rate"]
    counter = _play(plan, legs, entered)
    if counter[N_DONE] < schedule.n_transfers:
        raise PhysicsError(f"deadlock: {schedule.n_transfers - counter[N_DONE]} transfers never completed")
    if not in_order(legs.leg, plan.begin, plan.waits):
        return None
    per_wire = np.bincount(legs.leg["wire"], weights=legs.leg["n_rounds"] * legs.leg["n_bytes"])
    each = np.repeat(per_wire, np.diff(plan.routes.first)) * plan.routes.share
    per_link = np.bincount(plan.routes.link, weights=each, minlength=plan.network.n_links).astype(np.float64)
    return one_job_result(
        plan.network,
        schedule,
        size,
        entered=entered,
        last=float(legs.leg["done_at"].max()),
        carried=(per_link, float(per_wire[np.diff(plan.routes.first) > 0].sum())),
        counters={"events": float(counter[N_EVENTS])},
    )


def _play(plan: Streamed, legs: Legs, entered: NDArray[np.float64]) -> NDArray[np.int64]:
    """Play the legs, which are changed; return the counters."""
    from .streamed_kernel import stream

    t = _tables(plan, len(legs.leg))
    t.wire["ready"] = entered[plan.ends].max(axis=1, initial=0.0)
    stream(t, legs)
    counter: NDArray[np.int64] = t.counter
    return counter


def _tables(plan: Streamed, n_legs: int) -> Tables:
    """Allocate the state of wires and resources, with no transfers.

    A leg is at most one message ahead of what its feeder has completed. So around a cycle, no more messages are on
    their way than it has legs: that many arrivals, and each wire's start, are all events that are ever waited for.
    """
    none = np.empty(0, np.int32)
    transfers = none, np.empty(0, np.uint8), np.empty(0), none
    t = tables(transfers, plan.shared, none, (np.zeros(1, np.int64), none))
    room = n_legs + len(plan.ends)
    return t._replace(event_time=np.empty(room), event_code=np.empty(room, np.int64))
