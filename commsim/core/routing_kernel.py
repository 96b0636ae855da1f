"""Kernels that walk shortest paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jit import kernel
from .network import ROUTINGS

ECMP, SHORTEST, SPRAY = (ROUTINGS.index(name) for name in ("ecmp", "shortest", "spray"))
Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]


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


@kernel
def _next_hops(
    node: int, target: int, outgoing: Rows, hops: NDArray[np.int32], forwards: NDArray[np.bool_], out: NDArray[np.int64]
) -> int:
    """Write to `out` the positions in `outgoing` of the links that lead from `node` nearer to `target`; count them."""
    first, _, end = outgoing
    n = 0
    for k in range(first[node], first[node + 1]):
        if hops[end[k]] == hops[node] - 1 and (end[k] == target or forwards[end[k]]):
            out[n] = k
            n += 1
    return n


@kernel
def walk_routes(
    flows: NDArray[np.int64],
    incoming: Rows,
    outgoing: Rows,
    latency: NDArray[np.float64],
    forwards: NDArray[np.bool_],
    routing: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], int]:
    """Walk from each source to its destination.

    Parameters
    ----------
    flows : int64[n, 3]
        Source, destination and hash, sorted by destination, so that hops are counted once per destination.
    incoming, outgoing : rows
        Links by the node that they lead to, and by the node that they leave.
    latency : float64[n_links], s
        Of each link.
    forwards : bool[n_nodes]
        Whether traffic may pass through a node.
    routing : int
        ECMP, SHORTEST or SPRAY.

    Returns
    -------
    first, link, share, latency, lost
        Columns of Routes in the order of `flows`, and a flow that has no path, or -1.
    """
    n, n_nodes = flows.shape[0], forwards.shape[0]
    first = np.zeros(n + 1, np.int64)
    link = np.empty(8 * n + 16, np.int32)
    share = np.empty(8 * n + 16)
    path_latency = np.zeros(n)
    hops = np.full(n_nodes, -1, np.int32)
    choices = np.empty(outgoing[1].shape[0] + 1, np.int64)
    part = np.zeros(n_nodes)  # of the bytes that reach a node, and
    slowest = np.zeros(n_nodes)  # the longest delay until they do
    reached = np.empty(n_nodes, np.int32)
    m = 0
    counted = -1
    for i in range(n):
        source, target, key = flows[i]
        if target != counted:
            hops_to(target, incoming, forwards, hops)
            counted = target
        if hops[source] < 0:
            return first, link, share, path_latency, i
        reached[0] = source
        part[source], slowest[source] = 1.0, 0.0
        head, tail = 0, 1
        while head < tail:  # nodes come out in order of their distance, so a node's part is complete when it does
            node = reached[head]
            head += 1
            if node == target:
                path_latency[i] = slowest[node]
                continue
            n_choices = _next_hops(node, target, outgoing, hops, forwards, choices)
            lowest, highest = 0, n_choices
            if routing == SHORTEST:
                highest = 1
            elif routing == ECMP:
                lowest = (((key ^ ((node * 40503) & 0x7FFFFFFF)) * 1103515245 + 12345) & 0x7FFFFFFF) // 256 % n_choices
                highest = lowest + 1
            if m + highest >= link.shape[0]:
                link = np.concatenate((link, np.empty(link.shape[0] + n_choices, np.int32)))
                share = np.concatenate((share, np.empty(share.shape[0] + n_choices)))
            for k in choices[lowest:highest]:
                end = outgoing[2][k]
                link[m] = outgoing[1][k]
                share[m] = part[node] / (highest - lowest)
                if part[end] == 0.0:
                    reached[tail] = end
                    tail += 1
                part[end] += share[m]
                slowest[end] = max(slowest[end], slowest[node] + latency[link[m]])
                m += 1
        for k in range(tail):
            part[reached[k]] = slowest[reached[k]] = 0.0
        first[i + 1] = m
    return first, link[:m].copy(), share[:m].copy(), path_latency, -1
