"""Folding: switches that nothing tells apart become one, with the capacity of all of them.

The classes are the coarsest equitable partition in which every node that is no switch of the fabric stands alone: all
members of a class have equally many links, with equal numbers, to the members of each other class. So all members are
equally far from every endpoint, and messages that are sprayed reach all of them alike.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..node_kind import SWITCH
from .flow_hash import mixed


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A network and its classes.

    Parameters
    ----------
    network : Network
        One node per class, under the name of its first member, and one link for all links between two classes, as fast
        as they are together. Nodes keep their order.
    node : int32[n_nodes]
        Class of each node of the network that was folded.
    link : int32[n_links]
        Bundle of each of its links.
    n_members : int64[n_bundles]
        Links in each bundle.
    """

    network: Network
    node: NDArray[np.int32]
    link: NDArray[np.int32]
    n_members: NDArray[np.int64]

    def unfold(self, per_bundle: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share what bundles carry among their links.

        Returns
        -------
        float64[n_links]
        """
        return np.asarray((per_bundle / self.n_members)[self.link])


def fold(network: Network) -> Fold:
    """Fold a network by its links' rates, latencies and metrics, so that a bundle's links are alike.

    Messages that are sprayed take each of its links with equal shares if the classes form a forest
    (:func:`commsim.core.routes.fabric_forest.fabric_forest`); a sprayed route then is one path of bundles.
    """
    alike = np.stack((network.bandwidth, network.latency, network.buffer, network.loss, network.metric), axis=1)
    kind = np.unique(alike, axis=0, return_inverse=True)[1].ravel()
    node = switch_classes(network, kind)
    n = int(node.max(initial=-1)) + 1
    ends = node[network.src].astype(np.int64) * n + node[network.dst]
    # parallel links of different numbers between two classes stay different bundles
    _, first, link, n_members = np.unique(
        np.stack((ends, kind), axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)  # bundles in the order of their first links, so that cables stay cables
    place = np.argsort(order)
    member, first, n_members = np.unique(node, return_index=True)[1], first[order], n_members[order]
    folded = dataclasses.replace(
        network,
        name=f"{network.name}, folded",
        nodes=tuple(network.nodes[i] for i in member.tolist()),
        **{name: getattr(network, name)[member]
           for name in ("kind", "forwards", "aggregates", "overhead", "recv_overhead", "gamma", "machine",
                        "coordinates")},
        src=node[network.src[first]], dst=node[network.dst[first]],
        bandwidth=network.bandwidth[first] * n_members,
        **{name: getattr(network, name)[first] for name in ("latency", "buffer", "loss", "metric")},
    )  # fmt: skip
    return Fold(folded, node, place[link.ravel()].astype(np.int32), n_members)


def switch_classes(network: Network, kind: NDArray[np.int64]) -> NDArray[np.int32]:
    """Refine: nodes differ that have other numbers of links of some kind to or from some class.

    Parameters
    ----------
    network : Network
        Its fabric, the switches outside of machines, may be merged; all other nodes differ from the start.
    kind : int64[n_links]
        Links of different kinds differ.

    Returns
    -------
    int32[n_nodes]
        Class of each node, numbered in the order of first members.

    Notes
    -----
    Neighbourhoods are compared by sums of 64-bit hashes: two that differ are taken for equal with a probability of
    about 2^-64.
    """
    merges = fabric_nodes(network)
    colour = np.where(merges, 0, np.arange(network.n_nodes) + 1)
    n_colours = 0
    at_fabric = np.flatnonzero(merges[network.src] | merges[network.dst])
    src, dst = network.src[at_fabric], network.dst[at_fabric]
    of_link: NDArray[np.uint64] = 2 * kind[at_fabric].astype(np.uint64)
    while True:
        colour = _numbered(colour)
        if (found := int(colour.max(initial=-1)) + 1) == n_colours:
            return colour.astype(np.int32)
        n_colours = found
        around = np.zeros(network.n_nodes, np.uint64)
        for node, other, way in ((src, dst, np.uint64(0)), (dst, src, np.uint64(1))):
            np.add.at(around, node, mixed(mixed(of_link + way) ^ colour[other].astype(np.uint64)))
        around = mixed(around ^ mixed(colour.astype(np.uint64)))
        colour = np.where(merges, np.unique(around, return_inverse=True)[1].ravel() + network.n_nodes, colour)


def fabric_nodes(network: Network) -> NDArray[np.bool_]:
    """Which nodes are switches outside of machines that pass traffic on.

    Returns
    -------
    bool[n_nodes]
    """
    return np.asarray((network.kind == SWITCH) & (network.machine < 0) & network.forwards)


def _numbered(colour: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the colours numbered from 0 in the order of the first nodes that have them."""
    _, first, which = np.unique(colour, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which.ravel()]
