"""D-mod-K routing: the tree that it needs, and the order of destinations in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import fabric_switches, tiers


def destination_order(network: Network) -> NDArray[np.int32]:
    """Index of each node as a destination, endpoints first, and its tier.

    Endpoints are counted in the order of the tree: by the switch of the fabric that is nearest to each, and under one
    switch by their numbers. GPUs of a rail so follow each other, and go over different switches of the tier above.

    Returns
    -------
    int32[2, n_nodes]
    """
    order = np.zeros((2, network.n_nodes), np.int32)
    is_endpoint = np.zeros(network.n_nodes, np.bool_)
    is_endpoint[network.endpoints] = True
    order[0, np.lexsort((_nearest_switch(network), ~is_endpoint))] = np.arange(network.n_nodes)
    order[1] = np.maximum(tiers(network), 0)
    return order


def _nearest_switch(network: Network) -> NDArray[np.int32]:
    """Return the switch of the fabric that each node of a machine, or host, reaches first; of equals the first."""
    fabric = fabric_switches(network)
    inside = ~fabric[network.src]
    best = np.where(fabric, np.arange(network.n_nodes), 2**62)
    news = fabric
    while news.any():
        links = np.flatnonzero(news[network.dst] & inside)
        src, cost = network.src[links], network.metric[links].astype(np.int64) << 32  # below it the switch's number
        cost += best[network.dst[links]]
        nearer = best.copy()
        np.minimum.at(nearer, src, cost)
        news = nearer < best
        best = nearer
    return (best % 2**32).astype(np.int32)


def require_tiers(network: Network) -> None:
    """Refuse a fabric that is no tree of tiers; what is inside of machines may be as it likes.

    Raises
    ------
    InputError
        If traffic passes a node of no tier, or a link joins switches of one tier.
    """
    tier = tiers(network)
    passed = np.flatnonzero(network.forwards & (tier == 0) & (network.machine < 0))
    if passed.size:
        raise InputError(f"{network.name}: dmodk routing needs a tree, but traffic passes {network.nodes[passed[0]]}")
    switch = fabric_switches(network)
    between = np.flatnonzero(switch[network.src] & switch[network.dst])
    level = between[tier[network.src[between]] == tier[network.dst[between]]]
    if level.size:
        name = network.link_name(int(level[0]))
        raise InputError(f"{network.name}: dmodk routing needs a tree, but {name} joins two switches of one tier")
