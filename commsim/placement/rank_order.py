"""The order of ranks within a placement: neighbours on the ring share a host, then a rack, then a pod."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from commsim.core.locality import locality_levels
from commsim.core.network import Network


def nearness(network: Network) -> NDArray[np.int64]:
    """Where each endpoint is, from the widest group to itself, int64[n_nodes, n_levels + 1]; others are at -1."""
    levels = locality_levels(network)
    path = np.full((network.n_nodes, len(levels) + 1), -1, np.int64)
    for column, level in enumerate(reversed(levels)):
        path[network.endpoints, column] = level.group
    path[network.endpoints, -1] = network.endpoints
    return path


def order_ranks(network: Network, nodes: Iterable[str]) -> tuple[str, ...]:
    """Order the places of a job so that its ring leaves each machine, rack and pod only once.

    Groups are nested, so going through them one by one enters and leaves each as often as any ring must.

    Parameters
    ----------
    nodes : iterable of str
        One per GPU, in any order.
    """
    path = nearness(network).tolist()
    index = {name: i for i, name in enumerate(network.nodes)}
    return tuple(sorted(nodes, key=lambda name: path[index[name]]))


def crossings(network: Network, placement: Iterable[str], level: int = 1) -> int:
    """How many edges of a placement's ring leave a group: machines are level 0, racks 1, pods 2."""
    levels = locality_levels(network)
    group = np.full(network.n_nodes, -1, np.int64)
    group[network.endpoints] = levels[min(level, len(levels) - 1)].group
    index = {name: i for i, name in enumerate(network.nodes)}
    at = group[[index[name] for name in placement]]
    return int(np.count_nonzero(at != np.roll(at, -1)))
