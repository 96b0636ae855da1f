"""Routing: which links the messages between two nodes take, and which share of them each."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InputError
from ..core.network import ROUTINGS, Network
from .link_rows import flow_hash
from .valiant import find_valiant_routes
from .walk import Routes, no_path, require_suited, walk

# Routings that depend on the seed.
HASHED = ("ecmp", "ecmp_polarised", "dimension_order", "minimal", "valiant")


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
        return find_valiant_routes(network, src, dst, channel, seed)
    routes, lost = walk(network, src, dst, flow_hash(src, dst, channel, seed), routing)
    if lost >= 0:
        raise no_path(network, int(src[lost]), int(dst[lost]), routing)
    return routes


__all__ = ["HASHED", "Routes", "find_routes"]
