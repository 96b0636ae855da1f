"""The alpha-beta engine: the critical path of any schedule under LogGP, without contention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.network import SWITCH, Network
from commsim.core.result import Result
from commsim.core.schedule import REDUCE
from commsim.routing.message_engines import engine_nodes, engines_of_nodes
from commsim.routing.routing import Routes

from .flow import payload
from .flow_job import not_negative
from .flow_plan import FlowPlan
from .flow_times import FlowTimes, job_results
from .message_costs import MessageCosts, added_by_protocol, measured_costs, started

TRANSFER_ROW = np.dtype(
    [
        ("connection", np.int32),
        ("overhead", np.float64),  # s, before its first byte leaves,
        ("busy", np.float64),  # and until its last has left,
        ("latency", np.float64),  # then until that has arrived,
        ("receive", np.float64),  # overhead of the receiver,
        ("adding", np.float64),  # and its reduction; negative where nothing is reduced
        ("start", np.float64),
        ("sent", np.float64),
        ("done", np.float64),
    ],
    align=True,
)

# What the kernel does for a transfer where there are few, or more.
STEPS = 100


def simulate_alpha_beta(
    plan: FlowPlan, sizes: ArrayLike, *, starts: ArrayLike = 0.0, framing: Framing | None = None, trace: bool = False
) -> tuple[Result, ...]:
    """Find the critical path: every message takes what it would take without others, and only ports are shared.

    The result's counter ``link_bound_s`` says how long the busiest link of the network would need for the same
    bytes; where it is larger than the time, contention decides, and this engine does not see it.

    Parameters
    ----------
    plan, sizes, starts, framing, trace
        Same as in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    tuple of Result
        One per job.

    References
    ----------
    Alexandrov, Ionescu, Schauser and Scheiman, "LogGP", SPAA 1995. Without overheads it is Hockney's model.
    """
    from commsim.core.jit import expected_work

    from .alpha_beta_kernel import critical_path

    transfer = np.zeros(len(plan.connection_of), TRANSFER_ROW)
    transfer["connection"] = plan.connection_of
    on_wire = (framing or Framing()).on_wire(payload(plan, sizes))
    costs = measured_costs(plan, on_wire)
    _fill_costs(plan, transfer, on_wire, costs)
    starts = np.broadcast_to(not_negative("start", starts), plan.n_participants)
    connections = plan.connection.copy()
    connections["ready"] = started(plan, starts, costs)
    ports = _ports(plan)
    engines = _engines(plan, ports)
    n_ports = int(ports.max(initial=0)) + 1
    waiting = plan.waiting.copy()
    with expected_work(STEPS * len(transfer)):
        critical_path(transfer, waiting, connections, plan.queue, plan.successors, ports, n_ports, engines)
    times = FlowTimes(
        on_wire, transfer["start"], transfer["sent"], transfer["done"], connections["ready"], len(transfer)
    )
    results = job_results(plan, times, sizes, starts, trace, engine="alpha-beta")
    bound = sum(r.link_bytes for r in results) / plan.network.bandwidth
    return tuple(_with_counter(r, "link_bound_s", float(bound.max(initial=0.0))) for r in results)


def _fill_costs(
    plan: FlowPlan, transfer: NDArray[Any], on_wire: NDArray[np.float64], costs: MessageCosts | None
) -> None:
    """Write what each transfer costs: by the line of its connection, or by the curves of the network."""
    if costs is not None:
        transfer["busy"], transfer["latency"], transfer["adding"] = costs.occupancy, costs.flight, -1.0
        return
    overhead, beta, latency, receive, gamma = connection_costs(plan)[plan.connection_of].T
    transfer["overhead"], transfer["busy"], transfer["latency"] = overhead, overhead + on_wire * beta, latency
    if plan.network.protocol is not None:
        transfer["latency"] += added_by_protocol(plan, on_wire)
    transfer["receive"], transfer["adding"] = receive, np.where(plan.op == REDUCE, gamma * on_wire, -1.0)


def _ports(plan: FlowPlan) -> NDArray[np.int32]:
    """Ports that send, receive and reduce on each connection.

    A participant has one, but one per link on a switch, and in a machine one per link towards its NICs beside the one
    for what stays inside: these share neither links nor message engines.

    Returns
    -------
    int32[n_connections, 3]
    """
    ports = np.concatenate((plan.ends, plan.ends[:, 1:]), axis=1)
    nodes = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends]
    crosses = np.diff(plan.routes.first) > 0
    for end, nearest in ((0, plan.routes.first[:-1]), (1, plan.routes.first[1:] - 1)):
        link = np.full(len(nodes), -1, np.int64)
        link[crosses] = plan.routes.link[nearest[crosses]]
        by_nic = engine_nodes(plan.network, nodes, plan.routes, end) != nodes[:, end]
        many = crosses & ((plan.network.kind[nodes[:, end]] == SWITCH) | np.isin(link, link[by_nic & crosses]))
        ports[many, end] = plan.n_participants + link[many]
    return ports


def _engines(plan: FlowPlan, ports: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Find the groups of message engines that several ports share: those that send, then those that receive.

    Returns
    -------
    group, first : int32[n_connections, 2], int64[n_groups + 1]
        As the kernel takes them.
    """
    network, group, n_engines = plan.network, np.full((len(plan.ends), 2), -1, np.int32), list[int]()
    nodes = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends]
    for end, cost in enumerate((network.overhead, network.recv_overhead)):
        mine = np.flatnonzero((np.diff(plan.routes.first) > 0) & (cost[nodes[:, end]] > 0))
        if not len(mine):
            continue
        engine = engine_nodes(network, nodes, plan.routes, end)
        pairs = np.unique(np.stack((engine[mine], ports[mine, end]), axis=1), axis=0)
        n_ports = np.bincount(pairs[:, 0], minlength=network.n_nodes)
        mine = mine[(n_ports > engines_of_nodes(network))[engine[mine]]]
        which, number = np.unique(engine[mine], return_inverse=True)
        group[mine, end] = len(n_engines) + number.ravel()
        n_engines += network.message_engines[which].tolist()
    return group, np.concatenate((np.zeros(1, np.int64), np.cumsum(n_engines, dtype=np.int64)))


def connection_costs(plan: FlowPlan) -> NDArray[np.float64]:
    """Cost of a message on each connection without others.

    Returns
    -------
    float64[n_connections, 5]
        Overhead (s), seconds per byte, latency (s), receive overhead (s), gamma (s/byte).
    """
    nodes = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends]
    cap = np.array([job.rate_cap for job in plan.jobs])[plan.job_of_connection]
    return costs_alone(plan.network, nodes, plan.routes, cap)


def costs_alone(network: Network, nodes: NDArray[Any], routes: Routes, cap: ArrayLike) -> NDArray[np.float64]:
    """Cost of a message on each route without others.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    nodes : int[n_routes, 2]
        Source and destination of each route; from a node to itself nothing is paid but gamma.
    routes : Routes
        Links, and the share of the bytes that each takes.
    cap : float or float[n_routes], bytes/s
        Highest rate that the job takes.

    Returns
    -------
    float64[n_routes, 5]
        As :func:`connection_costs`.
    """
    crosses = np.diff(routes.first) > 0
    beta = np.zeros(len(nodes))
    of_route = np.repeat(np.arange(len(nodes)), np.diff(routes.first))
    np.maximum.at(beta, of_route, routes.share / network.bandwidth[routes.link])
    columns = (
        np.where(crosses, network.overhead[nodes[:, 0]], 0.0),
        np.where(crosses, np.maximum(beta, 1 / np.asarray(cap)), 0.0),
        routes.latency,
        np.where(crosses, network.recv_overhead[nodes[:, 1]], 0.0),
        network.gamma[nodes[:, 1]],
    )
    return np.stack(columns, axis=1)


def _with_counter(result: Result, name: str, value: float) -> Result:
    import dataclasses

    return dataclasses.replace(result, counters={**result.counters, name: value})
