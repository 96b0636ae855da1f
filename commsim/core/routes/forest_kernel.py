"""Kernels that walk routes over a fabric whose classes form a forest: nothing has to be searched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..jit import kernel
from .link_rows import Rows
from .routing_kernel import ALL, BY_DIGITS, _digit, _hashed

Ports = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64],
              NDArray[np.int32]]  # fmt: skip
"""Of each endpoint its first port; of each port its link, its distance, whether there is one shortest path to it, the
first link of that path, counted from the endpoint; and these links."""

Forest = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Class of each node; parent, depth, metric up and metric down of each class."""


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
        Of each link.
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
        while head < tail:  # a node stands in the queue again when it was found nearer
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
                        queue = np.concatenate((queue, np.empty(tail, np.int32)))
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
                    link = np.concatenate((link, np.empty(n_ports, np.int32)))
                    cost = np.concatenate((cost, np.empty(n_ports, np.int64)))
                    single = np.concatenate((single, np.empty(n_ports, np.bool_)))
                    begin = np.concatenate((begin, np.empty(n_ports, np.int64)))
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
                        path = np.concatenate((path, np.empty(n_path, np.int32)))
                    path[n_path] = over
                    n_path += 1
                    at = previous
                path[begin[n_ports] : n_path] = path[begin[n_ports] : n_path][::-1].copy()
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


@kernel
def walk_forest(
    flows: NDArray[np.int64],
    out: Ports,
    back: Ports,
    rows: Rows,
    ends: NDArray[np.int32],
    forest: Forest,
    latency: NDArray[np.float64],
    order: NDArray[np.int64],
    choice: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]:
    """Walk from endpoints to endpoints of other machines.

    Parameters
    ----------
    flows : int64[n, 4]
        Place of the source among `out`, of the destination among `back`, the destination, and the hash.
    out, back : Ports
        Ports of sources and destinations; paths of the latter are counted backwards from the destination.
    rows : Rows
        Links between switches by the node that they leave, and among these by the class that they lead to.
    ends : int32[n_links, 2]
        Of all links.
    forest : Forest
        Classes of the fabric.
    latency : float64[n_links], s
        Of each link.
    order : int64[2, n_nodes]
        As :func:`commsim.core.routes.routing_kernel.walk_routes` takes it.
    choice : int
        Which of several links; ALL takes the one there is.

    Returns
    -------
    first, link, latency, known
        Links of each route, its latency, and whether it was found; where two ways are equally short it was not.
    """
    node_class, parent, depth, up, down = forest
    n = flows.shape[0]
    first = np.zeros(n + 1, np.int64)
    link = np.empty(8 * n + 64, np.int32)
    path_latency = np.zeros(n)
    known = np.ones(n, np.bool_)
    deepest = depth.max()
    chain = np.empty(deepest + 1, np.int64)
    radix = np.ones(order[1].max() + 2, np.int64)
    m = 0
    for i in range(n):
        source, target, target_node, key = flows[i]
        best, n_best, leave, enter = np.int64(2**62), 0, -1, -1
        for a in range(out[0][source], out[0][source + 1]):
            if out[2][a] > best:
                continue
            from_class = np.int64(node_class[ends[out[1][a], 1]])
            for b in range(back[0][target], back[0][target + 1]):
                total = out[2][a] + back[2][b]
                x, y = from_class, np.int64(node_class[ends[back[1][b], 0]])
                while x != y and x >= 0 and y >= 0:
                    if depth[x] >= depth[y]:
                        total += up[x]
                        x = parent[x]
                    else:
                        total += down[y]
                        y = parent[y]
                if x != y or total > best:
                    continue
                n_best = n_best + 1 if total == best else 1
                best, leave, enter = total, a, b
        known[i] = n_best == 1 and out[3][leave] and back[3][enter]
        first[i + 1] = m
        if not known[i]:
            continue
        inside = out[4][leave + 1] - out[4][leave] + back[4][enter + 1] - back[4][enter]
        if m + inside + 2 * deepest + 4 >= link.shape[0]:
            link = np.concatenate((link, np.empty(link.shape[0] + inside, np.int32)))
        for k in range(out[4][leave], out[4][leave + 1]):
            link[m] = out[5][k]
            m += 1
        link[m] = out[1][leave]
        node = ends[link[m], 1]
        m += 1
        last = ends[back[1][enter], 0]
        at = np.int64(node_class[last])
        while at >= 0:
            chain[depth[at]] = at
            at = parent[at]
        radix[:] = 1
        while node != last and known[i]:
            here = np.int64(node_class[node])
            is_above = depth[here] < depth[node_class[last]] and chain[depth[here]] == here
            following = chain[depth[here] + 1] if is_above else parent[here]
            low, high = rows[0][node], rows[0][node + 1]
            while low < high:
                middle = (low + high) // 2
                if node_class[rows[2][middle]] < following:
                    low = middle + 1
                else:
                    high = middle
            n_choices = 0
            while low + n_choices < rows[0][node + 1] and node_class[rows[2][low + n_choices]] == following:
                n_choices += 1
            if n_choices == 0 or (choice == ALL and n_choices > 1):
                known[i] = False
                break
            if choice == BY_DIGITS:
                taken = _digit(n_choices, order[0, target_node], order[1, node], order[1, rows[2][low]], radix)
            else:
                taken = _hashed(n_choices, key, node, choice)
            link[m] = rows[1][low + taken]
            node = rows[2][low + taken]
            m += 1
        link[m] = back[1][enter]
        m += 1
        for k in range(back[4][enter + 1] - 1, back[4][enter] - 1, -1):
            link[m] = back[5][k]
            m += 1
        if not known[i]:
            m = first[i]
        for k in range(first[i], m):
            path_latency[i] += latency[link[k]]
        first[i + 1] = m
    return first, link[:m].copy(), path_latency, known
