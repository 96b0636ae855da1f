"""Trees of switches that aggregate: which switches take part, who is whose parent, and over which links."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.network import SWITCH, Network


@dataclass(frozen=True, slots=True)
class AggregationTree:
    """Aggregating switches from the root down, the workers below them, and the links between.

    Parameters
    ----------
    nodes : tuple of int
        Node of each aggregator; the root first, parents before children.
    parent : tuple of int
        Aggregator that each one's sum goes to; -1 for the root.
    leaf : tuple of int
        Aggregator of each worker.
    up : tuple of tuple of int
        Links from each aggregator to its parent; none for the root.
    worker_up : tuple of tuple of int
        Links from each worker to its aggregator.
    """

    nodes: tuple[int, ...]
    parent: tuple[int, ...]
    leaf: tuple[int, ...]
    up: tuple[tuple[int, ...], ...]
    worker_up: tuple[tuple[int, ...], ...]

    @property
    def fan_in(self) -> tuple[int, ...]:
        """Children of each aggregator: aggregators and workers."""
        return tuple(np.bincount([*self.parent[1:], *self.leaf], minlength=len(self.nodes)).tolist())


def aggregation_tree(
    network: Network,
    workers: tuple[int, ...],
    *,
    root: int | None = None,
    edges_only: bool = False,
    turn: int = 0,
    where: NDArray[np.bool_] | None = None,
) -> AggregationTree:
    """Find the tree of shortest paths from a root switch to the workers; where paths join, a switch aggregates.

    Parameters
    ----------
    network : Network
        Where.
    workers : tuple of int
        Nodes, all different.
    root : int, optional
        A switch; unless given, one that is as near as possible to the farthest worker.
    edges_only : bool
        Only the root and the first switch of each worker aggregate, as in ATP; else every switch where paths join.
    turn : int
        Which of several equally good roots, and of equally short paths: for several trees of one job.
    where : bool[n_nodes], optional
        Nodes that can aggregate; all switches unless given.

    Raises
    ------
    InputError
        If there is no worker, the root is no switch, or a worker has no path to it.
    """
    if not workers or len(set(workers)) != len(workers):
        raise InputError(f"an aggregation tree needs at least one worker, all different, got {workers}")
    where = network.kind == SWITCH if where is None else where
    beside = _neighbours(network)
    if root is None:
        root = _best_root(network, beside, workers, where, turn)
    elif not 0 <= root < network.n_nodes or network.kind[root] != SWITCH:
        raise InputError(f"{network.name}: the root of an aggregation tree is a switch, got node {root}")
    above = _parents(network, beside, root, turn)
    paths = []
    for worker in workers:
        if worker not in above:
            raise InputError(f"{network.name}: no path from {network.nodes[root]} to {network.nodes[worker]}")
        paths.append(_path(above, worker, root))
    joins = _joins(paths, root, edges_only, where)
    return _tree(network, joins, paths)


def host_tree(network: Network, workers: tuple[int, ...], host: int, *, turn: int = 0) -> AggregationTree:
    """Return the tree whose only aggregator is a host: shortest paths from all workers, which no switch joins.

    Parameters
    ----------
    network : Network
        Where.
    workers : tuple of int
        Nodes, all different; one may be the host itself, and needs no link.
    host : int
        Who aggregates.
    turn : int
        Which of several equally short paths.

    Raises
    ------
    InputError
        If there is no worker, the aggregator is no host, or a worker has no path to it.
    """
    if not workers or len(set(workers)) != len(workers):
        raise InputError(f"an aggregation tree needs at least one worker, all different, got {workers}")
    if not 0 <= host < network.n_nodes or host not in network.endpoints:
        raise InputError(f"{network.name}: this aggregator is a host, got node {host}")
    above = _parents(network, _neighbours(network), host, turn)
    for worker in workers:
        if worker != host and worker not in above:
            raise InputError(f"{network.name}: no path from {network.nodes[host]} to {network.nodes[worker]}")
    return _tree(network, [host], [_path(above, worker, host) for worker in workers])


def _best_root(
    network: Network, beside: list[list[int]], workers: tuple[int, ...], where: NDArray[np.bool_], turn: int
) -> int:
    """Return a node of `where` with the smallest sum of distances among those nearest to the farthest worker."""
    alike = Counter(tuple(beside[w]) for w in workers)  # workers with the same neighbours are as far from any switch
    first = {tuple(beside[w]): w for w in workers}
    distances = np.stack([_distances(network, beside, first[key]) for key in alike])
    far = np.where(where, distances.max(axis=0), np.inf)
    if not np.isfinite(far.min()):
        raise InputError(f"{network.name}: no switch that can aggregate reaches all workers")
    total = np.where(far == far.min(), np.array(list(alike.values()), np.float64) @ distances, np.inf)
    best = np.flatnonzero(total == total.min())
    return int(best[turn % len(best)])


def _neighbours(network: Network) -> list[list[int]]:
    """Nodes joined to each node in both directions."""
    there = set(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    beside: list[list[int]] = [[] for _ in range(network.n_nodes)]
    for a, b in sorted(there):
        if (b, a) in there:
            beside[a].append(b)
    return beside


def _distances(network: Network, beside: list[list[int]], start: int) -> NDArray[np.float64]:
    distance = np.full(network.n_nodes, np.inf)
    distance[start] = 0
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if node != start and not network.forwards[node]:
            continue
        for other in beside[node]:
            if distance[other] == np.inf:
                distance[other] = distance[node] + 1
                queue.append(other)
    return distance


def _parents(network: Network, beside: list[list[int]], root: int, turn: int) -> dict[int, int]:
    """Next node towards the root, by breadth-first search; `turn` rotates the choice among equals."""
    distance = _distances(network, beside, root)
    above = {}
    for node in range(network.n_nodes):
        if node == root or distance[node] == np.inf:
            continue
        nearer = [o for o in beside[node] if distance[o] == distance[node] - 1 and (o == root or network.forwards[o])]
        above[node] = nearer[turn % len(nearer)]
    return above


def _path(above: dict[int, int], node: int, root: int) -> list[int]:
    path = [node]
    while path[-1] != root:
        path.append(above[path[-1]])
    return path


def _joins(paths: list[list[int]], root: int, edges_only: bool, where: NDArray[np.bool_]) -> list[int]:
    """Return the aggregators, the root first and parents before children."""
    if edges_only:
        chosen = {next((node for node in path[1:] if where[node]), root) for path in paths}
    else:
        below: dict[int, set[int]] = {}
        for path in paths:
            for child, node in itertools.pairwise(path):
                below.setdefault(node, set()).add(child)
        chosen = {node for node, children in below.items() if len(children) > 1 and where[node]}
    depth = {node: len(path) - i for path in paths for i, node in enumerate(path)}
    return [root, *sorted(chosen - {root}, key=lambda n: (depth[n], n))]


def _tree(network: Network, joins: list[int], paths: list[list[int]]) -> AggregationTree:
    number = {node: i for i, node in enumerate(joins)}
    pairs = list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    link = {ends: i for i, ends in reversed(list(enumerate(pairs)))}  # of parallel links the first
    parent, up = [-1] * len(joins), [()] * len(joins)  # type: list[int], list[tuple[int, ...]]
    leaf, worker_up = [], []
    for path in paths:
        stops = [i for i, node in enumerate(path) if node in number]
        leaf.append(number[path[stops[0]]])
        worker_up.append(_links(link, path[: stops[0] + 1]))
        for a, b in itertools.pairwise(stops):
            parent[number[path[a]]] = number[path[b]]
            up[number[path[a]]] = _links(link, path[a : b + 1])
    return AggregationTree(tuple(joins), tuple(parent), tuple(leaf), tuple(up), tuple(worker_up))


def _links(link: dict[tuple[int, int], int], path: list[int]) -> tuple[int, ...]:
    return tuple(link[a, b] for a, b in itertools.pairwise(path))
