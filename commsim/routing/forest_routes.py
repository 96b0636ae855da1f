"""Routes over a forest of switch classes: the same ones that a search finds, without the search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

from .fabric_forest import FabricForest, fabric_forest
from .link_rows import Rows, links_in_rows, only_sends
from .merge_switches import fabric_nodes

# What finding both ports and the way between them takes, or more.
WALK_STEPS = 32
_latest: list[tuple[Network, FabricForest | None]] = []
Found = tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


def forest_of(network: Network) -> FabricForest | None:
    """Return the forest of a network's fabric; the last two are cached, such as a network's and its merged form's."""
    for known, forest in _latest:
        if known is network:
            return forest
    _latest[:] = [*_latest[-1:], (network, fabric_forest(network))]
    return _latest[-1][1]


def walk_known(
    network: Network,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    key: NDArray[np.int64],
    choice: int,
    order: NDArray[np.int64],
) -> Found | None:
    """Walk the routes between different machines that need no search; worth it from ``walk.LEAST`` routes on.

    Parameters
    ----------
    network : Network
        Any.
    src, dst, key : int64[n_routes]
        Nodes, and the hash of each flow.
    choice : int
        Choice among links, as the kernels number it.
    order : int64[2, n_nodes]
        Order from :func:`commsim.routing.dmodk.destination_order`; zeros for others.

    Returns
    -------
    which, first, link, latency, or None
        Numbers of the routes found, rising, and their columns of Routes; None where the fabric is no forest.
    """
    forest = forest_of(network)
    if forest is None:
        return None
    from commsim.core.jit import expected_work

    from .forest_kernel import walk_forest
    from .ports_kernel import find_ports

    fabric = fabric_nodes(network)
    unit = np.where(network.machine >= 0, network.machine, network.machine.max() + 1 + np.arange(network.n_nodes))
    apart = np.flatnonzero((unit[src] != unit[dst]) & ~fabric[src] & ~fabric[dst])
    leaving = links_in_rows(network.src, network.dst, network.n_nodes)
    entering = links_in_rows(network.dst, network.src, network.n_nodes)
    forwards = network.forwards
    inbound = forwards & ~only_sends(network)
    sources, source = _numbered(src[apart], network.n_nodes)
    targets, target = _numbered(dst[apart], network.n_nodes)
    with expected_work(network.n_links + WALK_STEPS * len(apart)):
        first, link, latency, known = walk_forest(
            np.stack((source, target, dst[apart], key[apart]), axis=1),
            (
                find_ports(sources, leaving, entering, network.machine, fabric, forwards, network.metric),
                find_ports(targets, entering, leaving, network.machine, fabric, inbound, network.metric),
            ),
            _rows_by_class(network, forest, fabric),
            np.stack((network.src, network.dst), axis=1),
            (forest.node, forest.parent, forest.depth, forest.up, forest.down),
            network.latency,
            order,
            choice,
        )
    return apart[known], np.append(first[:-1][known], first[-1]), link, latency[known]


def _numbered(nodes: NDArray[np.int64], n_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes without repetition, and the place of each among them, without sorting."""
    is_there = np.zeros(n_nodes, np.bool_)
    is_there[nodes] = True
    place = np.cumsum(is_there) - 1
    return np.flatnonzero(is_there).astype(np.int64), place[nodes]


def _rows_by_class(network: Network, forest: FabricForest, fabric: NDArray[np.bool_]) -> Rows:
    """Links between switches of the fabric, by the node that they leave, then by class of the other end."""
    links = np.flatnonzero(fabric[network.src] & fabric[network.dst])
    links = links[np.lexsort((links, forest.node[network.dst[links]], network.src[links]))]
    first = np.searchsorted(network.src[links], np.arange(network.n_nodes + 1))
    return np.asarray(first, np.int64), np.asarray(links, np.int32), network.dst[links]
