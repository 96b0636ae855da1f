"""Groups of a cluster's endpoints: what is near what, what has little bandwidth, and what no path joins."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.network_queries import locality_levels, tiers


def nearness(network: Network) -> NDArray[np.int64]:
    """Where each endpoint is, from the widest group to itself, int64[n_nodes, n_levels + 1]; others are at -1."""
    levels = locality_levels(network)
    path = np.full((network.n_nodes, len(levels) + 1), -1, np.int64)
    for column, level in enumerate(reversed(levels)):
        path[network.endpoints, column] = level.group
    path[network.endpoints, -1] = network.endpoints
    return path


def poor_groups(network: Network, path: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which groups have less bandwidth to the rest of the network than most groups of their level.

    Failed and slower links make them so. What lies between the endpoints of one group only belongs to it.

    Parameters
    ----------
    path : int64[n_nodes, n_levels + 1]
        Group of each endpoint at each level, as :func:`nearness` gives it.

    Returns
    -------
    bool[n_nodes, n_levels + 1]
    """
    poor = np.zeros(path.shape, np.bool_)
    seats, tier = network.endpoints, tiers(network)
    for column in range(path.shape[1]):
        high = path[:, column].copy()
        low = np.where(high < 0, len(path), high)  # of what is below each node, the first and the last group
        for height in range(1, int(tier.max()) + 1):
            up = (tier[network.src] == height - 1) & (tier[network.dst] == height)
            np.minimum.at(low, network.dst[up], low[network.src[up]])
            np.maximum.at(high, network.dst[up], high[network.src[up]])
        owner = np.where(low == high, low, -1)
        group = path[seats, column]
        leaves = (owner[network.src] != owner[network.dst]) & (owner[network.src] >= 0)
        n_groups = int(group.max()) + 1
        out = np.bincount(owner[network.src[leaves]], weights=network.bandwidth[leaves], minlength=n_groups)
        each = out / np.maximum(np.bincount(group, minlength=n_groups), 1)
        has_seats = np.unique(group)
        is_less = np.ones(n_groups, np.bool_)
        for rate in (np.round(out), np.round(each)):
            values, counts = np.unique(rate[has_seats], return_counts=True)
            usual = values[len(values) - 1 - counts[::-1].argmax()]
            is_less &= rate < usual * (1 - 1e-6)
        poor[seats, column] = is_less[group]
    return poor


def fabrics(network: Network, path: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the fabric that each node is in, int64[n_nodes]; no path joins two of them.

    Parameters
    ----------
    network : Network
        Network with all its links.
    path : int64[n_nodes, n_levels + 1]
        Group of each endpoint at each level, as :func:`nearness` gives it.
    """
    label = np.arange(network.n_nodes)
    if len(np.unique(path[network.endpoints, 0])) == 1 and path.shape[1] > 1:
        return np.zeros_like(label)
    while True:
        lowest = label.copy()
        np.minimum.at(lowest, network.dst, label[network.src])
        np.minimum.at(lowest, network.src, label[network.dst])
        lowest = lowest[lowest]
        if np.array_equal(lowest, label):
            return np.unique(label, return_inverse=True)[1]
        label = lowest


@functools.lru_cache(maxsize=4)  # a service asks about one network all the time
def groups_of(network: Network) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return what :func:`nearness` and :func:`poor_groups` give, found once for each network."""
    path = nearness(network)
    poor = poor_groups(network, path)
    path.setflags(write=False)
    poor.setflags(write=False)
    return path, poor
