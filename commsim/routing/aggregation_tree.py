"""Trees of aggregating switches: their members, parents and links."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections import Counter, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import SWITCH, Network

from .link_rows import only_sends


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
    to_server : tuple of int
        Links from the root to the parameter server, where there is one.
    """

    nodes: tuple[int, ...]
    parent: tuple[int, ...]
    leaf: tuple[int, ...]
    up: tuple[tuple[int, ...], ...]
    worker_up: tuple[tuple[int, ...], ...]
    to_server: tuple[int, ...] = ()

    @property
    def fan_in(self) -> tuple[int, ...]:
        """Children of each aggregator: aggregators and workers."""
        return tuple(np.bincount([*self.parent[1:], *self.leaf], minlength=len(self.nodes)).tolist())


def aggregation_tree(
    network: Network,
    workers: tuple[int, ...],
    *,
    root: int | None = None,
    server: int | None = None,
    edges_only: bool = False,
    turn: int = 0,
    where: NDArray[np.bool_] | None = None,
) -> AggregationTree:
    """Find the tree of shortest paths from a root switch to the workers; where paths join, a switch aggregates.

    A worker inside a machine reaches the switches outside through the NIC that is nearest to it by the network's
    metric, where one of these can aggregate.

    Parameters
    ----------
    network : Network
        Network with the switches.
    workers : tuple of int
        Nodes, all different.
    root : int, optional
        A switch; by default one that is as near as possible to the farthest worker.
    server : int, optional
        Node of the parameter server above the root; the root is then by default the first switch on its way.
    edges_only : bool
        Only the root and the first switch of each worker aggregate, as in ATP; else every switch where paths join.
    turn : int
        Number of the tree among several of one job: it picks one of equally good roots, and of equally short paths.
    where : bool[n_nodes], optional
        Nodes that can aggregate; by default all switches.

    Raises
    ------
    InputError
        Without a worker, or if the root is no switch, or a worker has no path to it.
    """
    _require_workers(workers)
    where = network.kind == SWITCH if where is None else where
    leaving = bool((where & (network.machine < 0)).any())
    *ways, server_way = _ways_out(network, workers if server is None else (*workers, server), leaving)
    if server is None:
        ways.append(server_way)
    elif root is None:
        beside_server = network.dst[(network.src == server_way[-1]) & where[network.dst]]
        root = int(beside_server[0]) if beside_server.size else None
    beside = _neighbours(network)
    if root is None:
        root = _best_root(network, beside, tuple(dict.fromkeys(way[-1] for way in ways)), where, turn)
    elif not 0 <= root < network.n_nodes or network.kind[root] != SWITCH:
        raise InputError(f"{network.name}: the root of an aggregation tree must be a switch, got node {root}")
    above = _parents(network, beside, root, turn)
    paths = [_path_from(network, above, way, root) for way in ways]
    tree = _tree(network, _joins(paths, root, edges_only, where), paths)
    if server is None:
        return tree
    down = _path_from(network, above, server_way, root)[::-1]
    return dataclasses.replace(tree, to_server=_links(_link_between(network), down))


def host_tree(network: Network, workers: tuple[int, ...], host: int, *, turn: int = 0) -> AggregationTree:
    """Return the tree whose only aggregator is a host: shortest paths from all workers, which no switch joins.

    Parameters
    ----------
    network : Network
        Network with the switches.
    workers : tuple of int
        Nodes, all different; one may be the host itself, and needs no link.
    host : int
        Host that aggregates.
    turn : int
        Number that picks one of several equally short paths.

    Raises
    ------
    InputError
        Without a worker, or if the aggregator is no host, or a worker has no path to it.
    """
    _require_workers(workers)
    if not 0 <= host < network.n_nodes or host not in network.endpoints:
        raise InputError(f"{network.name}: this aggregator must be a host, got node {host}")
    above = _parents(network, _neighbours(network), host, turn)
    return _tree(network, [host], [_path_from(network, above, [worker], host) for worker in workers])


def _require_workers(workers: tuple[int, ...]) -> None:
    if not workers or len(set(workers)) != len(workers):
        raise InputError(f"an aggregation tree needs at least one worker, all different, got {workers}")


def _ways_out(network: Network, nodes: tuple[int, ...], leaving: bool) -> list[list[int]]:
    """Path of each node to the last one before the nearest switch outside of its machine; itself where in none."""
    order = np.argsort(network.src, kind="stable")
    first = np.searchsorted(network.src[order], np.arange(network.n_nodes + 1))
    return [
        _way_out(network, node, order, first) if leaving and network.machine[node] >= 0 else [node] for node in nodes
    ]


def _way_out(network: Network, node: int, order: NDArray[np.intp], first: NDArray[np.intp]) -> list[int]:
    """Search the machine by rising distance; `order` has the links by source, from `first` on for each node."""
    near, before, done = [(0, node, node)], dict[int, int](), set[int]()
    while near:
        distance, here, last = heapq.heappop(near)
        if here in done or (here != node and not network.forwards[here]):
            continue
        done.add(here)
        before[here] = last
        for link in order[first[here] : first[here + 1]]:
            there = int(network.dst[link])
            if network.machine[there] == network.machine[node]:
                heapq.heappush(near, (distance + int(network.metric[link]), there, here))
            elif network.kind[there] == SWITCH:
                return _path(before, here, node)[::-1]
    return [node]


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
    src, dst, n = network.src.astype(np.int64), network.dst.astype(np.int64), network.n_nodes
    there = np.unique(src * n + dst)
    both = there[np.isin(there, dst * n + src)]
    first = np.searchsorted(both, np.arange(n + 1) * n)
    beside = (both % n).tolist()
    return [beside[a:b] for a, b in itertools.pairwise(first.tolist())]


def _distances(network: Network, beside: list[list[int]], start: int) -> NDArray[np.float64]:
    passes = network.forwards & ~only_sends(network)
    distance = np.full(network.n_nodes, np.inf)
    distance[start] = 0
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if node != start and not passes[node]:
            continue
        for other in beside[node]:
            if distance[other] == np.inf:
                distance[other] = distance[node] + 1
                queue.append(other)
    return distance


def _parents(network: Network, beside: list[list[int]], root: int, turn: int) -> dict[int, int]:
    """Next node towards the root, by breadth-first search; `turn` rotates the choice among equals."""
    passes = network.forwards & ~only_sends(network)
    distance = _distances(network, beside, root)
    above = {}
    for node in range(network.n_nodes):
        if node == root or distance[node] == np.inf:
            continue
        nearer = [o for o in beside[node] if distance[o] == distance[node] - 1 and (o == root or passes[o])]
        above[node] = nearer[turn % len(nearer)]
    return above


def _path_from(network: Network, above: dict[int, int], way: list[int], root: int) -> list[int]:
    """Path of a node along its way out, and then up to the root."""
    if way[-1] != root and way[-1] not in above:
        raise InputError(f"{network.name}: no path from {network.nodes[root]} to {network.nodes[way[0]]}")
    return way[:-1] + _path(above, way[-1], root)


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
    link = _link_between(network)
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


def _link_between(network: Network) -> dict[tuple[int, int], int]:
    """Link from one node to another; of parallel links the first."""
    pairs = list(zip(network.src.tolist(), network.dst.tolist(), strict=True))
    return {ends: i for i, ends in reversed(list(enumerate(pairs)))}


def _links(link: dict[tuple[int, int], int], path: list[int]) -> tuple[int, ...]:
    return tuple(link[a, b] for a, b in itertools.pairwise(path))
