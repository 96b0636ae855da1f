"""Valiant's routing: every flow takes a detour through a group, or where there are none a switch, drawn at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import SWITCH, Network

from ..link_rows import flow_hash
from ..routes import Routes
from ..walk import no_path, walk

_GROUP, _LINK, _SWITCH = 1, 2, 3  # what is drawn; apart from each other and from the hash of the flow itself


def find_valiant_routes(
    network: Network, src: NDArray[np.int64], dst: NDArray[np.int64], channel: NDArray[np.int64], seed: int
) -> Routes:
    """Find routes by way of a third group, one change of group into it and one out of it, or by way of any switch.

    A hash of the flow draws the third group among those with links from the group of the source and to that of the
    destination, then one of the links into it. The rest is minimal: to the near end of the link, and from the far end.
    Where nodes have no groups, or some pair has no such group, the hash draws any switch (where there are none, any
    node that forwards), and the two parts are shortest paths.

    Parameters
    ----------
    network : Network
        The first coordinate of a node, if there is one, is its group.
    src, dst, channel : int64[n_routes]
        Nodes, and the channel. Within one group routes are minimal.
    seed : int
        Seed of the hash.

    Raises
    ------
    RoutingError
        If a pair has no such path.

    References
    ----------
    Valiant, "A scheme for fast parallel communication", SIAM Journal on Computing, 1982.
    Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008, section 4.1, for
    groups. Besta and Hoefler, "Slim Fly: a cost effective low-diameter network topology", SC 2014, section IV, for any
    switch.
    """
    key = flow_hash(src, dst, channel, seed)
    via = _draw_links(network, src, dst, key) if network.coordinates.shape[1] else None
    if via is None:
        return _by_any_switch(network, src, dst, key)
    detours = via >= 0
    near, far = dst.copy(), dst.copy()
    near[detours], far[detours] = network.src[via[detours]], network.dst[via[detours]]
    legs = []
    for start, end in ((src, near), (far, dst)):
        leg, lost = walk(network, start, end, key, "minimal")
        if lost >= 0:
            raise no_path(network, int(src[lost]), int(dst[lost]), "valiant")
        legs.append(leg)
    crossing = Routes(
        np.concatenate((np.zeros(1, np.int64), np.cumsum(detours))),
        via[detours].astype(np.int32),
        np.ones(int(detours.sum())),
        np.where(detours, network.latency[via] if network.n_links else 0.0, 0.0),
    )
    return _one_after_another([legs[0], crossing, legs[1]])


def _by_any_switch(network: Network, src: NDArray[np.int64], dst: NDArray[np.int64], key: NDArray[np.int64]) -> Routes:
    """Find the shortest paths to a node that is drawn for each flow, and on from there."""
    may = network.forwards & np.isin(np.arange(network.n_nodes), network.src)
    is_switch = may & (network.kind == SWITCH)
    nodes = np.flatnonzero(is_switch if is_switch.any() else may)
    zero = np.zeros_like(key)
    drawn = flow_hash(key, zero, zero, _SWITCH)
    through = dst.copy()
    for step in range(min(3, len(nodes))):  # past the ends of the flow, where hosts forward
        again = (through == src) | (through == dst)
        through[again] = nodes[(drawn[again] + step) % len(nodes)]
    through[src == dst] = dst[src == dst]
    legs = []
    for start, end in ((src, through), (through, dst)):
        leg, lost = walk(network, start, end, key, "ecmp")
        if lost >= 0:
            raise no_path(network, int(start[lost]), int(end[lost]), "ecmp")
        legs.append(leg)
    return _one_after_another(legs)


def _draw_links(
    network: Network, src: NDArray[np.int64], dst: NDArray[np.int64], key: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Link into the third group of each flow; -1 within one group. None if a pair of groups has no third one."""
    names, group = np.unique(network.coordinates[:, 0], return_inverse=True)
    n = len(names)
    crosses = (group[network.src] != group[network.dst]) & network.forwards[network.src] & network.forwards[network.dst]
    links = np.flatnonzero(crosses)
    cable = group[network.src[links]] * n + group[network.dst[links]]
    links = links[np.argsort(cable, kind="stable")]
    between, first, count = np.unique(np.sort(cable), return_index=True, return_counts=True)
    leads_to: dict[int, NDArray[np.bool_]] = {}
    zero = np.zeros_like(key)
    which_group, which_link = (flow_hash(key, zero, zero, what) for what in (_GROUP, _LINK))
    via = np.full(len(src), -1, np.int64)
    for flows in _by_pair(group[src] * n + group[dst]):
        a, b = int(group[src[flows[0]]]), int(group[dst[flows[0]]])
        if a == b:
            continue
        if b not in leads_to:
            leads_to[b] = np.zeros(n, np.bool_)
            leads_to[b][between[between % n == b] // n] = True
        low, high = np.searchsorted(between, (a * n, a * n + n))
        third = between[low:high] % n
        out = low + np.flatnonzero(leads_to[b][third] & (third != b))
        if not out.size:
            return None
        through = out[which_group[flows] % out.size]
        via[flows] = links[first[through] + which_link[flows] % count[through]]
    return via


def _by_pair(pair: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Flows that have the same pair of groups, in the order of the pairs."""
    order = np.argsort(pair, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(pair[order])) + 1) if len(order) else []


def _one_after_another(legs: list[Routes]) -> Routes:
    """Join the legs of each route."""
    length = np.stack([np.diff(leg.first) for leg in legs], axis=1)
    start = np.concatenate((np.zeros(1, np.int64), np.cumsum(length.ravel())))
    link, share = np.empty(start[-1], np.int32), np.empty(start[-1])
    for i, leg in enumerate(legs):
        to = np.arange(len(leg.link)) + np.repeat(start[:-1].reshape(length.shape)[:, i] - leg.first[:-1], length[:, i])
        link[to], share[to] = leg.link, leg.share
    latency = np.sum([leg.latency for leg in legs], axis=0)
    return Routes(np.ascontiguousarray(start[:: len(legs)]), link, share, latency)
