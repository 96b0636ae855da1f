"""Routes of very many pairs, put together from parts that pairs share: out of a machine, over the fabric, into one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cache import Cache
from commsim.core.network import Network
from commsim.core.pinned_routes import gathered

from ..fabric_forest import FabricForest, fabric_forest
from ..link_rows import links_in_rows, only_sends
from ..merge_switches import fabric_nodes
from ..routing import Routes, find_routes

# Routes from which on it pays to look for parts.
LEAST = 2**9
# Steps for which a node looks at a link of its machine: twice, for distances and for ways, some 8 reads each.
LOOK_STEPS = 16
# Ways between nodes and the fabric of networks that differ in rates only, with what keeps the id its own.
_WAYS: Cache[tuple[dict[Any, Any], Any]] = Cache(8, lambda found: found[1] is not None and len(found[1][0]) <= 2**16)
__all__ = ["JoinedRoutes", "find_joined_routes", "on_their_own"]


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRoutes:
    """Routes of connections; those between the same nodes share one, and different ones share parts.

    Parameters
    ----------
    parts : Routes
        Links of each part.
    of : int32[n_pairs, k]
        Parts of the route of each pair, nearest to the source first.
    pair : int32[n_connections] or None
        Pair of each connection; None where each is its own.
    """

    parts: Routes
    of: NDArray[np.int32]
    pair: NDArray[np.int32] | None = None

    @property
    def n_bytes(self) -> int:
        """Memory that it takes."""
        held = (self.parts.link, self.parts.share, self.parts.first, self.parts.latency, self.of)
        return sum(one.nbytes for one in held) + (0 if self.pair is None else self.pair.nbytes)

    def of_pairs(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the connections of each pair: float64[n_connections] to float64[n_pairs]."""
        return weights if self.pair is None else np.bincount(self.pair, weights, len(self.of)).astype(np.float64)

    def on_links(self, weights: NDArray[np.float64], n_links: int) -> NDArray[np.float64]:
        """Return what all links carry, if each connection carries so much: float64[n_connections] to float64[n_links].

        Parameters
        ----------
        weights : float64[n_connections]
            What each connection carries.
        n_links : int
            Links of the network.
        """
        n_parts, each = len(self.parts.first) - 1, self.of_pairs(weights)
        of_parts = sum(np.bincount(column, each, n_parts) for column in self.of.T)
        on_rows = np.repeat(of_parts, np.diff(self.parts.first)) * self.parts.share
        return np.bincount(self.parts.link, on_rows, n_links).astype(np.float64)

    def crosses(self) -> NDArray[np.bool_]:
        """Whether each connection has links."""
        of_pairs = np.asarray((np.diff(self.parts.first) > 0)[self.of].any(axis=1))
        return of_pairs if self.pair is None else of_pairs[self.pair]

    def each(self) -> Routes:
        """Return the route of each connection by itself."""
        if self.pair is None and self.of.shape[1] == 1:
            return self.parts
        rows = (self.of if self.pair is None else self.of[self.pair]).ravel()
        first, at = gathered(self.parts.first, np.arange(len(self.parts.link), dtype=np.int32), rows)
        width = self.of.shape[1]
        latency = self.parts.latency[rows].reshape(-1, width).sum(axis=1)
        return Routes(np.ascontiguousarray(first[::width]), self.parts.link[at], self.parts.share[at], latency)


def on_their_own(routes: Routes) -> JoinedRoutes:
    """Return routes that share nothing."""
    return JoinedRoutes(routes, np.arange(len(routes.first) - 1, dtype=np.int32)[:, None])


def find_joined_routes(network: Network, src: NDArray[np.int32], dst: NDArray[np.int32]) -> JoinedRoutes | None:
    """Find the sprayed routes between pairs of nodes by their parts; worth it from ``LEAST`` routes on.

    A part is shared where each node has a port to the fabric that is nearer to all of it than its other ports are: then
    all shortest paths to other machines begin with the way to that port, and go on from its switch.

    Parameters
    ----------
    network : Network
        Network with the switches.
    src, dst : int32[n_routes]
        Nodes.

    Returns
    -------
    JoinedRoutes or None
        None where the fabric is no forest, or a node's port depends on who is asked for. Shares of links into a machine
        are 1, which a sum of shares of many paths may miss by rounding.

    Raises
    ------
    RoutingError
        If a pair has no path.
    """
    forest = fabric_forest(network)
    if forest is None:
        return None
    key, pair = np.unique(src.astype(np.int64) * network.n_nodes + dst, return_inverse=True)
    source, target = np.divmod(key, network.n_nodes)
    there = _to_fabric(network, forest, np.unique(source), back=False)
    here = _to_fabric(network, forest, np.unique(target), back=True)
    if there is None or here is None:
        return None
    (outs, out, leaves), (backs, back, enters) = there, here
    unit = np.where(network.machine >= 0, network.machine, network.machine.max() + 1 + np.arange(network.n_nodes))
    apart = unit[source] != unit[target]
    near = find_routes(network, source[~apart], target[~apart], routing="spray")
    a, b = (np.asarray(np.searchsorted(*one)) for one in ((outs, source), (backs, target)))
    between, over = np.unique((leaves[a] * network.n_nodes + enters[b])[apart], return_inverse=True)
    fabric = find_routes(network, *np.divmod(between, network.n_nodes), routing="spray")
    parts = _stacked((out, back, fabric, near))
    n_out, n_back, n_between = len(outs), len(backs), len(between)
    of = np.full((len(key), 3), len(parts.first) - 2, np.int32)  # the last part has no links
    of[apart] = np.stack((a[apart], n_out + n_back + over, n_out + b[apart]), axis=1)
    of[~apart, 0] = n_out + n_back + n_between + np.arange(len(near.first) - 1)
    return JoinedRoutes(parts, of, pair.astype(np.int32))


def _to_fabric(
    network: Network, forest: FabricForest, nodes: NDArray[np.int64], *, back: bool
) -> tuple[NDArray[np.int64], Routes, NDArray[np.int64]] | None:
    """Return nodes, their ways to the nearest switch of the fabric, or from it, and the switches; or None."""
    key = id(network.facts), back, nodes.tobytes()
    ways = _WAYS.get(key, lambda: (network.facts, _links_to_fabric(network, forest, nodes, back=back)))[1]
    if ways is None:
        return None
    starts, links, switch = ways
    latency = np.add.reduceat(network.latency[links], starts[:-1])
    return nodes, Routes(starts, links, np.ones(len(links)), latency), switch


def _links_to_fabric(
    network: Network, forest: FabricForest, nodes: NDArray[np.int64], *, back: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]] | None:
    """Return where the links of each node's way begin, the links, and the switches; None where one has several."""
    from commsim.core.jit import expected_work

    from ..ports_kernel import find_ports

    fabric, forwards = fabric_nodes(network), network.forwards
    if fabric[nodes].any():
        return None
    away = links_in_rows(network.src, network.dst, network.n_nodes)
    towards = links_in_rows(network.dst, network.src, network.n_nodes)
    if back:
        away, towards, forwards = towards, away, forwards & ~only_sends(network)
        forwards.setflags(write=False)
    n_machines = int(network.machine.max()) + 1
    inside = network.n_links / n_machines if n_machines else 0.0
    with expected_work(network.n_links + LOOK_STEPS * len(nodes) * inside):
        first, link, cost, single, begin, path = find_ports(
            nodes, away, towards, network.machine, fabric, forwards, network.metric
        )
    if not np.diff(first).all():
        return None
    switch = (network.src if back else network.dst)[link].astype(np.int64)
    owner = np.repeat(np.arange(len(nodes)), np.diff(first))
    best = np.lexsort((cost, owner))[first[:-1]]
    others = np.flatnonzero(best[owner] != np.arange(len(link)))
    ends = forest.node[switch[np.stack((best[owner[others]], others), axis=1)]].astype(np.int64)
    joins, which = np.unique(ends[:, ::-1] if back else ends, axis=0, return_inverse=True)
    apart = forest.distances(*joins.T)
    if (cost[best[owner[others]]] + apart[which.ravel()] >= cost[others]).any() or not single[best].all():
        return None
    length = begin[best + 1] - begin[best] + 1  # of its path, and the port
    first = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
    owner = np.repeat(np.arange(len(best)), length)
    place = np.arange(first[-1]) - first[owner]
    place = length[owner] - 1 - place if back else place
    inside = np.append(path, 0)[np.minimum(begin[best][owner] + place, len(path))]
    links = np.where(place == length[owner] - 1, link[best][owner], inside)
    return first, links.astype(np.int32), switch[best]


def _stacked(tables: tuple[Routes, ...]) -> Routes:
    """Return one table of all routes, and one more of no links."""
    begin = np.cumsum([0, *(one.first[-1] for one in tables)])
    first = np.concatenate([np.zeros(1, np.int64), *(t.first[1:] + b for t, b in zip(tables, begin, strict=False))])
    link, share, latency = (
        np.concatenate([getattr(one, name) for one in tables]) for name in ("link", "share", "latency")
    )
    return Routes(np.append(first, first[-1]), link, share, np.append(latency, 0.0))
