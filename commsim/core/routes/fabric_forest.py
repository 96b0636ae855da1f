"""The forest that the classes of a tiered fabric form, where they do: then one path of classes joins two switches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..tiers import tiers
from .fold import fabric_nodes, switch_classes


@dataclass(frozen=True, slots=True, eq=False)
class FabricForest:
    """Classes of the fabric's switches, each with at most one parent.

    Parameters
    ----------
    node : int32[n_nodes]
        Class of each node; every node that is no switch of the fabric has one of its own.
    parent, depth : int64[n_classes]
        Class one tier up, -1 at a root; and the number of classes above.
    up, down : int64[n_classes]
        Metric of the links to the parent's members, and from them.
    """

    node: NDArray[np.int32]
    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    up: NDArray[np.int64]
    down: NDArray[np.int64]

    def distance(self, a: int, b: int) -> float:
        """Sum of metrics on the path between switches of two classes; infinite where none leads through the fabric."""
        total = 0
        while a != b:
            if self.depth[a] >= self.depth[b]:
                total, a = total + int(self.up[a]), int(self.parent[a])
            else:
                total, b = total + int(self.down[b]), int(self.parent[b])
            if min(a, b) < 0:
                return float("inf")
        return float(total)


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
    node = switch_classes(network, network.metric.astype(np.int64))
    inside = np.flatnonzero(fabric[network.src] & fabric[network.dst])
    edge, first = np.unique(
        np.stack((node[network.src[inside]], node[network.dst[inside]]), axis=1), axis=0, return_index=True
    )
    metric = network.metric[inside[first]].astype(np.int64)
    ends = np.stack((node[network.src[inside]], node[network.dst[inside]], network.metric[inside]), axis=1)
    if len(np.unique(ends, axis=0)) != len(edge):
        return None  # two classes are joined by links of different metrics
    n = int(node.max()) + 1
    above = _tiers(network, node, n)
    rises = above[edge[:, 1]] > above[edge[:, 0]]
    falls = above[edge[:, 1]] < above[edge[:, 0]]
    if not (rises | falls).all() or len(np.unique(edge[rises, 0])) != rises.sum():
        return None
    parent, up, down = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.int64)
    parent[edge[rises, 0]], up[edge[rises, 0]] = edge[rises, 1], metric[rises]
    if not np.array_equal(np.unique(edge[falls][:, ::-1], axis=0), np.unique(edge[rises], axis=0)):
        return None
    down[edge[falls, 1]] = metric[falls]
    forest = FabricForest(node, parent, _depth(parent), up, down)
    return forest if _machines_are_no_short_cuts(network, forest, fabric) else None


def _tiers(network: Network, node: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    tier = np.zeros(n, np.int64)
    tier[node] = tiers(network)
    return tier


def _depth(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    depth, at = np.zeros(len(parent), np.int64), parent
    while (at >= 0).any():  # ends, since tiers rise
        depth += at >= 0
        at = np.where(at >= 0, parent[at], -1)
    return depth


def _machines_are_no_short_cuts(network: Network, forest: FabricForest, fabric: NDArray[np.bool_]) -> bool:
    """Whether the fabric leads from each switch that a machine hangs on to each other one faster than the machine.

    Through the machine a message pays both ports, and at least 1 more unless both are the same node's.
    """
    out = np.flatnonzero((network.machine[network.src] >= 0) & fabric[network.dst])
    back = np.flatnonzero((network.machine[network.dst] >= 0) & fabric[network.src])
    exits = _ports(forest, network.src[out], network.dst[out], network.metric[out], network.machine)
    into = _ports(forest, network.dst[back], network.src[back], network.metric[back], network.machine)
    hung = np.unique(np.stack((network.src[out], network.dst[out]), axis=1), axis=0)[:, 0]
    inside = 0 if len(np.unique(hung)) < len(hung) else 1
    alike = {(tuple(sorted(into.get(m, {}).items())), tuple(sorted(ports.items()))) for m, ports in exits.items()}
    return all(
        forest.distance(a, b) < enter + inside + leave
        for ins, outs in alike for a, enter in ins for b, leave in outs if a != b
    )  # fmt: skip


def _ports(
    forest: FabricForest, of: NDArray[np.int32], leaf: NDArray[np.int32], cost: NDArray[np.int32],
    machine: NDArray[np.int32],
) -> dict[int, dict[int, int]]:  # fmt: skip
    """Cheapest port of each machine at each class of switches."""
    ports: dict[int, dict[int, int]] = {}
    for m, at, metric in zip(machine[of].tolist(), forest.node[leaf].tolist(), cost.tolist(), strict=True):
        mine = ports.setdefault(m, {})
        mine[at] = min(metric, mine.get(at, metric))
    return ports
