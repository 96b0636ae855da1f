"""Routes: the links that messages take, what they carry, and those of a network with one switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

if TYPE_CHECKING:
    from .merge_switches import LinkBundles

# Routes whose bytes are added up at once: all of them would be hundreds of megabytes.
AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class Routes:
    """Links of each route, in compressed rows, nearest to the source first.

    Parameters
    ----------
    first : int64[n_routes + 1]
        Links of route r are ``link[first[r]:first[r + 1]]``; none when source and destination are one node.
    link : int32[m]
        Directed links.
    share : float64[m]
        Part of the bytes that takes the link; 1 unless packets are sprayed over several paths. Not to be changed.
    latency : float64[n_routes], s
        Propagation along the path, the slowest one where there are several.
    """

    first: NDArray[np.int64]
    link: NDArray[np.int32]
    share: NDArray[np.float64]
    latency: NDArray[np.float64]

    def rates(self, network: Network) -> NDArray[np.float64]:
        """Return the rate of a single message on each route, bytes/s; infinite where that has no links.

        Parameters
        ----------
        network : Network
            Network of the links.
        """
        rate = np.full(len(self.first) - 1, np.inf)
        crosses = np.diff(self.first) > 0
        if crosses.any():
            links = network.bandwidth[self.link]
            links /= self.share  # in place: routes may be many
            rate[crosses] = np.minimum.reduceat(links, self.first[:-1][crosses])
        return rate

    def carried(
        self, per_route: NDArray[Any], n_links: int, bundles: LinkBundles | None = None
    ) -> tuple[NDArray[np.float64], float]:
        """Return the bytes that each link carries, float64[n_links], and that leave their senders' nodes.

        Parameters
        ----------
        per_route : number[n_routes], bytes
            Bytes of each route.
        n_links : int
            Links of the network of the routes.
        bundles : LinkBundles, optional
            What these are, if it was merged; then the answer is of the network before.
        """
        carried = np.zeros(n_links)
        for low in range(0, len(per_route), AT_ONCE):
            first = self.first[low : low + AT_ONCE + 1]
            some = slice(first[0], first[-1])
            each = np.repeat(per_route[low : low + AT_ONCE], np.diff(first))
            np.add.at(carried, self.link[some], each * self.share[some])  # in order, as one sum over all would be
        if bundles is not None:
            carried = bundles.share_out(carried)
        carried.setflags(write=False)  # so that a result takes it without a copy
        return carried, float(per_route[np.diff(self.first) > 0].sum())


def over_one_switch(network: Network, src: NDArray[np.int64], dst: NDArray[np.int64]) -> Routes | None:
    """Return the routes where one node forwards and each other one has a single cable, to it; None elsewhere.

    Parameters
    ----------
    network : Network
        Network of any nodes.
    src, dst : int64[n_routes]
        Nodes.
    """
    n_others = network.n_nodes - 1
    if n_others < 1 or network.n_links != 2 * n_others or np.count_nonzero(network.forwards) != 1:
        return None
    switch = int(network.forwards.argmax())
    to_switch, from_switch = np.full((2, network.n_nodes), -1, np.int32)
    for link_of, near, far in ((to_switch, network.src, network.dst), (from_switch, network.dst, network.src)):
        links = np.flatnonzero(far == switch)
        link_of[near[links]] = links
    if np.count_nonzero(to_switch < 0) != 1 or np.count_nonzero(from_switch < 0) != 1:
        return None
    both = np.stack((to_switch[src], from_switch[dst]), axis=1)
    both[src == dst] = -1
    taken = both >= 0
    first = np.zeros(len(src) + 1, np.int64)
    np.cumsum(taken.sum(axis=1), out=first[1:])
    latency = np.where(taken, network.latency[both], 0.0).sum(axis=1)
    link = both[taken]
    return Routes(first, link, np.broadcast_to(1.0, len(link)), latency)
