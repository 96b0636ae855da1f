"""Link use: which links a placed job uses, and how many times its rate each of them carries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.routing.routing import find_routes

from .cluster import Cluster


def ring_edges(placement: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of nodes that send to each other when a job runs a ring over its hosts in rank order.

    Ranks that follow each other on one host are one stop of the ring. A job inside of one host has no edge; on two
    hosts it has one each way.

    Parameters
    ----------
    placement : sequence of str
        The node of each rank.
    """
    stops = [name for i, name in enumerate(placement) if i == 0 or name != placement[i - 1]]
    if len(stops) > 1 and stops[0] == stops[-1]:
        stops.pop()
    return list(zip(stops, stops[1:] + stops[:1], strict=True)) if len(stops) > 1 else []


def link_use(cluster: Cluster, placement: Sequence[str], seed: int = 0) -> NDArray[np.float64]:
    """How many times the job's rate each directed link carries.

    Returns
    -------
    float64[n_links]
        1 where one edge of the ring passes, k where k do; fractions where the network's routing sprays.

    Raises
    ------
    InputError
        If the network has no such node, or no path.
    """
    use: NDArray[np.float64] = link_uses(cluster, [placement], seed)[0]
    return use


def link_uses(cluster: Cluster, placements: Sequence[Sequence[str]], seed: int = 0) -> NDArray[np.float64]:
    """:func:`link_use` of many placements, found together, which is much faster.

    Returns
    -------
    float64[n_placements, n_links]
    """
    network = cluster.network
    edges = [ring_edges(placement) for placement in placements]
    ends = sorted({edge for ring in edges for edge in ring})
    use = np.zeros((len(placements), network.n_links))
    if not ends:
        return use
    node = _indices(cluster, placements)
    routes = find_routes(network, [node[a] for a, _ in ends], [node[b] for _, b in ends], seed=seed)
    number = {edge: i for i, edge in enumerate(ends)}
    ring = np.repeat(np.arange(len(edges)), [len(one) for one in edges])
    edge = np.array([number[one] for one in itertools.chain(*edges)])
    length = np.diff(routes.first)[edge]
    hop = np.repeat(routes.first[edge] - (np.cumsum(length) - length), length) + np.arange(length.sum())
    np.add.at(use, (np.repeat(ring, length), routes.link[hop]), routes.share[hop])
    return use


def _indices(cluster: Cluster, placements: Sequence[Sequence[str]]) -> dict[str, int]:
    index = {name: i for i, name in enumerate(cluster.network.nodes)}
    for name in {name for placement in placements for name in placement}:
        if name not in index:
            raise InputError(f"a job is placed on {name!r}, which is not a node of {cluster.network.name}")
    return index
