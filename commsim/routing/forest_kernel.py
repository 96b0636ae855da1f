"""Kernel that walks routes over a fabric whose classes form a forest: nothing has to be searched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

from .growing_kernel import grown
from .link_rows import Rows
from .ports_kernel import Ports
from .routing_kernel import ALL, BY_DIGITS, _digit, hashed, largest

# Class of each node; parent, depth, metric up and metric down of each class.
Forest = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


@kernel
def choose_ports(
    flows: NDArray[np.int64],
    ports: tuple[Ports, Ports],
    ends: tuple[NDArray[np.int32], NDArray[np.int32]],
    forest: Forest,
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Choose the ports by which routes leave and enter machines: those of the shortest way, whatever hashes say.

    Parameters
    ----------
    flows : int64[n, 2]
        Place of the source among the first ports, and of the destination among the second.
    ports : (Ports, Ports)
        Ports of sources and of destinations; paths of the latter are counted backwards from the destination.
    ends : (int32[n_links], int32[n_links])
        Source and destination of each link.
    forest : Forest
        Classes of the fabric.

    Returns
    -------
    chosen, single : int32[n, 2], bool[n]
        Port of each end; and whether there is one shortest way.
    """
    node_class, parent, depth, up, down = forest
    out, back = ports
    chosen = np.full((flows.shape[0], 2), -1, np.int32)
    single = np.zeros(flows.shape[0], np.bool_)
    for i in range(flows.shape[0]):
        source, target = flows[i, 0], flows[i, 1]
        best, n_best, leave, enter = np.int64(2**62), 0, -1, -1
        for a in range(out[0][source], out[0][source + 1]):
            if out[2][a] > best:
                continue
            from_class = np.int64(node_class[ends[1][out[1][a]]])
            for b in range(back[0][target], back[0][target + 1]):
                total = out[2][a] + back[2][b]
                x, y = from_class, np.int64(node_class[ends[0][back[1][b]]])
                while x != y and x >= 0 and y >= 0:
                    if depth[x] >= depth[y]:
                        total += up[x]
                        x = np.int64(parent[x])
                    else:
                        total += down[y]
                        y = np.int64(parent[y])
                if x != y or total > best:
                    continue
                n_best = n_best + 1 if total == best else 1
                best, leave, enter = total, a, b
        single[i] = n_best == 1 and out[3][leave] and back[3][enter]
        chosen[i, 0], chosen[i, 1] = leave, enter
    return chosen, single


@kernel
def walk_forest(
    flows: tuple[NDArray[np.int64], NDArray[np.int64]],
    ports: tuple[tuple[Ports, Ports], NDArray[np.int32], NDArray[np.bool_]],
    fabric: tuple[Rows, NDArray[np.int32], tuple[NDArray[np.int32], NDArray[np.int32]], Forest],
    latency: NDArray[np.float64],
    order: NDArray[np.int32],
    choice: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]:
    """Walk from endpoints to endpoints of other machines.

    Parameters
    ----------
    flows : (int64[n], int64[n])
        Destination and hash of each route.
    ports : ((Ports, Ports), int32[n, 2], bool[n])
        Ports of sources and of destinations, and what :func:`choose_ports` chose of them.
    fabric : (Rows, int32[n_rows], (int32[n_links], int32[n_links]), Forest)
        Links between switches by the node that they leave, and among these by the class that they lead to; end of the
        rows of the same node and class as each; source and destination of each link; classes of the fabric.
    latency : float64[n_links], s
        Latency of each link.
    order : int32[2, n_nodes]
        Same as in :func:`commsim.routing.routing_kernel.walk_routes`.
    choice : int
        Choice among several links; ALL where there is only one.

    Returns
    -------
    first, link, latency, known
        Links of each route, its latency, and whether it was found; where two ways are equally short it was not.
    """
    rows, alike_to, ends, (node_class, parent, depth, _, _) = fabric
    (out, back), chosen, single = ports
    target_node, key = flows
    n = key.shape[0]
    first = np.zeros(n + 1, np.int64)
    link = np.empty(8 * n + 64, np.int32)
    path_latency = np.zeros(n)
    known = single.copy()
    deepest = largest(depth)
    chain = np.empty(deepest + 1, np.int64)
    radix = np.ones(largest(order[1]) + 2, np.int64)
    m = 0
    for i in range(n):
        leave, enter = chosen[i, 0], chosen[i, 1]
        first[i + 1] = m
        if not known[i]:
            continue
        inside = out[4][leave + 1] - out[4][leave] + back[4][enter + 1] - back[4][enter]
        if m + inside + 2 * deepest + 4 >= link.shape[0]:
            link = grown(link, link.shape[0] + inside)
        for k in range(out[4][leave], out[4][leave + 1]):
            link[m] = out[5][k]
            m += 1
        link[m] = out[1][leave]
        node = ends[1][link[m]]
        m += 1
        last = ends[0][back[1][enter]]
        at = np.int64(node_class[last])
        while at >= 0:
            chain[depth[at]] = at
            at = np.int64(parent[at])
        if choice == BY_DIGITS:
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
            is_there = low < rows[0][node + 1] and node_class[rows[2][low]] == following
            n_choices = alike_to[low] - low if is_there else 0
            if n_choices == 0 or (choice == ALL and n_choices > 1):
                known[i] = False
                break
            if choice == BY_DIGITS:
                taken = _digit(n_choices, order[0, target_node[i]], order[1, node], order[1, rows[2][low]], radix)
            else:
                taken = hashed(n_choices, key[i], node, choice)
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
