"""The part of a network that schedules can use, for the two kinds of schedules that bounds distinguish."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network


@dataclass(frozen=True, slots=True, eq=False)
class UsableLinks:
    """Links that can carry something, and where ranks sit.

    Parameters
    ----------
    network : Network
        Network that the operation runs on.
    ranks : int32[n_ranks]
        Node of each rank.
    anywhere : bool
        Whether any node may store, add up and send on: parameter servers on spare hosts, and switches that aggregate.
        If not, only ranks do, and what lies between them only forwards.
    link : intp[m]
        Links of the network, both of whose ends pass traffic on, or hold a rank.
    src, dst : int32[m]
        Their ends.
    bandwidth, latency : float64[m], bytes/s and s
        Bandwidth and latency of each link.
    helpers : int32[n_helpers]
        Nodes without ranks that store, add and send on as well, where not any node does.
    """

    network: Network
    ranks: NDArray[np.int32]
    anywhere: bool
    link: NDArray[np.intp]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    bandwidth: NDArray[np.float64]
    latency: NDArray[np.float64]
    helpers: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def n_nodes(self) -> int:
        """Nodes of the network, used or not."""
        return self.network.n_nodes

    @property
    def computes(self) -> NDArray[np.bool_]:
        """Which nodes store, add and send on."""
        if self.anywhere:
            return np.ones(self.n_nodes, np.bool_)
        computes = self.on_ranks
        computes[self.helpers] = True
        return computes

    @property
    def on_ranks(self) -> NDArray[np.bool_]:
        """Which nodes hold a rank."""
        holds = np.zeros(self.n_nodes, np.bool_)
        holds[self.ranks] = True
        return holds


def usable(
    network: Network, ranks: NDArray[np.int32], anywhere: bool, helpers: NDArray[np.int32] | None = None
) -> UsableLinks:
    """Return the graph that schedules of one kind can use.

    Routing is left out: any path is allowed, also over the nodes of other ranks, since these may send on what they
    received. So what holds here holds for every routing.

    Parameters
    ----------
    network : Network
        Network that the operation runs on.
    ranks : int32[n_ranks]
        Node of each rank.
    anywhere : bool
        Whether nodes without ranks may store, add and send on.
    helpers : int32[n_helpers], optional
        Nodes without ranks that may do so, where not any node may.
    """
    helpers = np.empty(0, np.int32) if helpers is None else helpers
    computes = np.zeros(network.n_nodes, np.bool_)
    computes[ranks] = computes[helpers] = True
    passes = computes | network.forwards | anywhere
    link = np.flatnonzero(passes[network.src] & passes[network.dst])
    columns = network.src, network.dst, network.bandwidth, network.latency
    if len(link) < network.n_links:  # else they are the network's own, not copies of hundreds of megabytes
        columns = network.src[link], network.dst[link], network.bandwidth[link], network.latency[link]
    return UsableLinks(network, ranks, anywhere, link, *columns, helpers)
