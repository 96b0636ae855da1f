"""Symmetry: connections that behave alike are simulated once.

Connections are put into classes by what they are and by what their transfers wait for, as far back as it goes. Then one
of each class is simulated, with the weight of all, by the event engine's own kernel. Whether members of a class share
links with others than it does is not asked beforehand: where they do, it is checked at every change of rates that each
of them has a resource of its own which holds it to that rate. Then the rates are max-min fair for all, and these are
unique; else the members are distinguished, and it is simulated again. So what could matter, but does not, costs
nothing: in two trees the position of a leaf does not matter, though no two leaves have the same surroundings.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2: an allocation is max-min fair if, and only if,
every flow has a bottleneck.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import PhysicsError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.engine.flow_job import FlowJob, chunk_bytes, not_negative, one_job_result
from commsim.engine.flow_state import FlowState
from commsim.engine.flow_tables import lay_out_connections, lay_out_flows
from commsim.engine.job_connections import JobConnections, ends_of
from commsim.engine.recurrence.connection_costs import merged_routes
from commsim.engine.trace_files import Columns, TraceFile, keep_trace
from commsim.routing.merge_switches import MergedSwitches
from commsim.routing.routing import Routes

from .classes import Full, Quotient, colour_connections, colour_participants, colours_are_few, refined, told_apart
from .pattern import find_pattern

__all__ = ["plan_symmetric", "simulate_symmetric"]

# How often classes are simulated, and distinguished where a check fails.
MAX_ROUNDS = 40
# Classes are first distinguished on this part of all repetitions.
TRIAL = 8
LEAST_CONNECTIONS = 64


def simulate_symmetric(
    plan: SymmetricPlan,
    size: float,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
) -> Result | None:
    """Simulate by classes.

    Parameters
    ----------
    plan : SymmetricPlan
        Plan from :func:`commsim.engine.symmetry.symmetry.plan_symmetric`.
    size, starts, framing, trace
        Same as in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    Result or None
        None if ranks start at different times, or there are too many classes.

    Raises
    ------
    InputError
        If the size or a start is not legal.
    PhysicsError
        If transfers never end, or a link would carry more than it can. This is a bug in commsim.
    """
    schedule = plan.job.schedule
    chunk = chunk_bytes(plan.job, float(size))
    starts = np.broadcast_to(not_negative("start", starts), schedule.n_participants)
    if not (starts == starts[0]).all():
        return None
    if not plan.is_tried:
        plan.lay_out()
    if plan.connections is None:
        return None
    n_bytes = (framing or Framing()).on_wire(plan.connections.full.pattern.transfers["count"] * chunk)
    found = _simulate(plan, n_bytes, float(starts[0]))
    if found is None:
        return None
    classes, t = found
    if t.counter["n_done"] != len(t.done):
        raise PhysicsError(f"deadlock: {len(t.done) - t.counter['n_done']} transfers never completed")
    return one_job_result(
        plan.network,
        schedule,
        float(size),
        entered=starts,
        last=float(t.done.max()),
        begin=float(starts[0]),
        carried=_link_bytes(plan.network, plan.connections, n_bytes),
        counters={"events": float(t.counter["n_events"]), "classes": float(len(classes.lead))},
        trace=keep_trace(trace, schedule.n_transfers, _times(classes, t)),
    )


def _simulate(plan: SymmetricPlan, n_bytes: NDArray[np.float64], ready: float) -> tuple[Quotient, FlowState] | None:
    """Simulate the classes, told apart as far as they must be."""
    from commsim.engine.flow_kernel import simulate

    all_times, now = plan.classes[0].full.pattern.times, 0
    times = max(1, all_times // TRIAL)  # most of what must be distinguished shows soon
    for _ in range(MAX_ROUNDS):
        classes = plan.classes[now]
        t = classes.tables(n_bytes, ready, times)
        simulate(t, False)
        if not t.broken.any():
            if times == all_times:
                return classes, t
            times = all_times
            continue
        finer = plan.tell_apart(now, t.broken)
        if finer is None:
            return None
        now = finer
    return None


def _link_bytes(
    network: Network, connections: SymmetricConnections, n_bytes: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Bytes that each link carried, and that left senders."""
    pattern, routes = connections.full.pattern, connections.routes
    merged = connections.merged
    per_connection = np.bincount(pattern.connection, weights=n_bytes, minlength=len(pattern.lead)) * pattern.times
    if merged is None:
        return routes.carried(per_connection, network.n_links)
    return routes.carried(per_connection, merged.network.n_links, merged.bundles)


def _times(classes: Quotient, t: FlowState) -> Columns:
    """Give every transfer the times of its class."""
    alike, n, each = classes.transfer_of(), len(classes.full.pattern.transfers), int(classes.base[-1])

    def columns(which: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        at = alike[which % n] + which // n * each
        return t.start[at], t.sent[at], t.done[at]

    return columns


@dataclass(frozen=True, slots=True, eq=False)
class SymmetricConnections:
    """All connections of a job on a network.

    Parameters
    ----------
    full : Full
        All connections on the network or on its merged form.
    routes : Routes
        Route of each connection.
    merged : MergedSwitches or None
        How links were put together, if packets are sprayed over them.
    """

    full: Full
    routes: Routes
    merged: MergedSwitches | None


@dataclass(slots=True, eq=False)
class SymmetricPlan:
    """What does not depend on the size; laid out when ranks are first known to start together.

    Parameters
    ----------
    network, job, routing, seed, shared
        Same as in :func:`plan_symmetric`.
    connections : SymmetricConnections or None
        None before, and where nothing is to be won.
    classes : list of Quotient
        The first is what every run starts from, so that a result does not depend on what was asked before.
    finer : dict
        Map from a number of classes, and those of their parts that could have more, to the number of finer ones; None
        where these would be too many.
    """

    network: Network
    job: FlowJob
    routing: str
    seed: int
    shared: JobConnections | None = None
    connections: SymmetricConnections | None = None
    is_tried: bool = False
    classes: list[Quotient] = field(default_factory=list)
    finer: dict[tuple[int, bytes], int | None] = field(default_factory=dict)

    def lay_out(self) -> None:
        """Find the connections and their first classes; nothing if the schedule is too long or most of them differ."""
        self.is_tried = True
        pattern = find_pattern(self.job.schedule, self.shared)
        if (
            pattern is None
            or len(pattern.lead) < LEAST_CONNECTIONS
            or not colours_are_few(pattern, colour_participants(pattern))
        ):
            return
        ends, channel = ends_of(pattern.transfers, pattern.lead)
        nodes = self.job.placement.nodes[ends]
        on, nodes, routes, merged = merged_routes(
            self.network, nodes, channel, routing=self.routing, seed=self.seed, shared=self.shared
        )
        tables = lay_out_flows(on, [self.job], routes, nodes, np.zeros(len(nodes), np.intp))
        full = Full(pattern, lay_out_connections(on, pattern.n_on_connection, nodes, routes, tables), *tables)
        colour = colour_connections(full)
        if colours_are_few(pattern, colour):
            pattern.find_waits(self.job.schedule, self.shared if pattern.times == 1 else None)
            self.connections = (
                None if self._add(refined(full, colour)) is None else SymmetricConnections(full, routes, merged)
            )

    def tell_apart(self, now: int, broken: NDArray[np.int64]) -> int | None:
        """Find the classes that tell apart what could have more from what could not.

        Parameters
        ----------
        now : int
            Number of the classes that were simulated.
        broken : int64[n_variants]
            Same as in :class:`commsim.engine.flow_state.FlowState`.
        """
        from commsim.routing.classes_kernel import number_colours

        # times differ from size to size; what is alike differs less
        alike = number_colours(np.append(broken, 0).astype(np.uint64))[0]
        key = (now, alike.tobytes())
        if key not in self.finer:
            self.finer[key] = self._add(told_apart(self.classes[now], alike))
        return self.finer[key]

    def _add(self, classes: Quotient | None) -> int | None:
        """Keep classes; return their number, if there are any."""
        if classes is None:
            return None
        self.classes.append(classes)
        return len(self.classes) - 1


def plan_symmetric(
    network: Network,
    job: FlowJob,
    *,
    routing: str | None = None,
    seed: int = 0,
    shared: JobConnections | None = None,
) -> SymmetricPlan | None:
    """Plan to simulate a job by classes.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : FlowJob
        What runs.
    routing, seed : str, int
        Same as in :func:`commsim.routing.routing.find_routes`.
    shared : JobConnections, optional
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.

    Returns
    -------
    SymmetricPlan or None
        None if messages have sizes of their own.
    """
    job.placement.check(network, job.schedule.n_ranks, job.schedule.n_helpers)
    return None if job.messages is not None else SymmetricPlan(network, job, routing or network.routing, seed, shared)
