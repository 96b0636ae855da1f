"""Tables of connections, flows, flow links and resources, from routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.routing.routing import Routes

from .flow_state import CONNECTION_ROW, FLOW_LINK_ROW, FLOW_ROW, IDLE

Table = NDArray[Any]


def lay_out_flows(
    network: Network,
    jobs: Sequence[Any],
    routes: Routes,
    nodes: NDArray[np.int32],
    job_of_connection: NDArray[np.intp],
    weight: NDArray[np.float64] | float = 1.0,
) -> tuple[Table, Table, NDArray[np.float64]]:
    """Lay out flows, their flow links and the resources: links, then reduction units of nodes, then rate caps.

    Links that are never in the way have no flow links.

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
    flow, flow_link : structured arrays
    capacity : float64[n_resources], bytes/s
    """
    n_connections, n_links = len(nodes), network.n_links
    of_connection = np.repeat(np.arange(n_connections, dtype=np.int32), np.diff(routes.first))
    src, dst = nodes[of_connection, 0], nodes[of_connection, 1]
    is_port = network.src[routes.link] == src
    is_last = network.dst[routes.link] == dst
    cap = np.array([job.rate_cap for job in jobs])[job_of_connection]
    capped = np.flatnonzero(np.isfinite(cap) & (np.diff(routes.first) > 0)).astype(np.int32)
    everyone = np.arange(n_connections, dtype=np.int32)
    pays = is_port & (network.overhead[src] > 0) | is_last & (network.recv_overhead[dst] > 0)
    kept = _may_be_full(network, routes, of_connection, pays) | (network.curves is not None)
    is_last &= kept
    core, core_link, core_share = _cores(network, nodes)
    # a sending flow's flow links are its route, nearest first, and its cap; a receiving one's the last links, and the
    # reduction unit of its node
    owner = np.concatenate(
        (of_connection[kept], core, capped, n_connections + of_connection[is_last], n_connections + everyone)
    )
    used = np.concatenate((routes.link[kept], core_link, n_links + network.n_nodes + np.arange(len(capped)),
                           routes.link[is_last], n_links + nodes[:, 1]))  # fmt: skip
    share = np.concatenate(
        (routes.share[kept], core_share, np.ones(len(capped)), routes.share[is_last], np.ones(n_connections))
    )
    order = np.argsort(owner, kind="stable")
    flow_link = np.zeros(len(owner), FLOW_LINK_ROW)
    flow_link["flow"], flow_link["resource"], flow_link["share"] = owner[order], used[order], share[order]

    flow = np.zeros(2 * n_connections, FLOW_ROW)
    bounds = np.searchsorted(flow_link["flow"], np.arange(2 * n_connections + 1))
    flow["begin"], flow["end"] = bounds[:-1], bounds[1:]
    flow["port"][:n_connections] = bounds[:n_connections] + np.bincount(
        of_connection[is_port & kept], minlength=n_connections
    )
    flow["port"][n_connections:] = bounds[n_connections + 1 :] - 1
    flow["phase"], flow["transfer"] = IDLE, -1
    flow["weight"] = np.tile(np.broadcast_to(weight, n_connections), 2)
    flow["priority"] = np.tile(np.array([job.priority for job in jobs])[job_of_connection], 2)

    with np.errstate(divide="ignore", over="ignore"):  # no reduction, or one too fast for a float, takes no time
        capacity = np.concatenate((network.bandwidth, 1 / network.gamma, cap[capped]))
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


def _may_be_full(
    network: Network, routes: Routes, of_connection: NDArray[np.int32], pays: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Find out, for each link of each route, whether it could limit a flow.

    It cannot where all that ever use it, each as fast as the slowest link of its route lets it be, fit together; unless
    it is the one that says so of some connection, or overheads take part (`pays`).
    """
    alone = network.bandwidth[routes.link] / routes.share
    fastest = routes.rates(network)
    most = np.bincount(routes.link, weights=fastest[of_connection] * routes.share, minlength=network.n_links)
    in_the_way = most > network.bandwidth * (1 + 1e-12)
    in_the_way[routes.link[pays]] = True
    slowest = alone == fastest[of_connection]
    is_held = np.zeros(len(fastest), np.bool_)
    is_held[of_connection[slowest & in_the_way[routes.link]]] = True
    rest = np.flatnonzero(slowest & ~is_held[of_connection])
    in_the_way[routes.link[rest[np.diff(of_connection[rest], prepend=-1) > 0]]] = True
    return np.asarray(in_the_way[routes.link])


def lay_out_connections(
    network: Network,
    n_transfers: NDArray[np.int64],
    nodes: NDArray[np.int32],
    routes: Routes,
    tables: tuple[Table, Table, NDArray[np.float64]],
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
    connection = np.zeros(n_connections, CONNECTION_ROW)
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
            alone = capacity[flow_link["resource"]] / flow_link["share"]
            bounds = np.stack((half["begin"], half["port"]), axis=1)[costly].ravel()
            connection[field][costly] = cost[costly] * np.minimum.reduceat(np.append(alone, np.inf), bounds)[::2]
    connection["reduces"] = network.gamma[dst] > 0
    return connection
