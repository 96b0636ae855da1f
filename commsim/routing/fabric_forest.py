"""The forest that the classes of a tiered fabric form, where they do: then one path of classes joins two switches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.network_queries import fact, tiers

from .merge_switches import fabric_nodes, switch_classes

# Machines, classes of switches that they hang on, and metrics.
Ports = tuple[NDArray[np.int64], ...]
# Ports of machines that are compared with those of the same machines at once.
AT_ONCE = 2**18


@dataclass(frozen=True, slots=True, eq=False)
class FabricForest:
    """Classes of the fabric's switches, each with at most one parent.

    Parameters
    ----------
    node : int32[n_nodes]
        Class of each node; every node that is no switch of the fabric has one of its own.
    parent, depth : int32[n_classes]
        Class one tier up, -1 at a root; and the number of classes above.
    up, down : int32[n_classes]
        Metric of the links to the parent's members, and from them.
    """

    node: NDArray[np.int32]
    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    up: NDArray[np.int32]
    down: NDArray[np.int32]

    def distances(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
        """Sum of metrics on the path from each class of `a` to that of `b`; infinite where none is in the fabric."""
        total, a, b = np.zeros(len(a)), a.copy(), b.copy()
        left = np.flatnonzero(a != b)
        while len(left):
            rises = self.depth[a[left]] >= self.depth[b[left]]
            for end, cost, which in ((a, self.up, left[rises]), (b, self.down, left[~rises])):
                total[which] += cost[end[which]]
                end[which] = self.parent[end[which]]
            total[left[(a[left] < 0) | (b[left] < 0)]] = np.inf
            left = left[(a[left] != b[left]) & (total[left] < np.inf)]
        return total


@fact
def fabric_forest(network: Network) -> FabricForest | None:
    """Find the forest of a network's fabric.

    Returns
    -------
    FabricForest or None
        None if some class has two parents, or the network is such that a shortest path could lead through a machine
        between two others or pass a node that is neither a switch nor inside a machine.
    """
    fabric = fabric_nodes(network)
    if (network.forwards & ~fabric & (network.machine < 0)).any() or not fabric.any():
        return None
    node = switch_classes(network, network.metric)
    inside = fabric[network.src] & fabric[network.dst]
    n = int(node.max()) + 1
    ends = node[network.src[inside]].astype(np.int64)
    ends *= n
    ends += node[network.dst[inside]]
    joins, first, of_edge = np.unique(ends, return_index=True, return_inverse=True)
    edge = np.stack(np.divmod(joins, n), axis=1)
    metrics = network.metric[inside]
    metric = metrics[first].astype(np.int64)
    if (metrics != metric[of_edge]).any():
        return None  # two classes are joined by links of different metrics
    above = _tiers(network, node, n)
    rises = above[edge[:, 1]] > above[edge[:, 0]]
    falls = above[edge[:, 1]] < above[edge[:, 0]]
    if not (rises | falls).all() or len(np.unique(edge[rises, 0])) != rises.sum():
        return None
    parent, up, down = np.full(n, -1, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    parent[edge[rises, 0]], up[edge[rises, 0]] = edge[rises, 1], metric[rises]
    if not np.array_equal(np.sort(edge[falls, 1] * n + edge[falls, 0]), joins[rises]):
        return None
    down[edge[falls, 1]] = metric[falls]
    forest = FabricForest(node, parent, _depth(parent), up, down)
    return forest if _machines_are_no_short_cuts(network, forest, fabric) else None


def _tiers(network: Network, node: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    tier = np.zeros(n, np.int32)
    tier[node] = tiers(network)
    return tier


def _depth(parent: NDArray[np.int32]) -> NDArray[np.int32]:
    depth = np.zeros(len(parent), np.int32)
    below = np.flatnonzero(parent >= 0)  # most classes are single nodes of machines, with none above
    at = parent[below]
    while len(below):  # ends, since tiers rise
        depth[below] += 1
        kept = parent[at] >= 0
        below, at = below[kept], parent[at[kept]]
    return depth


def _machines_are_no_short_cuts(network: Network, forest: FabricForest, fabric: NDArray[np.bool_]) -> bool:
    """Whether the fabric leads from each switch that a machine hangs on to each other one faster than the machine.

    Through the machine a message pays both ports, and at least 1 more unless both are the same node's.
    """
    in_machine = network.machine >= 0
    out = np.flatnonzero(in_machine[network.src] & fabric[network.dst])
    back = np.flatnonzero(in_machine[network.dst] & fabric[network.src])
    leave = _ports(forest, network.src[out], network.dst[out], network.metric[out], network.machine)
    enter = _ports(forest, network.dst[back], network.src[back], network.metric[back], network.machine)
    hung = np.sort(network.src[out].astype(np.int64) * network.n_nodes + network.dst[out])  # faster than np.unique
    del out, back
    hung = hung[np.diff(hung, prepend=-1) > 0] // network.n_nodes
    leave, enter = _once(leave, enter)
    inside = 0 if (hung[1:] == hung[:-1]).any() else 1
    first, end = (np.searchsorted(enter[0], leave[0], side) for side in ("left", "right"))
    for low in range(0, len(first), AT_ONCE):
        n = (end - first)[low : low + AT_ONCE]
        to = np.repeat(np.arange(low, low + len(n)), n)
        of = np.repeat(first[low : low + AT_ONCE] - np.cumsum(n) + n, n) + np.arange(n.sum())
        pair = enter[1][of] * len(forest.parent) + leave[1][to]
        order = np.argsort(pair)
        starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
        a, b = np.divmod(pair[order[starts]], len(forest.parent))
        through = np.minimum.reduceat((enter[2][of] + leave[2][to])[order], starts) + inside if len(starts) else 0
        if ((a != b) & (forest.distances(a, b) >= through)).any():
            return False
    return True


def _once(leave: Ports, enter: Ports) -> tuple[Ports, Ports]:
    """Leave out each machine whose ports are those of the machine before it: of neighbours under the same switches."""
    first = [np.searchsorted(columns[0], np.arange(columns[0].max(initial=-1) + 2)) for columns in (leave, enter)]
    sizes = [set(np.diff(at).tolist()) for at in first]
    if len(first[0]) != len(first[1]) or any(len(size) != 1 for size in sizes):
        return leave, enter  # machines of different numbers of ports are all kept
    kept = np.zeros(len(first[0]) - 1, np.bool_)
    kept[:1] = True
    for column in (*leave[1:], *enter[1:]):  # one after the other: of all ports of a million machines
        of_machine = column.reshape(len(kept), -1)
        kept[1:] |= (of_machine[1:] != of_machine[:-1]).any(axis=1)
    of_leave, of_enter = (kept[columns[0]] for columns in (leave, enter))
    return tuple(column[of_leave] for column in leave), tuple(column[of_enter] for column in enter)


def _ports(
    forest: FabricForest, of: NDArray[np.int32], leaf: NDArray[np.int32], cost: NDArray[np.int32],
    machine: NDArray[np.int32],
) -> Ports:  # fmt: skip
    """Machines in rising order, once for each class of switches they hang on; that class; its cheapest port."""
    n_classes = len(forest.parent)
    port = machine[of].astype(np.int64) * n_classes + forest.node[leaf]
    order = np.lexsort((cost, port))
    cheapest = order[np.diff(port[order], prepend=-1) > 0]
    return (*np.divmod(port[cheapest], n_classes), cost[cheapest].astype(np.int64))
