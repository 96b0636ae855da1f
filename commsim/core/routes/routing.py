"""Routing: which links the messages between two nodes take, and which share of them each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, RoutingError
from ..network import ROUTINGS, Network
from .flow_hash import flow_hash
from .link_rows import forwarding_rows, shared_searches
from .link_rows import links_in_rows as links_in_rows
from .routing_needs import destination_order, require_suited

HASHED = ("ecmp", "ecmp_polarised", "dimension_order", "minimal", "valiant")
"""Routings that depend on the seed."""


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
        Part of the bytes that takes the link; 1 unless packets are sprayed over several paths.
    latency : float64[n_routes], s
        Propagation along the path, the slowest one where there are several.
    """

    first: NDArray[np.int64]
    link: NDArray[np.int32]
    share: NDArray[np.float64]
    latency: NDArray[np.float64]


def find_routes(
    network: Network,
    src: ArrayLike,
    dst: ArrayLike,
    channel: ArrayLike = 0,
    *,
    routing: str | None = None,
    seed: int = 0,
) -> Routes:
    """Find paths between pairs of nodes, shortest in the sum of the links' metrics.

    Parameters
    ----------
    network : Network
        Only its forwarding nodes are passed through.
    src, dst, channel : int[n_routes]
        Nodes, and the channel, which is part of the flow that ECMP hashes.
    routing : str, optional
        Which of the next hops on shortest paths is taken at each node. Default: the network's own.

        - ``ecmp``: the one that a hash of (src, dst, channel, seed, node) says; ``ecmp_polarised`` leaves the node out
          of the hash, as switches do that are all configured alike.
        - ``shortest``: the one with the lowest link number; ``spray``: all of them, equally.
        - ``dmodk``, in trees: the digit of the destination's index, counted along the tree, that belongs to the tier.
        - ``dimension_order``, in grids: of the paths that finish each dimension before the next one, the shortest.
        - ``minimal``, in dragonflies: of the paths that change the group at most once, the shortest; ``valiant``: first
          over a random link out of the group into a third one, then minimal; directly within one group.
    seed : int
        Of the hash, which also decides between equals in the last three.

    Raises
    ------
    RoutingError
        If a pair has no path; the message names it.
    InputError
        If the routing is unknown, or the network does not have what it needs.

    References
    ----------
    Zahavi, "D-Mod-K routing providing non-blocking traffic for shift permutations on real life fat trees", CCIT 776,
    Technion, 2010. Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
    ToC 1987. Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008, section 4.
    """
    routing = routing or network.routing
    if routing not in ROUTINGS:
        raise InputError(f"unknown routing {routing!r}; known: {', '.join(ROUTINGS)}")
    require_suited(network, routing)
    src, dst = np.atleast_1d(np.asarray(src, np.int64)), np.atleast_1d(np.asarray(dst, np.int64))
    channel = np.broadcast_to(np.asarray(channel, np.int64), src.shape)
    if routing == "valiant":
        from .valiant import find_valiant_routes

        return find_valiant_routes(network, src, dst, channel, seed)
    routes, lost = walk(network, src, dst, flow_hash(src, dst, channel, seed), routing)
    if lost >= 0:
        raise no_path(network, int(src[lost]), int(dst[lost]), routing)
    return routes


def walk(
    network: Network, src: NDArray[np.int64], dst: NDArray[np.int64], key: NDArray[np.int64], routing: str
) -> tuple[Routes, int]:
    """Walk the paths that a routing other than ``valiant`` takes.

    Returns
    -------
    Routes, int
        The routes, and -1; or the first that has no path, and then the routes mean nothing.
    """
    from .forest_routes import walk_known
    from .routing_kernel import ALL, BY_DIGITS, BY_HASH, BY_ONE_HASH, FIRST
    from .search_kernel import ANY, DIMENSION_ORDER, LAST_GROUP_CHANGE

    rule, choice = {
        "ecmp": (ANY, BY_HASH),
        "ecmp_polarised": (ANY, BY_ONE_HASH),
        "shortest": (ANY, FIRST),
        "spray": (ANY, ALL),
        "dmodk": (ANY, BY_DIGITS),
        "dimension_order": (DIMENSION_ORDER, BY_HASH),
        "minimal": (LAST_GROUP_CHANGE, BY_HASH),
    }[routing]
    order = destination_order(network, routing)
    known = walk_known(network, src, dst, key, choice, order) if rule == ANY else None
    if known is not None:
        rest = np.setdiff1d(np.arange(len(src)), known[0], assume_unique=True)
        searched, lost = _search(network, src[rest], dst[rest], key[rest], rule, choice, order)
        if lost >= 0:
            return searched, int(rest[lost])
        which, first, link, latency = known
        return _in_given_order(
            np.concatenate((first, first[-1] + searched.first[1:])),
            np.concatenate((link, searched.link)),
            np.concatenate((np.ones(len(link)), searched.share)),
            np.concatenate((latency, searched.latency)),
            np.concatenate((which, rest)),
        ), -1
    return _search(network, src, dst, key, rule, choice, order)


def _search(
    network: Network,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    key: NDArray[np.int64],
    rule: int,
    choice: int,
    order: NDArray[np.int64],
) -> tuple[Routes, int]:
    from ..jit import announce
    from .routing_kernel import walk_routes
    from .search_kernel import DIMENSION_ORDER

    arriving = links_in_rows(network.dst, network.src, network.n_nodes)
    # In dimension order a search does not leave the lines between the two ends, so it is of no use to another source.
    shared = np.arange(len(dst)) if rule == DIMENSION_ORDER else shared_searches(network, arriving, dst)
    by_search = np.lexsort((dst, shared))
    announce(walk_routes)
    first, link, share, latency, lost = walk_routes(
        np.stack((src, dst, key, shared), axis=1)[by_search],
        (
            arriving,
            forwarding_rows(network, network.dst, network.src),
            forwarding_rows(network, network.src, network.dst),
            network.dst,
            network.metric,
            network.forwards,
            network.coordinates,
        ),
        network.latency,
        order,
        rule,
        choice,
    )
    if lost >= 0:
        return Routes(first, link, share, latency), int(by_search[lost])
    return _in_given_order(first, link, share, latency, by_search), -1


def no_path(network: Network, src: int, dst: int, routing: str) -> RoutingError:
    """Return the error that names a pair without a path."""
    how = {
        "dimension_order": " in dimension order; ecmp takes any",
        "minimal": " that changes the group at most once; ecmp takes any",
        "valiant": " by way of a third group; minimal takes none, ecmp any",
    }.get(routing, "")
    return RoutingError(f"{network.name}: no path from {network.nodes[src]} to {network.nodes[dst]}{how}")


def _in_given_order(
    first: NDArray[np.int64],
    link: NDArray[np.int32],
    share: NDArray[np.float64],
    latency: NDArray[np.float64],
    order: NDArray[np.intp],
) -> Routes:
    """Undo the sorting by destination."""
    from .routing_kernel import rows_in_order

    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    new_first, new_link, new_share = rows_in_order(first, link, share, place)
    return Routes(new_first, new_link, new_share, latency[place])
