"""Kernel that finds how endpoints reach a fabric, through the machines that they are in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

from .growing_kernel import grown
from .link_rows import Rows

# Of each endpoint its first port; of each port its link, its distance, whether there is one shortest path to it, the
# first link of that path, counted from the endpoint; and these links.
Ports = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64],
              NDArray[np.int32]]  # fmt: skip


@kernel
def find_ports(
    nodes: NDArray[np.int64],
    away: Rows,
    towards: Rows,
    machine: NDArray[np.int32],
    fabric: NDArray[np.bool_],
    forwards: NDArray[np.bool_],
    metric: NDArray[np.int32],
) -> Ports:
    """Find the links over which endpoints reach the fabric, and the shortest paths to them inside of their machines.

    Parameters
    ----------
    nodes : int64[n]
        Endpoints.
    away, towards : Rows
        Links by the node that they leave and enter; the other way round for the ways back.
    machine, fabric, forwards : int32, bool, bool[n_nodes]
        What each node belongs to.
    metric : int32[n_links]
        Metric of each link.
    """
    n, n_nodes = nodes.shape[0], machine.shape[0]
    first = np.zeros(n + 1, np.int64)
    size = 16
    link = np.empty(size, np.int32)
    cost = np.empty(size, np.int64)
    single = np.empty(size, np.bool_)
    begin = np.zeros(size + 1, np.int64)
    path = np.empty(4 * size, np.int32)
    distance = np.full(n_nodes, -1, np.int64)
    queue = np.empty(1024, np.int32)
    n_ports, n_path = 0, 0
    for i in range(n):
        source = nodes[i]
        queue[0] = source
        distance[source] = 0
        head, tail = 0, 1
        while head < tail:  # a node is in the queue again when it was found nearer
            node = queue[head]
            head += 1
            if node != source and not forwards[node]:
                continue
            for k in range(away[0][node], away[0][node + 1]):
                there = away[2][k]
                total = distance[node] + metric[away[1][k]]
                if (
                    machine[node] >= 0
                    and machine[there] == machine[node]
                    and (distance[there] < 0 or total < distance[there])
                ):
                    distance[there] = total
                    if tail == queue.shape[0]:
                        queue = grown(queue, tail)
                    queue[tail] = there
                    tail += 1
        for q in range(tail):
            node = queue[q]
            if distance[node] < 0 or (node != source and not forwards[node]):
                continue  # taken before, or the end of the road
            for k in range(away[0][node], away[0][node + 1]):
                if not fabric[away[2][k]]:
                    continue
                if n_ports == link.shape[0]:
                    link = grown(link, n_ports)
                    cost = grown(cost, n_ports)
                    single = grown(single, n_ports)
                    begin = grown(begin, n_ports)
                link[n_ports], cost[n_ports] = away[1][k], distance[node] + metric[away[1][k]]
                single[n_ports] = True
                at = node
                while at != source:
                    n_before = 0
                    previous, over = at, -1
                    for j in range(towards[0][at], towards[0][at + 1]):
                        here = towards[2][j]
                        if (
                            machine[here] == machine[source]
                            and (here == source or forwards[here])
                            and distance_or(distance[here]) + metric[towards[1][j]] == distance_or(distance[at])
                        ):
                            n_before += 1
                            previous, over = here, towards[1][j]
                    single[n_ports] &= n_before == 1
                    if n_before == 0:
                        break  # cannot be; never loop
                    if n_path == path.shape[0]:
                        path = grown(path, n_path)
                    path[n_path] = over
                    n_path += 1
                    at = previous
                low, high = begin[n_ports], n_path - 1
                while low < high:  # found from the far end
                    path[low], path[high] = path[high], path[low]
                    low, high = low + 1, high - 1
                n_ports += 1
                begin[n_ports] = n_path
            distance[node] = -2 - distance[node]  # its ports are taken
        for q in range(tail):
            distance[queue[q]] = -1
        first[i + 1] = n_ports
    return (
        first,
        link[:n_ports].copy(),
        cost[:n_ports].copy(),
        single[:n_ports].copy(),
        begin[: n_ports + 1].copy(),
        path,
    )


@kernel
def distance_or(distance: int) -> int:
    """Undo the mark of a node whose ports were taken; far away for one that was not reached."""
    if distance <= -2:
        return -2 - distance
    return distance if distance >= 0 else 2**60
