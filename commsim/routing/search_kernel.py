"""Kernels that measure distances: to one node as far as asked for, in hops, and the longest between hosts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

from .link_rows import Rows

# Links by the node that they lead to, all, and those out of forwarding nodes; links into forwarding nodes by the node
# that they leave; end and metric of each link; whether each node forwards, and its coordinates; the machine of each
# node, plus 1, negative unless the node passes on only what its machine sends.
Graph = tuple[
    Rows, Rows, Rows, NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], NDArray[np.int32], NDArray[np.int32]
]

# Counters, distances, first entry of each bucket, node of each entry, next entry in its bucket.
Search = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]

ANY, LAST_GROUP_CHANGE, DIMENSION_ORDER = range(3)
LEVEL, N_ENTRIES, N_WAITING = range(3)


@kernel
def is_allowed(rule: int, coordinates: NDArray[np.int32], node: int, end: int, source: int, target: int) -> bool:
    """Whether `rule` lets a message from `source` to `target` go from `node` straight to `end`.

    ``LAST_GROUP_CHANGE`` lets it leave a group only into that of `target`, and so once; ``DIMENSION_ORDER`` lets it
    move only along the first dimension in which `node` and `target` differ, and only if `node` is as `source` beyond.
    """
    if rule == LAST_GROUP_CHANGE:
        return bool(coordinates[end, 0] in (coordinates[node, 0], coordinates[target, 0]))
    if rule == DIMENSION_ORDER:
        arrived = True
        for d in range(coordinates.shape[1]):
            here = coordinates[node, d]
            if arrived and here != coordinates[target, d]:
                arrived = False
            elif here != coordinates[end, d] or not (arrived or here == coordinates[source, d]):
                return False
    return True


@kernel
def new_search(n_nodes: int, n_links: int, largest_metric: int) -> Search:
    """Allocate a search; an entry is a link that made a distance smaller, or a node looked at in advance."""
    return (
        np.zeros(3, np.int64),
        np.full(n_nodes, -1, np.int32),
        np.full(largest_metric + 1, -1, np.int32),
        np.empty(n_links + n_nodes + 1, np.int32),
        np.empty(n_links + n_nodes + 1, np.int32),
    )


@kernel
def start_search(source: int, target: int, graph: Graph, rule: int, search: Search) -> None:
    """Forget the last search and begin with the nodes that reach `target` over one link.

    A target that forwards nothing is left out itself, so that the distances are also those to the other nodes that
    hang on the same links; see :func:`commsim.routing.link_rows.shared_searches`.
    """
    counters, distance, bucket, entry, _ = search
    for k in range(counters[N_ENTRIES]):
        distance[entry[k]] = -1
    if counters[N_WAITING] > 0:
        bucket[:] = -1
    counters[:] = 0
    if graph[5][target]:
        _offer(target, 0, search)
    else:
        _expand(target, 0, source, target, graph, rule, search)


@kernel
def distance_from(source: int, target: int, graph: Graph, rule: int, search: Search) -> int:
    """Search on until the distance of `source`, and all that are smaller, are known; -1 without a path."""
    counters, distance, bucket, entry, following = search
    while True:
        nearest = nearest_over_links(source, source, target, graph, rule, distance)
        if not 0 <= nearest <= counters[LEVEL] + 1:
            _look_ahead(source, target, graph, rule, search)
            nearest = nearest_over_links(source, source, target, graph, rule, distance)
        if 0 <= nearest <= counters[LEVEL] + 2:
            return nearest
        if counters[N_WAITING] == 0:
            return nearest
        while bucket[counters[LEVEL] % bucket.shape[0]] < 0:
            counters[LEVEL] += 1
        slot = counters[LEVEL] % bucket.shape[0]
        while bucket[slot] >= 0:
            found = bucket[slot]
            bucket[slot] = following[found]
            counters[N_WAITING] -= 1
            if distance[entry[found]] == counters[LEVEL]:  # else it was found again, nearer by, and expanded then
                _expand(entry[found], counters[LEVEL], source, target, graph, rule, search)
        counters[LEVEL] += 1


@kernel
def nodes_found(flows: NDArray[np.int64], graph: Graph, n_nodes: int, rule: int) -> int:
    """Count the nodes that the searches of some flows find, until they know how far their sources are.

    Parameters
    ----------
    flows : int64[n, 4]
        As of :func:`commsim.routing.routing_kernel.walk_routes`.
    graph : Graph
        The network.
    n_nodes : int
        Nodes of the network.
    rule : int
        Links that may be taken.
    """
    largest = 1
    for metric in graph[4]:
        largest = max(largest, metric)
    search = new_search(n_nodes, graph[3].shape[0], largest)
    n_found, searched = 0, -1
    for i in range(flows.shape[0]):
        source, target, shared = flows[i, 0], flows[i, 1], flows[i, 3]
        if source != target:
            if shared != searched:
                n_found += search[0][N_ENTRIES]
                start_search(source, target, graph, rule, search)
                searched = shared
            distance_from(source, target, graph, rule, search)
    return int(n_found + search[0][N_ENTRIES])


@kernel
def nearest_over_links(
    node: int, source: int, target: int, graph: Graph, rule: int, distance: NDArray[np.int32]
) -> int:
    """Smallest distance over the links that leave `node`, as far as is known; -1 if nothing is."""
    arriving, _, outgoing, end, metric, forwards, coordinates, _ = graph
    nearest = -1
    if not forwards[target]:
        for k in range(arriving[0][target], arriving[0][target + 1]):
            if arriving[2][k] == node and is_allowed(rule, coordinates, node, target, source, target):
                total = metric[arriving[1][k]]
                nearest = total if nearest < 0 else min(nearest, total)
    for k in range(outgoing[0][node], outgoing[0][node + 1]):
        link = outgoing[1][k]
        beyond = distance[end[link]]
        if beyond >= 0 and (rule == ANY or is_allowed(rule, coordinates, node, end[link], source, target)):
            total = beyond + metric[link]
            nearest = total if nearest < 0 else min(nearest, total)
    return nearest


@kernel
def _look_ahead(source: int, target: int, graph: Graph, rule: int, search: Search) -> None:
    """Find the next level among the nodes next to `source`, from their side: cheaper than to expand the whole level."""
    outgoing, level, distance = graph[2], search[0][LEVEL], search[1]
    for k in range(outgoing[0][source], outgoing[0][source + 1]):
        node = outgoing[2][k]
        only_sends = graph[7][node] > 0 and graph[7][node] == abs(graph[7][target])
        if not only_sends and not 0 <= distance[node] <= level + 1:
            nearest = nearest_over_links(node, source, target, graph, rule, distance)
            if 0 <= nearest <= level + 1:
                _offer(node, nearest, search)


@kernel
def _expand(node: int, level: int, source: int, target: int, graph: Graph, rule: int, search: Search) -> None:
    """Offer a distance to every forwarding node from which a link leads to `node`."""
    first, link, origin = graph[1]
    for k in range(first[node], first[node + 1]):
        if graph[7][origin[k]] > 0 and graph[7][origin[k]] == abs(graph[7][target]):
            continue  # it passes on only what its own machine sends
        if rule == ANY or is_allowed(rule, graph[6], origin[k], node, source, target):
            _offer(origin[k], level + graph[4][link[k]], search)


@kernel
def _offer(node: int, distance: int, search: Search) -> None:
    counters, best, bucket, entry, following = search
    if 0 <= best[node] <= distance:
        return
    best[node] = distance
    k, slot = counters[N_ENTRIES], distance % bucket.shape[0]
    entry[k], following[k] = node, bucket[slot]
    bucket[slot] = k
    counters[N_ENTRIES] += 1
    counters[N_WAITING] += 1


@kernel
def hops_to(target: int, incoming: Rows, forwards: NDArray[np.bool_], hops: NDArray[np.int32]) -> None:
    """Fill `hops` with the number of links from each node to `target`, -1 without a path.

    Parameters
    ----------
    target : int
        Node.
    incoming : (int64[n_nodes + 1], int32[n_links], int32[n_links])
        Links by the node that they lead to, and where they come from.
    forwards : bool[n_nodes]
        Whether traffic may pass through a node.
    hops : int32[n_nodes]
        Written in place.
    """
    first, _, origin = incoming
    hops[:] = -1
    hops[target] = 0
    queue = np.empty(hops.shape[0], np.int32)
    queue[0] = target
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        if node != target and not forwards[node]:
            continue
        for k in range(first[node], first[node + 1]):
            if hops[origin[k]] < 0:
                hops[origin[k]] = hops[node] + 1
                queue[tail] = origin[k]
                tail += 1


@kernel
def farthest(
    targets: NDArray[np.int32], hosts: NDArray[np.int32], incoming: Rows, forwards: NDArray[np.bool_]
) -> tuple[int, int, int]:
    """Longest of the shortest paths from any host to one of `targets`, by one breadth-first search per target.

    Parameters
    ----------
    targets : int32[n]
        Hosts.
    hosts : int32[m]
        Hosts that the paths start from.
    incoming : (int64[n_nodes + 1], int32[n_links], int32[n_links])
        Links by the node that they lead to, and where they come from.
    forwards : bool[n_nodes]
        Whether traffic may pass through a node.

    Returns
    -------
    hops, source, target
        Links on the longest path found, and the first host and target without a path, or -1 and -1.
    """
    hops = np.empty(forwards.shape[0], np.int32)
    most, lost, towards = 0, -1, -1
    for target in targets:
        hops_to(target, incoming, forwards, hops)
        for host in hosts:
            if hops[host] > most:
                most = hops[host]
            if hops[host] < 0 and lost < 0:
                lost, towards = host, target
    return most, lost, towards
