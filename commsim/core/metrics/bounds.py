"""How fast no schedule can be: bounds on all-reduce by counting what must leave machines, racks and single ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..locality import locality_levels
from ..network import Network
from ..tiers import tiers


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the time of a collective of S bytes, as the size over the time.

    Parameters
    ----------
    rate : float, bytes/s
        S over the shortest time: no algorithm bandwidth is higher.
    why : str
        What limits it.
    """

    rate: float
    why: str


def counting_bound(network: Network) -> Bound:
    """Bound all-reduce without reduction in the network by capacities out of and into groups of endpoints.

    For any k groups, each byte of the vector crosses between groups at least 2(k-1) times. Take the group that first
    holds a complete sum: before, the other k-1 must each have sent something; after, each of the k-1 must still
    receive something, and a message that completes one group has not been sent to complete another. So
    ``T >= 2(k-1) S / C`` where C is the capacity out of all groups together, and as well into them. Of one group alone,
    S must go out and S come in. Groups are the single endpoints, the machines, the racks and so on.

    Returns
    -------
    Bound
        The tightest of these; infinite for one endpoint.

    References
    ----------
    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009, theorem 1,
    for single endpoints with equal links.
    """
    n = len(network.endpoints)
    groups = [("endpoint", np.arange(n)), *((level.name, level.group) for level in locality_levels(network))]
    found = [Bound(float("inf"), "one endpoint has nothing to send")]
    for name, group in groups:
        k = int(group.max()) + 1
        for of_node in _surroundings(network, group) if k > 1 else ():
            for capacity, way in _capacities(network, of_node, k):
                found.append(Bound(float(capacity.sum()) / (2 * (k - 1)), f"the capacity {way} all {k} {name}s"))
                found.append(Bound(float(capacity.min()), f"the capacity {way} the weakest {name}"))
    return min(found, key=lambda bound: bound.rate)


def _capacities(network: Network, of_node: NDArray[np.int64], k: int) -> Iterator[tuple[NDArray[np.float64], str]]:
    """Capacity out of each group and into it: of the links that join its nodes to others."""
    for src, dst, way in ((network.src, network.dst, "out of"), (network.dst, network.src, "into")):
        leaves = (of_node[src] >= 0) & (of_node[src] != of_node[dst])
        yield np.bincount(of_node[src[leaves]], network.bandwidth[leaves], k).astype(np.float64), way


def _surroundings(network: Network, group: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Disjoint sets of nodes around the groups of endpoints, for each of which the bound holds: which group, or -1.

    First the endpoints alone; then, tier by tier, also the nodes below which there is one group only.
    """
    of_node = np.full(network.n_nodes, -1, np.int64)
    of_node[network.endpoints] = group
    yield of_node
    tier = tiers(network)
    a, b = np.concatenate((network.src, network.dst)), np.concatenate((network.dst, network.src))
    down = (tier[b] >= 0) & (tier[b] < tier[a])
    a, b = a[down], b[down]
    for level in range(1, int(tier.max()) + 1):
        at = tier[a] == level
        low, high = np.full(network.n_nodes, np.iinfo(np.int64).max), np.full(network.n_nodes, -1, np.int64)
        np.minimum.at(low, a[at], of_node[b[at]])
        np.maximum.at(high, a[at], of_node[b[at]])
        same = low == high
        of_node = np.where(same, low, of_node)
        yield of_node
