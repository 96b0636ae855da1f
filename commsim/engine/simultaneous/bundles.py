"""Routes of many flows in little room: what flows share of their paths is kept once.

Where the next hop depends only on the destination (d-mod-k, the lowest link, spraying), hosts that hang on one switch
have one path to a destination but for their own first link. So a bundle is the path from that switch, and a flow is a
first link, its head, and a bundle. Where hashes choose, every flow is a bundle.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import NIC, Network
from commsim.routing.merge_switches import MergedSwitches, merge_switches
from commsim.routing.message_engines import engine_nodes
from commsim.routing.routing import Routes, find_routes

if TYPE_CHECKING:
    from commsim.routing.crossings import Crossings

BY_DESTINATION = ("dmodk", "shortest", "spray")
MAX_KEYS = 2**26
# Flows whose routes are found at once where each has its own.
AT_ONCE = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """Flows by what they share.

    Parameters
    ----------
    capacity : float64[n_links], bytes/s
        Capacity of the network's links, or of bundles of links that are sprayed over.
    first, link, share
        Routes of the bundles, as in :class:`commsim.routing.routing.Routes`; one share where all are 1.
    bundle, head : int32[n_flows]
        Bundle of each flow, and the link before it, or -1.
    latency : float64[n_flows], s
        Latency of each flow's whole path.
    merged : MergedSwitches or None
        How links were put together, if they were.
    """

    capacity: NDArray[np.float64]
    first: NDArray[np.int64]
    link: NDArray[np.int32]
    share: NDArray[np.float64]
    bundle: NDArray[np.int32]
    head: NDArray[np.int32]
    latency: NDArray[np.float64]
    merged: MergedSwitches | None

    def ports(self) -> NDArray[np.int32] | None:
        """First link of each flow; None if some flow leaves over several."""
        if len(self.share) > 1 and (self.share[self.first[:-1]] < 1).any():
            return None
        return np.where(self.head >= 0, self.head, self.link[self.first[:-1]][self.bundle]).astype(np.int32)

    def engines(self, network: Network, port: NDArray[np.int32]) -> NDArray[np.int32]:
        """Node whose message engine each flow's overhead occupies, numbered as in the network of `capacity`.

        Parameters
        ----------
        network : Network
            Network that carries the messages.
        port : int32[n_flows]
            First link of each.
        """
        network = network if self.merged is None else self.merged.network
        src = network.src[port]
        if not (network.kind == NIC).any():
            return src
        first, link = self.rows()
        return engine_nodes(
            network, np.stack((src, src), axis=1), Routes(first, link, np.ones(len(link)), np.zeros(0)), 0
        )

    def link_bytes(self, n_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bytes that each link of the network carries.

        Parameters
        ----------
        n_bytes : float64[n_flows] or float64[1], bytes
            Size of each flow, or of all.

        Returns
        -------
        float64[n_links], bytes
        """
        n = len(self.capacity)
        weights = np.broadcast_to(n_bytes, len(self.bundle)) if len(n_bytes) > 1 else None  # counting is faster
        of_bundle = np.bincount(self.bundle, weights=weights, minlength=len(self.first) - 1)
        per_link = np.bincount(self.head + 1, weights=weights, minlength=n + 1)[1:].astype(np.float64)
        per_link += self._carried(of_bundle, n)
        per_link *= n_bytes[0] if weights is None and len(n_bytes) else 1.0
        return per_link if self.merged is None else self.merged.bundles.share_out(per_link)

    def _carried(self, of_bundle: NDArray[Any], n_links: int) -> NDArray[np.float64]:
        """Sum what each link carries of the bundles, some at a time: all of it takes several times what is kept."""
        carried = np.zeros(n_links)
        for low in range(0, len(of_bundle), AT_ONCE):
            first = self.first[low : low + AT_ONCE + 1]
            links = slice(first[0], first[-1])
            weights = np.repeat(of_bundle[low : low + AT_ONCE], np.diff(first))
            np.add.at(carried, self.link[links], weights * self.share[links if len(self.share) > 1 else ...])
        return carried

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Links of each flow, in rows: ``link[first[f]:first[f + 1]]``."""
        length = np.diff(self.first)[self.bundle]
        headed = self.head >= 0
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(length + headed)))
        link = np.empty(first[-1], np.int32)
        link[first[:-1][headed]] = self.head[headed]
        begin = first[:-1] + headed
        at = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        link[np.repeat(begin, length) + at] = self.link[np.repeat(self.first[self.bundle], length) + at]
        return first, link


def bundle_flows(
    network: Network,
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    channel: NDArray[np.int32],
    *,
    routing: str | None = None,
    seed: int = 0,
) -> Bundles:
    """Find the routes of flows between different nodes.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    src, dst, channel, routing, seed
        Same as in :func:`commsim.routing.routing.find_routes`.

    Raises
    ------
    RoutingError
        If a pair has no path.
    """
    routing = routing or network.routing
    if routing == "spray":
        merged = merge_switches(network)
        bundles = _by_destination(merged.network, merged.node[src], merged.node[dst], routing, merged)
        if (bundles.share == 1).all():  # else sprayed bundles are no single path, and links are not used alike
            return bundles
    if routing in BY_DESTINATION:
        return _by_destination(network, src, dst, routing, None)
    routes = _found_in_parts(network, src, dst, channel, routing, seed)
    return _bundles(network, routes, np.arange(len(src), dtype=np.int32), np.full(len(src), -1, np.int32))


def crossings_of(
    network: Network,
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    channel: NDArray[np.int32],
    *,
    routing: str | None = None,
    seed: int = 0,
) -> Crossings | None:
    """Count flows on each link; None where routes are not hashed, or some of them need a search.

    Parameters
    ----------
    network, src, dst, channel, routing, seed
        Same as in :func:`bundle_flows`.
    """
    from commsim.routing.crossings import Crossings, count_crossings

    parts = []
    bounds = np.linspace(0, len(src), max(1, -(-len(src) // AT_ONCE)) + 1).astype(np.int64).tolist()
    for low, high in itertools.pairwise(bounds):  # what all of them take at once would be most of a run's memory
        begin, end, number = (np.asarray(one[low:high], np.int64) for one in (src, dst, channel))
        part = count_crossings(network, begin, end, number, seed, routing or network.routing)
        if part is None:
            return None
        parts.append(part)
    if len(parts) == 1:
        return parts[0]
    return Crossings(
        np.sum([part.n_routes for part in parts], axis=0),
        np.max([part.furthest for part in parts], axis=0),
        np.concatenate([part.port for part in parts]),
    )


def _found_in_parts(
    network: Network,
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    channel: NDArray[np.int32],
    routing: str,
    seed: int,
) -> Routes:
    """Find the routes of flows, some at a time: what a search takes for each is several times what is kept."""
    parts = [
        find_routes(network, *(ends[low : low + AT_ONCE] for ends in (src, dst, channel)), routing=routing, seed=seed)
        for low in range(0, max(len(src), 1), AT_ONCE)
    ]
    if len(parts) == 1:
        return parts[0]
    single = all((part.share == 1).all() for part in parts)
    first = np.zeros(len(src) + 1, np.int64)
    np.cumsum(np.concatenate([np.diff(part.first) for part in parts]), out=first[1:])
    link, latency = (np.concatenate([getattr(part, name) for part in parts]) for name in ("link", "latency"))
    share = np.broadcast_to(1.0, len(link)) if single else np.concatenate([part.share for part in parts])
    return Routes(first, link, share, latency)


def _by_destination(
    network: Network, src: NDArray[np.int32], dst: NDArray[np.int32], routing: str, merged: MergedSwitches | None
) -> Bundles:
    """Find one path for the hosts of each switch to each destination, and take the first link from it."""
    nodes = np.arange(network.n_nodes)
    out_link, twin = _only_links(network)
    # a host that is its twins' representative has no path to itself: for that destination another one replaces it
    stands_in = nodes.copy()
    others = np.flatnonzero(twin != nodes)
    stands_in[twin[others[::-1]]] = others[::-1]
    origin: NDArray[np.int64] = np.where(twin[src] == dst, stands_in[dst], twin[src])
    key, number = _numbered(origin * network.n_nodes + dst, network.n_nodes**2)
    routes = find_routes(network, key // network.n_nodes, key % network.n_nodes, 0, routing=routing)
    is_headed = out_link[key // network.n_nodes] >= 0
    kept = np.ones(len(routes.link), np.bool_)
    kept[routes.first[:-1][is_headed]] = False
    length = np.diff(routes.first) - is_headed
    latency = routes.latency.copy()
    latency[is_headed] -= network.latency[routes.link[routes.first[:-1][is_headed]]]
    first = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
    return _bundles(
        network, Routes(first, routes.link[kept], routes.share[kept], latency), number, out_link[src], merged
    )


def _only_links(network: Network) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Find the one link that leaves each node which forwards nothing, or -1; and the first node of its twins."""
    leaving = np.bincount(network.src, minlength=network.n_nodes)
    only = (leaving == 1) & ~network.forwards & (network.machine < 0)
    out_link = np.full(network.n_nodes, -1, np.int32)
    links = np.flatnonzero(only[network.src])
    out_link[network.src[links]] = links
    twin = np.arange(network.n_nodes)
    if len(links):
        key = np.stack((network.dst[links], network.metric[links]), axis=1)
        _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
        twin[network.src[links]] = network.src[links[first]][which.ravel()]
    return out_link, twin


def _numbered(key: NDArray[np.int64], n_keys: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the different keys, rising, and the place of each key among them."""
    if n_keys > MAX_KEYS:
        keys, number = np.unique(key, return_inverse=True)
        return keys, number.astype(np.int32)
    seen = np.zeros(n_keys, np.bool_)
    seen[key] = True
    keys = np.flatnonzero(seen)
    place = np.empty(n_keys, np.int32)
    place[keys] = np.arange(len(keys))
    return keys, place[key]


def _bundles(
    network: Network,
    routes: Routes,
    bundle: NDArray[np.int32],
    head: NDArray[np.int32],
    merged: MergedSwitches | None = None,
) -> Bundles:
    headed = head >= 0
    apart = len(routes.latency) == len(bundle) and not headed.any() and bool((bundle[1:] > bundle[:-1]).all())
    latency = routes.latency if apart else routes.latency[bundle]
    if headed.any():
        latency[headed] += network.latency[head[headed]]
    share = np.ones(1) if (routes.share == 1).all() else np.ascontiguousarray(routes.share)  # kernels take no other
    return Bundles(network.bandwidth, routes.first, routes.link, share, bundle, head, latency, merged)
