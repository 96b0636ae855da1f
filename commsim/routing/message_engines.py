"""The message engines that overheads occupy: of a host, or of each NIC of a machine; never one for each cable.

An overhead holds the port that its message leaves by, and an engine of the node. A node whose messages all leave by one
port needs no engine of its own in tables: what holds the port one after the other holds the engine so, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import NIC, SWITCH, Network

from .routing import Routes

# Links of routes that are looked at together.
PIECE = 2**20


class CrowdedEngines(NamedTuple):
    """Engines whose messages leave (or arrive) by more ports than the node has engines.

    Parameters
    ----------
    connection : int32[n]
        Connections that use one, in rising order.
    number : intp[n]
        Number of the engine of each, from 0.
    share : float64[n]
        Part of the connection's rate that the engine carries.
    capacity : float64[n_engines], bytes/s
        Rate at which an engine works, as bytes that would occupy a port as long.
    node : int32[n_engines]
        Node of each.
    """

    connection: NDArray[np.int32]
    number: NDArray[np.intp]
    share: NDArray[np.float64]
    capacity: NDArray[np.float64]
    node: NDArray[np.int32]


def pieces(n: int) -> Iterator[slice]:
    """Yield slices of `n` rows, so that little else is as long as all of them."""
    return (slice(at, at + PIECE) for at in range(0, n, PIECE))


def engines_of_nodes(network: Network) -> NDArray[np.integer]:
    """Return how many overheads each node spends at once: a switch that aggregates, one at each of its ports.

    Returns
    -------
    int[n_nodes]
    """
    return np.where(network.kind == SWITCH, np.iinfo(np.int32).max, network.message_engines)


def engine_nodes(network: Network, nodes: NDArray[np.integer], routes: Routes, end: int) -> NDArray[np.int32]:
    """Node whose engine each connection's messages occupy at one end.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    nodes : int[n_connections, 2]
        Source and destination of each connection.
    routes : Routes
        Route of each.
    end : int
        0 for the source, 1 for the destination.

    Returns
    -------
    int32[n_connections]
        First NIC of the source's machine on the route, or last one of the destination's; the node itself without one.
    """
    engine = nodes[:, end].astype(np.int32)
    if not (network.kind == NIC).any():
        return engine
    near = network.dst if end == 0 else network.src
    of_connection = np.repeat(np.arange(len(nodes)), np.diff(routes.first))
    nic = near[routes.link]
    is_own = (network.kind[nic] == NIC) & (network.machine[nic] == network.machine[nodes[of_connection, end]])
    of, nic = of_connection[is_own], nic[is_own]
    if end == 0:  # the last assignment counts: the first NIC
        of, nic = of[::-1], nic[::-1]
    engine[of] = nic
    return engine


def crowded_engines(network: Network, nodes: NDArray[np.integer], routes: Routes, end: int) -> CrowdedEngines | None:
    """Find the engines that limit overheads at one end of connections; None where ports alone do.

    Parameters
    ----------
    network, nodes, routes, end
        Same as in :func:`engine_nodes`.
    """
    cost = (network.overhead, network.recv_overhead)[end]
    if not cost.any():
        return None
    of, link, rate = _ports(network, nodes, routes, end, cost)
    if not len(of):
        return None
    engine = engine_nodes(network, nodes, routes, end)
    first, last = np.full(network.n_nodes, network.n_links), np.full(network.n_nodes, -1)
    np.minimum.at(first, engine[of], link)
    np.maximum.at(last, engine[of], link)
    several = (first < last)[engine[of]]
    if not several.any():
        return None
    pairs = np.unique(engine[of][several] * np.int64(network.n_links) + link[several])
    n_ports = np.bincount(pairs // network.n_links, minlength=network.n_nodes)
    is_crowded = n_ports > engines_of_nodes(network)
    mine = np.unique(of[is_crowded[engine[of]]]).astype(np.int32)
    if not len(mine):
        return None
    node, number = np.unique(engine[mine], return_inverse=True)
    slowest = np.full(len(node), np.inf)
    np.minimum.at(slowest, number.ravel(), rate[mine])
    return CrowdedEngines(
        mine, number.ravel(), slowest[number.ravel()] / rate[mine], slowest * network.message_engines[node], node
    )


def _ports(
    network: Network, nodes: NDArray[np.integer], routes: Routes, end: int, cost: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return connections whose messages cost something and the ports that they use; and the rate of each's ports."""
    of_connection = np.repeat(np.arange(len(nodes), dtype=np.int32), np.diff(routes.first))
    at, rate = (network.src, network.dst)[end], np.full(len(nodes), np.inf)
    ports: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
    for hops in pieces(len(of_connection)):
        of, link, share = of_connection[hops], routes.link[hops], routes.share[hops]
        node = nodes[of, end]
        is_port = (at[link] == node) & (cost[node] > 0)
        of, link = of[is_port], link[is_port]
        np.minimum.at(rate, of, network.bandwidth[link] / share[is_port])
        ports.append((of, link))
    none = np.empty(0, np.int32)
    of, link = (np.concatenate(column) for column in zip((none, none), *ports, strict=True))
    return of, link, rate
