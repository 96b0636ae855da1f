"""Routes over a forest of switch classes: the ones that a search finds, without the search; their ends are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

from .fabric_forest import FabricForest, fabric_forest
from .in_parts.alike_machines import alike_machines, ports_inside
from .link_rows import KeptRows, Rows, links_in_rows, only_sends
from .merge_switches import fabric_nodes

if TYPE_CHECKING:
    from .forest_kernel import Forest
    from .ports_kernel import Ports

Found = tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]

# What finding both ports and the way between them takes, or more.
WALK_STEPS = 32
# Routes up to which what does not depend on the hash is kept for the next one, some 40 MB; and for how many sets.
MAX_KEPT, ALIKE = 1 << 20, 3
_ends: list[tuple[Network, NDArray[np.int64], NDArray[np.int64], RouteEnds]] = []


@dataclass(frozen=True, slots=True, eq=False)
class RouteEnds:
    """What routes have in common whatever is hashed.

    Parameters
    ----------
    apart : intp[n]
        Numbers of the routes between different machines.
    ports : ((Ports, Ports), int32[n, 2], bool[n])
        Ports of all sources and destinations, those that each route takes, and whether these are the only ones.
    rows : Rows
        Links between switches by the node that they leave, and among these by the class that they lead to.
    alike_to : int32[n_rows]
        End of the rows of the same node and class as each of these.
    nodes : (int32[n_links], int32[n_links])
        Source and destination of each link.
    forest : Forest
        Classes of the fabric.
    """

    apart: NDArray[np.intp]
    ports: tuple[tuple[Ports, Ports], NDArray[np.int32], NDArray[np.bool_]]
    rows: Rows
    alike_to: NDArray[np.int32]
    nodes: tuple[NDArray[np.int32], NDArray[np.int32]]
    forest: Forest


def ends_of_routes(
    network: Network,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    rows: tuple[KeptRows, ...] | None = None,
    is_hashed: bool = True,
) -> RouteEnds | None:
    """Return what routes have in common whatever is hashed; None where the fabric is no forest.

    The last hashed ones are kept: several hashes of the same routes are drawn one after the other, on a network and on
    that which it is compared with.

    Parameters
    ----------
    network : Network
        Any.
    src, dst : int64[n_routes]
        Nodes.
    rows : (KeptRows, KeptRows), optional
        Links in rows by the node that they leave and by the one that they lead to.
    is_hashed : bool
        Whether the same routes may be asked for with another hash.
    """
    for known, begin, end, found in _ends:
        if known is network and np.array_equal(begin, src) and np.array_equal(end, dst):
            return found
    forest = fabric_forest(network)
    if forest is None:
        return None
    found = _find_ends(network, forest, src, dst, rows)
    if not is_hashed:
        return found
    _ends[:] = [(network, src, dst, found), *_ends[: ALIKE - 1]]
    while sum(len(one[1]) for one in _ends) > MAX_KEPT:
        _ends.pop()
    return found


def _find_ends(
    network: Network,
    forest: FabricForest,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    rows: tuple[KeptRows, ...] | None,
) -> RouteEnds:
    from commsim.core.jit import expected_work

    from .forest_kernel import choose_ports

    fabric = fabric_nodes(network)
    machine = network.machine
    is_inside = (machine[src] == machine[dst]) & ((machine[src] >= 0) | (src == dst))
    apart = np.flatnonzero(~is_inside & ~fabric[src] & ~fabric[dst])
    sources, source = _numbered(src[apart], network.n_nodes)
    targets, target = _numbered(dst[apart], network.n_nodes)
    nodes = network.src, network.dst
    classes = forest.node, forest.parent, forest.depth, forest.up, forest.down
    with expected_work(network.n_links + WALK_STEPS * len(apart)):
        ports = _ports(network, sources, targets, rows)
        chosen, single = choose_ports(np.stack((source, target), axis=1), ports, nodes, classes)
    return RouteEnds(apart, (ports, chosen, single), *_rows_by_class(network, forest, fabric), nodes, classes)


def _ports(
    network: Network, sources: NDArray[np.int64], targets: NDArray[np.int64], rows: tuple[KeptRows, ...] | None
) -> tuple[Ports, Ports]:
    """Return the ports by which messages leave sources and enter destinations; found once where machines are alike."""
    forwards, machine = network.forwards, network.machine
    inbound = forwards & ~only_sends(network)
    inbound.setflags(write=False)  # as `forwards`: a kernel is compiled for each kind
    alike = alike_machines(network)
    if alike is not None and (machine[sources] >= 0).all() and (machine[targets] >= 0).all():
        return (
            ports_inside(network, alike, sources, forwards, inward=False),
            ports_inside(network, alike, targets, inbound, inward=True),
        )
    from .ports_kernel import find_ports

    ends, fabric = (network.src, network.dst), fabric_nodes(network)
    if rows is None:
        leaving, entering = (links_in_rows(*way, network.n_nodes) for way in (ends, ends[::-1]))
    else:
        leaving, entering = (way() for way in rows)
    return (
        find_ports(sources, leaving, entering, machine, fabric, forwards, network.metric),
        find_ports(targets, entering, leaving, machine, fabric, inbound, network.metric),
    )


def _numbered(nodes: NDArray[np.int64], n_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes without repetition, and the place of each among them, without sorting."""
    is_there = np.zeros(n_nodes, np.bool_)
    is_there[nodes] = True
    place = np.cumsum(is_there, dtype=np.int32) - 1
    return np.flatnonzero(is_there).astype(np.int64), place[nodes].astype(np.int64)


def _rows_by_class(network: Network, forest: FabricForest, fabric: NDArray[np.bool_]) -> tuple[Rows, NDArray[np.int32]]:
    """Return links between switches by the node that they leave, then by the other end's class; and where these end."""
    links = np.flatnonzero(fabric[network.src] & fabric[network.dst]).astype(np.int32)
    links = links[np.lexsort((forest.node[network.dst[links]], network.src[links]))]  # stable: then in their order
    src, to = network.src[links], forest.node[network.dst[links]]
    first, at = np.zeros(network.n_nodes + 1, np.int64), np.flatnonzero(np.diff(src, prepend=-1))
    first[src[at] + 1] = np.diff(np.append(at, len(links)))
    np.cumsum(first, out=first)
    starts = np.flatnonzero(np.diff(src, prepend=-1).astype(bool) | np.diff(to, prepend=-1).astype(bool))
    bounds = np.append(starts, len(links))
    alike_to = np.repeat(bounds[1:].astype(np.int32), np.diff(bounds))
    return (first, np.asarray(links, np.int32), network.dst[links]), alike_to


def walk_known(
    network: Network,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    key: NDArray[np.int64],
    choice: int,
    order: NDArray[np.int32],
    rows: tuple[KeptRows, ...] | None = None,
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
    order : int32[2, n_nodes]
        Order from :func:`commsim.routing.dmodk.destination_order`; without columns for others.
    rows : (KeptRows, KeptRows), optional
        Same as in :func:`ends_of_routes`.

    Returns
    -------
    which, first, link, latency, or None
        Numbers of the routes found, rising, and their columns of Routes; None where the fabric is no forest.
    """
    from .routing_kernel import BY_HASH, BY_ONE_HASH

    ends = ends_of_routes(network, src, dst, rows, choice in (BY_HASH, BY_ONE_HASH))
    if ends is None:
        return None
    from commsim.core.jit import expected_work

    from .forest_kernel import walk_forest

    fabric = ends.rows, ends.alike_to, ends.nodes, ends.forest
    with expected_work(network.n_links + WALK_STEPS * len(ends.apart)):
        first, link, latency, known = walk_forest(
            (dst[ends.apart], key[ends.apart]), ends.ports, fabric, network.latency, order, choice
        )
    return ends.apart[known], np.append(first[:-1][known], first[-1]), link, latency[known]
