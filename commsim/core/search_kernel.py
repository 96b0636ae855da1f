"""Kernels that measure distances to one node, as far as they are asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jit import kernel
from .link_rows import Rows

Fabric = tuple[NDArray[np.int32], NDArray[np.bool_], NDArray[np.int32]]
"""Metric of each link, whether each node forwards, and coordinates of each node."""

Search = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
"""Counters, distances, first entry of each bucket, node of each entry, next entry in its bucket."""

ANY, LAST_GROUP_CHANGE, DIMENSION_ORDER = range(3)
LEVEL, N_ENTRIES, N_WAITING = range(3)


@kernel
def is_allowed(rule: int, coordinates: NDArray[np.int32], node: int, end: int, target: int) -> bool:
    """Whether `rule` lets a message to `target` go from `node` straight to `end`.

    ``LAST_GROUP_CHANGE`` lets it leave its group only into that of `target`, and so once; ``DIMENSION_ORDER`` lets it
    move only along the first dimension in which `node` and `target` differ.
    """
    if rule == LAST_GROUP_CHANGE:
        return bool(coordinates[end, 0] in (coordinates[node, 0], coordinates[target, 0]))
    if rule == DIMENSION_ORDER:
        is_first = True
        for d in range(coordinates.shape[1]):
            if coordinates[node, d] != coordinates[end, d] and not (
                is_first and coordinates[node, d] != coordinates[target, d]
            ):
                return False
            is_first = is_first and coordinates[node, d] == coordinates[target, d]
    return True


@kernel
def new_search(n_nodes: int, n_links: int, largest_metric: int) -> Search:
    """Allocate a search; every entry is a link that made a distance smaller, or the target itself."""
    return (
        np.zeros(3, np.int64),
        np.full(n_nodes, -1, np.int32),
        np.full(largest_metric + 1, -1, np.int32),
        np.empty(n_links + 1, np.int32),
        np.empty(n_links + 1, np.int32),
    )


@kernel
def start_search(target: int, incoming: Rows, fabric: Fabric, rule: int, search: Search) -> None:
    """Forget the last search and begin with the nodes that reach `target` over one link.

    A target that forwards nothing is left out itself, so that the distances are also those to the other nodes that
    hang on the same links; see :func:`commsim.core.routing.shared_searches`.
    """
    counters, distance, bucket, entry, _ = search
    for k in range(counters[N_ENTRIES]):
        distance[entry[k]] = -1
    if counters[N_WAITING] > 0:
        bucket[:] = -1
    counters[:] = 0
    if fabric[1][target]:
        _offer(target, 0, search)
    else:
        _expand(target, 0, target, incoming, fabric, rule, search)


@kernel
def distance_from(
    node: int, target: int, incoming: Rows, outgoing: Rows, fabric: Fabric, rule: int, search: Search
) -> int:
    """Search on until the distance of `node`, and all that are smaller, are final; -1 if there is no path."""
    counters, bucket, following = search[0], search[2], search[4]
    while True:
        nearest = _nearest(node, target, outgoing, fabric, rule, search[1])
        if 0 <= nearest <= counters[LEVEL] + 1:
            return nearest
        if counters[N_WAITING] == 0:
            return -1
        while bucket[counters[LEVEL] % bucket.shape[0]] < 0:
            counters[LEVEL] += 1
        slot = counters[LEVEL] % bucket.shape[0]
        while bucket[slot] >= 0:
            found = bucket[slot]
            bucket[slot] = following[found]
            counters[N_WAITING] -= 1
            if search[1][search[3][found]] == counters[LEVEL]:  # else it was found again, nearer by, and expanded then
                _expand(search[3][found], counters[LEVEL], target, incoming, fabric, rule, search)
        counters[LEVEL] += 1


@kernel
def _nearest(node: int, target: int, outgoing: Rows, fabric: Fabric, rule: int, distance: NDArray[np.int32]) -> int:
    """Smallest distance over the links that leave `node`, as far as is known; -1 if nothing is."""
    first, link, end = outgoing
    nearest = -1
    for k in range(first[node], first[node + 1]):
        beyond = 0 if end[k] == target else distance[end[k]]
        if beyond >= 0 and (rule == ANY or is_allowed(rule, fabric[2], node, end[k], target)):
            total = beyond + fabric[0][link[k]]
            nearest = total if nearest < 0 else min(nearest, total)
    return nearest


@kernel
def _expand(node: int, level: int, target: int, incoming: Rows, fabric: Fabric, rule: int, search: Search) -> None:
    """Offer a distance to every node from which a link leads to `node`; `incoming` has those that forward."""
    first, link, origin = incoming
    for k in range(first[node], first[node + 1]):
        if rule == ANY or is_allowed(rule, fabric[2], origin[k], node, target):
            _offer(origin[k], level + fabric[0][link[k]], search)


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
    """Fill `hops` with the number of links from each node to `target`, -1 where there is no path.

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
