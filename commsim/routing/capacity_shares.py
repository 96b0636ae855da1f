"""Shares of adaptive routing: what takes a next hop is in proportion to the capacity of the paths behind it.

A switch with adaptive routing sends a packet through the least loaded of its ports. Alone it sees its own queues. Where
a cable is dead further on, the queue before it fills, credits come back later (InfiniBand) or the sender is told
(congestion control of Spectrum-X, SRD, Ultra Ethernet), and less goes that way until all queues are equally long.
Here every message has these shares from its start, as if every tier were full: that shares are in proportion to
capacity is our model of what these mechanisms end in, not a formula of the sources.

References
----------
Shpiner et al., "Adaptive routing based on flow-control credits", US patent 10,200,294 (a switch chooses among ports by
the credits that come back). Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA
2008 (what is congested behind another router is sensed by the time that credits take). Hoefler et al., "Ultra
Ethernet's design principles and architectural innovations", arXiv:2508.08906.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.hardware import SPREADING, net_of
from commsim.core.network import Network
from commsim.core.network_queries import tiers

from .merge_switches import fabric_nodes
from .routes import Routes

# Weights that differ by less are equal: sums of bandwidths are rounded. Rows of routes that are looked at together.
SAME, AT_ONCE = 1e-9, 2**20

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def shared_by_capacity(network: Network, src: Ints, routes: Routes) -> Routes:
    """Return sprayed routes with the shares of adaptive routing, where the fabric has it and its cables are uneven.

    Parameters
    ----------
    network : Network
        Network with the switches; those that ``SPREADING`` of :mod:`commsim.core.machines.hardware` names adapt.
    src : int64[n_routes]
        Node that each route begins at.
    routes : Routes
        Routes over all shortest paths, with equal shares at each node.
    """
    if net_of(network.hardware) not in SPREADING or (routes.share == 1).all():
        return routes
    cables = CableCapacity.of(network)
    if cables is None:
        return routes
    share, low = routes.share.copy(), 0
    while low < len(src):
        high = max(low + 1, int(np.searchsorted(routes.first, routes.first[low] + AT_ONCE, "right")) - 1)
        rows = slice(routes.first[low], routes.first[high])
        of_route = np.repeat(np.arange(high - low), np.diff(routes.first[low : high + 1]))
        some = PathsByLevel.of(network, cables, src[low:high], routes.link[rows], of_route)
        share[rows] = some.shares(share[rows])
        low = high
    return Routes(routes.first, routes.link, share, routes.latency)


@dataclass(frozen=True, slots=True, eq=False)
class CableCapacity:
    """Cables between switches of the fabric.

    Parameters
    ----------
    inside : bool[n_links]
        Whether each link is such a cable.
    whole : float64[n_links]
        Capacity of all cables from one switch to another, of the largest such capacity between their tiers.
    part : float64[n_links]
        Part of it that each cable has.
    """

    inside: NDArray[np.bool_]
    whole: Floats
    part: Floats

    @classmethod
    def of(cls, network: Network) -> CableCapacity | None:
        """Sum cables up; None if switches of a tier have equally many neighbours in another, with equal capacity."""
        fabric, tier = fabric_nodes(network), tiers(network) + 1
        inside = fabric[network.src] & fabric[network.dst]
        ends = np.stack((network.src, network.dst, network.metric), axis=1)[inside].astype(np.int64)
        bundle, at = np.unique(ends, axis=0, return_inverse=True)
        at = at.ravel()
        capacity = np.bincount(at, network.bandwidth[inside], len(bundle)).astype(np.float64)
        n_tiers = int(tier.max(initial=0)) + 1
        a, b = bundle[:, 0], bundle[:, 1]
        node, of_node, n_next = np.unique(a * n_tiers + tier[b], return_inverse=True, return_counts=True)
        kind = np.unique(tier[node // n_tiers] * n_tiers + node % n_tiers, return_inverse=True)[1]
        low, high = _extremes(capacity, kind[of_node])
        if not _differ(low, high) and not _differ(*_extremes(n_next.astype(np.float64), kind)):
            return None
        whole, part = np.ones(network.n_links), np.ones(network.n_links)
        whole[inside] = (capacity / high[kind[of_node]])[at]
        part[inside] = network.bandwidth[inside] / capacity[at]
        return cls(inside, whole, part)


def _differ(low: Floats, high: Floats) -> bool:
    return bool((low < high * (1 - SAME)).any())


def _extremes(values: Floats, group: NDArray[np.integer]) -> tuple[Floats, Floats]:
    """Return the least and the largest value of each group."""
    n = int(group.max(initial=-1)) + 1
    low, high = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(low, group, values)
    np.maximum.at(high, group, values)
    return low, high


@dataclass(frozen=True, slots=True, eq=False)
class PathsByLevel:
    """Links of several routes, and the nodes of each route by themselves.

    Parameters
    ----------
    ends : int64[n_rows, 2]
        Nodes that each link joins.
    route : int64[n_rows]
        Route that each link belongs to.
    start : int64[n]
        First nodes of the routes that have links.
    level : int64[n_rows]
        Metric from the first node of the route to the link; those at one level are alternatives.
    whole, part : float64[n_rows]
        Same as of :class:`CableCapacity`.
    adapts : bool[n_nodes]
        Whether each node is a switch of the fabric that leads on to others.
    """

    ends: Ints
    route: Ints
    start: Ints
    level: Ints
    whole: Floats
    part: Floats
    adapts: NDArray[np.bool_]

    @classmethod
    def of(
        cls, network: Network, cables: CableCapacity, src: Ints, link: NDArray[np.int32], route: Ints
    ) -> PathsByLevel:
        """Tell the nodes of the routes apart, and find how far each is from the first one."""
        wide = np.stack((network.src[link], network.dst[link]), axis=1) + route[:, None] * network.n_nodes
        node, at = np.unique(wide, return_inverse=True)
        ends = at.reshape(-1, 2)
        start = np.flatnonzero(node % network.n_nodes == src[node // network.n_nodes])
        away = np.full(len(node), -1)
        away[start] = 0
        left = np.arange(len(link))
        while len(left):  # each turn reaches the nodes that are one link further
            known = away[ends[left, 0]] >= 0
            away[ends[left[known], 1]] = away[ends[left[known], 0]] + network.metric[link[left[known]]]
            left = left[~known]
        adapts = np.bincount(ends[~cables.inside[link], 0], minlength=len(node)) == 0
        free = adapts[ends[:, 0]]
        whole, part = (np.where(free, of[link], 1.0) for of in (cables.whole, cables.part))
        return cls(ends, route, start, away[ends[:, 0]], whole, part, adapts)

    def shares(self, equal: Floats) -> Floats:
        """Return the part of the bytes that takes each link, float64[n_rows]; `equal` where weights do not differ."""
        a, b = self.ends.T
        n = len(self.adapts)
        weight = self.weights()
        low, high = _extremes(weight, a)
        changes = np.bincount(self.route, (low < high * (1 - SAME))[a]) > 0
        total, part, share = np.bincount(a, weight, n), np.zeros(n), np.empty(len(a))
        part[self.start] = 1.0
        for level in np.unique(self.level):
            rows = np.flatnonzero(self.level == level)
            share[rows] = part[a[rows]] * weight[rows] / total[a[rows]]
            part += np.bincount(b[rows], share[rows], n)
        return np.where(changes[self.route], share, equal)

    def weights(self) -> Floats:
        """Return a weight of each link: its part of the smaller of its switches' cables and of what is behind them.

        Both are parts of what they would be without faults. Ports of hosts and inside machines count alike.
        """
        b = self.ends[:, 1]
        behind, weight = np.ones(len(self.adapts)), np.empty(len(b))
        for level in np.unique(self.level)[::-1]:
            rows = np.flatnonzero(self.level == level)
            weight[rows] = np.minimum(self.whole[rows], behind[b[rows]]) * self.part[rows]
            node, at = np.unique(self.ends[rows, 0], return_inverse=True)
            n_next = np.bincount(at, self.part[rows])
            route = np.empty(len(node), np.int64)
            route[at] = self.route[rows]
            most = _extremes(np.where(self.adapts[node], n_next, 0.0), route)[1][route]
            behind[node] = np.bincount(at, weight[rows]) / np.where(self.adapts[node], most, n_next)
        return weight
