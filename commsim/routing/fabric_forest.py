"""The forest that the classes of a tiered fabric form, where they do: then one path of classes joins two switches.

Routes over a forest of switch classes: the same ones that a search finds, without the search.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.network import Network
from ..core.network_queries import tiers
from .link_rows import Rows, links_in_rows
from .merge_switches import fabric_nodes, switch_classes


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
    n = int(node.max()) + 1
    joins, first = np.unique(
        node[network.src[inside]].astype(np.int64) * n + node[network.dst[inside]], return_index=True
    )
    edge = np.stack(np.divmod(joins, n), axis=1)
    metric = network.metric[inside[first]].astype(np.int64)
    of_edge = np.searchsorted(joins, node[network.src[inside]].astype(np.int64) * n + node[network.dst[inside]])
    if (network.metric[inside] != metric[of_edge]).any():
        return None  # two classes are joined by links of different metrics
    above = _tiers(network, node, n)
    rises = above[edge[:, 1]] > above[edge[:, 0]]
    falls = above[edge[:, 1]] < above[edge[:, 0]]
    if not (rises | falls).all() or len(np.unique(edge[rises, 0])) != rises.sum():
        return None
    parent, up, down = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.int64)
    parent[edge[rises, 0]], up[edge[rises, 0]] = edge[rises, 1], metric[rises]
    if not np.array_equal(np.sort(edge[falls, 1] * n + edge[falls, 0]), joins[rises]):
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
    hung = np.unique(network.src[out].astype(np.int64) * network.n_nodes + network.dst[out]) // network.n_nodes
    inside = 0 if len(np.unique(hung)) < len(hung) else 1
    alike = {(into.get(m, ()), ports) for m, ports in exits.items()}
    return all(
        forest.distance(a, b) < enter + inside + leave
        for ins, outs in alike for a, enter in ins for b, leave in outs if a != b
    )  # fmt: skip


def _ports(
    forest: FabricForest, of: NDArray[np.int32], leaf: NDArray[np.int32], cost: NDArray[np.int32],
    machine: NDArray[np.int32],
) -> dict[int, tuple[tuple[int, int], ...]]:  # fmt: skip
    """Classes of switches that each machine hangs on, and the cheapest port at each."""
    n_classes = len(forest.parent)
    port = machine[of].astype(np.int64) * n_classes + forest.node[leaf]
    order = np.lexsort((cost, port))
    cheapest = order[np.diff(port[order], prepend=-1) > 0]
    whose, at = np.divmod(port[cheapest], n_classes)
    bounds = [*np.flatnonzero(np.diff(whose, prepend=-1)).tolist(), len(whose)]
    pairs = list(zip(at.tolist(), cost[cheapest].tolist(), strict=True))
    return {int(whose[low]): tuple(pairs[low:high]) for low, high in itertools.pairwise(bounds)}


# Routes for which looking for a forest pays.
LEAST = 1024

# What finding both ports and the way between them takes, or more.
WALK_STEPS = 32

_latest: list[tuple[Network, FabricForest | None]] = []

Found = tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


def forest_of(network: Network) -> FabricForest | None:
    """Return the forest of a network's fabric; the last two are cached, such as a network's and its merged form's."""
    for known, forest in _latest:
        if known is network:
            return forest
    _latest[:] = [*_latest[-1:], (network, fabric_forest(network))]
    return _latest[-1][1]


def walk_known(
    network: Network,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    key: NDArray[np.int64],
    choice: int,
    order: NDArray[np.int64],
) -> Found | None:
    """Walk the routes between different machines that need no search.

    Parameters
    ----------
    network : Network
        Any.
    src, dst, key : int64[n_routes]
        Nodes, and the hash of each flow.
    choice : int
        As the kernels name it.
    order : int64[2, n_nodes]
        From :func:`commsim.routing.walk.destination_order`.

    Returns
    -------
    which, first, link, latency, or None
        Numbers of the routes found, rising, and their columns of Routes; None where the fabric is no forest.
    """
    forest = forest_of(network) if len(src) >= LEAST else None
    if forest is None:
        return None
    from ..core.jit import expected_work
    from .forest_kernel import walk_forest
    from .ports_kernel import find_ports

    fabric = fabric_nodes(network)
    unit = np.where(network.machine >= 0, network.machine, network.machine.max() + 1 + np.arange(network.n_nodes))
    apart = np.flatnonzero((unit[src] != unit[dst]) & ~fabric[src] & ~fabric[dst])
    leaving = links_in_rows(network.src, network.dst, network.n_nodes)
    entering = links_in_rows(network.dst, network.src, network.n_nodes)
    inside = (network.machine, fabric, network.forwards, network.metric)
    sources, source = _numbered(src[apart], network.n_nodes)
    targets, target = _numbered(dst[apart], network.n_nodes)
    with expected_work(network.n_links + WALK_STEPS * len(apart)):
        first, link, latency, known = walk_forest(
            np.stack((source, target, dst[apart], key[apart]), axis=1),
            (find_ports(sources, leaving, entering, *inside), find_ports(targets, entering, leaving, *inside)),
            _rows_by_class(network, forest, fabric),
            np.stack((network.src, network.dst), axis=1),
            (forest.node, forest.parent, forest.depth, forest.up, forest.down),
            network.latency,
            order,
            choice,
        )
    return apart[known], np.append(first[:-1][known], first[-1]), link, latency[known]


def _numbered(nodes: NDArray[np.int64], n_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes without repetition, and the place of each among them, without sorting."""
    is_there = np.zeros(n_nodes, np.bool_)
    is_there[nodes] = True
    place = np.cumsum(is_there) - 1
    return np.flatnonzero(is_there).astype(np.int64), place[nodes]


def _rows_by_class(network: Network, forest: FabricForest, fabric: NDArray[np.bool_]) -> Rows:
    """Links between switches of the fabric, by the node that they leave, then by class of the other end."""
    links = np.flatnonzero(fabric[network.src] & fabric[network.dst])
    links = links[np.lexsort((links, forest.node[network.dst[links]], network.src[links]))]
    first = np.searchsorted(network.src[links], np.arange(network.n_nodes + 1))
    return np.asarray(first, np.int64), np.asarray(links, np.int32), network.dst[links]
