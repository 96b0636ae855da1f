"""Switches that nothing tells apart, merged into one with the capacity of all of them.

The classes are the coarsest equitable partition in which every node that is no switch of the fabric is a class of its
own: all members of a class have equally many links, with equal numbers, to the members of each other class. So all
members are equally far from every endpoint, and messages that are sprayed reach all of them alike.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.network_queries import AT_ONCE, fabric_switches
from commsim.core.value import picked_names

from .link_rows import MANY, mixed

# Kinds of links up to which each link is compared with them, one after the other.
FEW = 64


@dataclass(frozen=True, slots=True, eq=False)
class LinkBundles:
    """Links that are one link of a merged network, each of which carries as much of it.

    Parameters
    ----------
    link : int32[n_links]
        Bundle of each link of the network before.
    """

    link: NDArray[np.int32]

    def share_out(self, per_bundle: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share what bundles carry among their links.

        Returns
        -------
        float64[n_links]
        """
        n_members, shared = np.zeros(len(per_bundle), np.int32), np.empty(len(self.link))
        parts = [slice(low, low + AT_ONCE) for low in range(0, len(self.link), AT_ONCE)]
        for part in parts:  # an index is cast to twice its size
            np.add.at(n_members, self.link[part], np.int32(1))
        for part in parts:
            shared[part] = per_bundle[self.link[part]] / n_members[self.link[part]]
        return shared


@dataclass(frozen=True, slots=True, eq=False)
class MergedSwitches:
    """A network and its classes.

    Parameters
    ----------
    network : Network
        One node per class, under the name of its first member, and one link for all links between two classes, as fast
        as they are together. Nodes keep their order.
    node : int32[n_nodes]
        Class of each node of the network before.
    bundles : LinkBundles
        Its links, put together.
    """

    network: Network
    node: NDArray[np.int32]
    bundles: LinkBundles


def merge_switches(network: Network) -> MergedSwitches:
    """Merge the switches of a network by its links' rates, latencies and metrics, so that links of a bundle are alike.

    Messages that are sprayed take each of its links with equal shares if the classes form a forest
    (:func:`commsim.routing.fabric_forest.fabric_forest`); a sprayed route then is one path of bundles.
    """
    kind = np.zeros(network.n_links, np.int32)
    differing = []
    for name in ("bandwidth", "latency", "buffer", "loss", "metric"):
        column = getattr(network, name)
        if (column != column[:1]).any():  # one column after the other: sorting rows takes ten times as long
            kind = _told_apart(kind, column)
            differing.append(name)
    node = switch_classes(network, kind)
    # parallel links of different numbers between two classes stay different bundles; bundles are in the order of their
    # first links, so that cables stay cables
    link, first, n_members = _bundles(network, node, kind)
    del kind
    member = np.flatnonzero(np.diff(np.maximum.accumulate(node), prepend=-1))  # classes are in their order
    merged = dataclasses.replace(
        network,
        name=f"{network.name}, merged",
        nodes=picked_names(network.nodes, member),
        **{name: _of_members(getattr(network, name), member)
           for name in ("kind", "forwards", "aggregates", "overhead", "recv_overhead", "gamma", "machine",
                        "message_engines", "coordinates")},
        src=_kept(node[network.src[first]]), dst=_kept(node[network.dst[first]]),
        bandwidth=_kept(network.bandwidth[first] * n_members),
        **{name: _kept(getattr(network, name)[first]) if name in differing else getattr(network, name)[:1]
           for name in ("latency", "buffer", "loss", "metric")},
    )  # fmt: skip
    return MergedSwitches(merged, node, LinkBundles(link))


def _of_members(column: NDArray[Any], member: NDArray[np.intp]) -> Any:
    """Return a column of classes; one value where all nodes share it, which a network repeats without memory."""
    return column[:1] if column.strides == (0,) else _kept(column[member])


def _kept(column: NDArray[Any]) -> Any:
    """Return a new column such that a network keeps it without a copy."""
    column.setflags(write=False)
    return column


def _told_apart(kind: NDArray[np.int32], column: NDArray[Any]) -> NDArray[np.int32]:
    """Return kinds of links that differ by another column as well."""
    if len(kind) >= MANY:
        from .classes_kernel import number_pairs

        kinds, known, n_known = kind.copy(), (np.empty(FEW, np.int32), np.empty(FEW)), 0
        for low in range(0, len(kind), AT_ONCE):
            values = column[low : low + AT_ONCE].astype(np.float64)
            n_known = number_pairs(kinds[low : low + AT_ONCE], values, *known, n_known)
            if n_known < 0:
                break
        else:
            return kinds
    which = _numbered_alike(column)[0]
    return _numbered_alike(kind * (np.int64(which.max()) + 1) + which)[0]


def _bundles(
    network: Network, node: NDArray[np.int32], kind: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Give numbers to what differs in classes of ends or in its kind; return where each is first, and how often."""
    if network.n_links >= MANY:
        from .classes_kernel import number_bundles

        return number_bundles(node, network.src, network.dst, kind)
    ends = node[network.src].astype(np.int64) * (int(node.max(initial=-1)) + 1) + node[network.dst]
    link, first = _numbered_alike(ends * (np.int64(kind.max(initial=0)) + 1) + kind)
    return link, first, np.bincount(link, minlength=len(first)).astype(np.int32)


def _numbered_alike(values: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Give numbers to values, in the order in which they first occur, and return where they do."""
    if len(values) >= MANY:
        from .classes_kernel import number_colours

        words = values if values.itemsize == 8 else values.astype(np.int64)
        return number_colours(mixed(words.view(np.uint64)))
    _, first, which = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[which.ravel()].astype(np.int32), first[order].astype(np.int32)


def switch_classes(network: Network, kind: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """Refine: nodes differ that have other numbers of links of some kind to or from some class.

    Parameters
    ----------
    network : Network
        Its fabric, the switches outside of machines, may be merged; all other nodes differ from the start.
    kind : int[n_links]
        Links of different kinds differ.

    Returns
    -------
    int32[n_nodes]
        Class of each node, numbered in the order of first members.

    Notes
    -----
    Neighbourhoods are compared by sums of 64-bit hashes: two that differ are taken for equal with a probability of
    about 2^-64. Hashes of a link's kind and of its end are added. Their xor is the same for one way to a node and for
    the other way back from another, if kinds and nodes have the same numbers.
    """
    merges = fabric_nodes(network)
    members = np.flatnonzero(merges)
    colour = mixed(np.arange(network.n_nodes, dtype=np.uint64))  # of a node in a class of its own, for good
    add_around = _neighbours(network, kind, merges)
    which, n_classes = np.zeros(len(members), np.int64), 0
    while True:
        colour[members] = mixed((which + network.n_nodes).astype(np.uint64))
        around = np.zeros(len(members), np.uint64)
        add_around(colour, around)
        which = np.unique(mixed(around ^ colour[members]), return_inverse=True)[1].ravel()
        if (n_found := int(which.max(initial=-1)) + 1) == n_classes:
            return _numbered(members, which, network.n_nodes)
        n_classes = n_found


def _neighbours(
    network: Network, kind: NDArray[np.integer[Any]], merges: NDArray[np.bool_]
) -> Callable[[NDArray[np.uint64], NDArray[np.uint64]], None]:
    """Return what adds, from colours of nodes, the hashes around each node that may be merged to their sums."""
    place = np.where(merges, np.cumsum(merges, dtype=np.int32) - 1, -1).astype(np.int32)
    if network.n_links >= MANY:
        from .classes_kernel import add_neighbours

        return functools.partial(add_neighbours, place, network.src, network.dst, np.asarray(kind, np.int32))
    sides = []
    for way, (inner, outer) in enumerate(((network.src, network.dst), (network.dst, network.src))):
        mine = merges[inner]
        of_link = 2 * kind[mine].astype(np.uint64) + np.uint64(way)
        sides.append((place[inner[mine]], outer[mine], mixed(of_link)))

    def add(colour: NDArray[np.uint64], around: NDArray[np.uint64]) -> None:
        for mine, outer, of_link in sides:
            np.add.at(around, mine, mixed(of_link + colour[outer]))

    return add


def fabric_nodes(network: Network) -> NDArray[np.bool_]:
    """Which nodes are switches outside of machines that pass traffic on.

    Returns
    -------
    bool[n_nodes]
    """
    return fabric_switches(network) & network.forwards


def _numbered(members: NDArray[np.intp], which: NDArray[np.int64], n_nodes: int) -> NDArray[np.int32]:
    """Return numbers of these nodes' classes, and of all other nodes, in the order of first members."""
    first = np.arange(n_nodes, dtype=np.int32)
    representative = np.full(int(which.max(initial=-1)) + 1, n_nodes, np.int32)
    np.minimum.at(representative, which, members.astype(np.int32))
    first[members] = representative[which]
    stands = first == np.arange(n_nodes, dtype=np.int32)
    return (np.cumsum(stands, dtype=np.int32) - np.int32(1))[first]
