"""Tables of connections, flows, flow links and resources, from routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, expected_work
from commsim.core.network import Network
from commsim.routing.crossings.route_links_kernel import (
    RouteLinks,
    count_flow_links,
    find_limiting,
    write_flow_links,
)
from commsim.routing.message_engines import crowded_engines
from commsim.routing.routing import Routes

from .flow_state import CONNECTION_ROW, FLOW_ROW, FlowLinks

Table = Records
# Steps of the kernels for each link of a route, or more.
STEPS = 20


def lay_out_flows(
    network: Network,
    jobs: Sequence[Any],
    routes: Routes,
    nodes: NDArray[np.int32],
    job_of_connection: NDArray[np.intp],
    weight: NDArray[np.float64] | float = 1.0,
) -> tuple[Table, FlowLinks, NDArray[np.float64]]:
    """Lay out flows, their flow links and the resources: links, reduction units of nodes, message engines, rate caps.

    Engines are there where ports alone do not limit overheads (:mod:`commsim.routing.message_engines`). Links
    that are never in the way have no flow links.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    jobs : sequence of Job
        Their priorities and caps.
    routes : Routes
        Route of each connection.
    nodes : int32[n_connections, 2]
        Source and destination of each connection.
    job_of_connection : intp[n_connections]
        Job of each connection.
    weight : float64[n_connections] or float
        Share of a full link that each gets relative to others.

    Returns
    -------
    flow, flow_link, capacity : FLOW_ROW[2 * n_connections], FlowLinks, float64[n_resources] in bytes/s
    """
    n_connections, n_links = len(nodes), network.n_links
    all_whole = routes.share.strides == (0,) or bool((routes.share == 1).all())
    links = RouteLinks(
        routes.first, routes.link, np.empty(0) if all_whole else routes.share, nodes, network.src, network.dst
    )
    cap = np.array([job.rate_cap for job in jobs])[job_of_connection]
    capped = np.flatnonzero(np.isfinite(cap) & (np.diff(routes.first) > 0)).astype(np.int32)
    everyone = np.arange(n_connections, 2 * n_connections, dtype=np.int32)
    with expected_work(STEPS * (len(routes.link) + n_links)):
        sends, receives = network.overhead[nodes[:, 0]] > 0, network.recv_overhead[nodes[:, 1]] > 0
        limits = find_limiting(links, network.bandwidth, sends, receives)
    limits |= network.curves is not None
    core, core_link, core_share = _cores(network, nodes)
    engines = [crowded_engines(network, nodes, routes, end) for end in (0, 1)]
    # a sending flow's flow links are its engine, its route, nearest first, and its cap; a receiving one's its engine,
    # the last links, and the reduction unit of its node
    rows, ports = np.zeros(2 * n_connections, np.int64), np.zeros(n_connections, np.int64)
    with expected_work(STEPS * len(routes.link)):
        count_flow_links(links, limits, rows, ports)
    rows[:n_connections] += np.bincount(core, minlength=n_connections)
    rows[capped] += 1
    rows[n_connections:] += 1
    n_engines, costly = 0, list[tuple[NDArray[np.int32], NDArray[np.intp], NDArray[np.float64]]]()
    for end, engine in enumerate(engines):
        if engine is not None:
            flows = engine.connection + np.int32(end * n_connections)
            rows[flows] += 1
            costly.append((flows, n_links + network.n_nodes + n_engines + engine.number, engine.share))
            n_engines += len(engine.capacity)
    first_cap = n_links + network.n_nodes + n_engines
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(rows)))
    whole = not len(core) and all_whole and all((share == 1).all() for *_, share in costly)
    flow_link = FlowLinks(np.zeros(bounds[-1], np.int32), np.ones(0 if whole else bounds[-1]))
    free = bounds[:-1].copy()
    for of_engine in costly:
        _append(flow_link, free, *of_engine)
    data = free.copy()
    with expected_work(STEPS * len(routes.link)):
        write_flow_links(links, limits, free, flow_link.resource, flow_link.share)
    _append(flow_link, free, core, core_link, core_share)
    _append(flow_link, free, capped, first_cap + np.arange(len(capped)), 1.0)
    _append(flow_link, free, everyone, n_links + nodes[:, 1], 1.0)

    flow: Table = np.zeros(2 * n_connections, FLOW_ROW)
    flow["begin"], flow["end"] = bounds[:-1], bounds[1:]
    flow["port"][:n_connections] = data[:n_connections] + ports
    flow["port"][n_connections:] = bounds[n_connections + 1 :] - 1
    flow["data"][:n_connections] = data[:n_connections]
    flow["data"][n_connections:] = flow["port"][n_connections:]
    flow["weight"] = np.tile(np.broadcast_to(weight, n_connections), 2)
    flow["priority"] = np.tile(np.array([job.priority for job in jobs])[job_of_connection], 2)

    with np.errstate(divide="ignore", over="ignore"):  # no reduction, or one too fast for a float, takes no time
        of_engines = [engine.capacity for engine in engines if engine is not None]
        capacity = np.concatenate((network.bandwidth, 1 / network.gamma, *of_engines, cap[capped]))
    return flow, flow_link, capacity


def _cores(
    network: Network, nodes: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.intp], NDArray[np.float64]]:
    """Flow links of copies inside a rank, where curves say what these take: its core then neither sends nor receives.

    Returns
    -------
    connection, link, share : int32[n], intp[n], float64[n]
        All links of the node, each with as much as fills it.
    """
    local = np.flatnonzero(nodes[:, 0] == nodes[:, 1]) if network.curves is not None else np.empty(0, np.intp)
    of = [np.flatnonzero((network.src == node) | (network.dst == node)) for node in nodes[local, 0]]
    link = np.concatenate([np.empty(0, np.intp), *of])
    share = network.bandwidth[link] / network.curves.bandwidth if network.curves is not None else np.empty(0)
    return np.repeat(local, [len(links) for links in of]).astype(np.int32), link, share


def _runs(owner: NDArray[np.int32]) -> tuple[int, NDArray[np.intp]]:
    """Return the first of rising numbers, and how often it and each one after it occur."""
    first = int(owner[0]) if len(owner) else 0
    return first, np.bincount(owner - first)


def _append(
    flow_link: FlowLinks, free: NDArray[np.int64], owner: NDArray[np.int32], resource: Table, share: Table | float
) -> None:
    """Write flow links of flows, which rise, where the rows that are `free` of each begin."""
    first, n = _runs(owner)
    free_of = free[first : first + len(n)]
    at = np.arange(len(owner)) + np.repeat(free_of - (np.cumsum(n) - n), n)
    flow_link.resource[at] = resource
    if len(flow_link.share):
        flow_link.share[at] = share
    free_of += n


def lay_out_connections(
    network: Network,
    n_transfers: NDArray[np.int64],
    nodes: NDArray[np.int32],
    routes: Routes,
    tables: tuple[Table, FlowLinks, NDArray[np.float64]],
) -> Table:
    """Lay out the connections: their queues, and what a message costs before and after its bytes.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    n_transfers : int64[n_connections]
        How many each connection carries.
    nodes, routes
        Same as in :func:`lay_out_flows`.
    tables : (flow, flow_link, capacity)
        Tables that :func:`lay_out_flows` returns.
    """
    n_connections, (flow, flow_link, capacity) = len(nodes), tables
    connection: Table = np.zeros(n_connections, CONNECTION_ROW)
    end = np.cumsum(n_transfers)
    connection["next"] = connection["receive"] = connection["arrived"] = end - n_transfers
    connection["end"] = end
    connection["latency"] = routes.latency
    src, dst = nodes[:, 0], nodes[:, 1]
    for half, field, cost in (
        (flow[:n_connections], "overhead_work", network.overhead[src]),
        (flow[n_connections:], "receive_work", network.recv_overhead[dst]),
    ):
        costly = np.flatnonzero((half["port"] > half["begin"]) & (cost > 0))
        if costly.size:  # how fast a port works for one connection: all its links of the route together
            alone = capacity[flow_link.resource] / flow_link.shares
            bounds = np.stack((half["begin"], half["port"]), axis=1)[costly].ravel()
            connection[field][costly] = cost[costly] * np.minimum.reduceat(np.append(alone, np.inf), bounds)[::2]
    connection["reduces"] = network.gamma[dst] > 0
    return connection
