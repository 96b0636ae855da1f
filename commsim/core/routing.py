"""Routing: which links the messages between two nodes take, and which share of them each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError, RoutingError
from .network import ROUTINGS, Network


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
    """Find shortest paths (in hops) between pairs of nodes.

    Parameters
    ----------
    network : Network
        Only its forwarding nodes are passed through.
    src, dst, channel : int[n_routes]
        Nodes, and the channel, which is part of the flow that ECMP hashes.
    routing : {"ecmp", "shortest", "spray"}, optional
        ``ecmp`` takes at each node the next hop that a hash of (src, dst, channel, seed, node) says; ``shortest``
        the one with the lowest link number; ``spray`` all of them, equally. Default: the network's own.
    seed : int
        Of the hash.

    Raises
    ------
    RoutingError
        If a pair has no path; the message names it.
    InputError
        If the routing is unknown.
    """
    from .jit import announce
    from .routing_kernel import walk_routes

    routing = routing or network.routing
    if routing not in ROUTINGS:
        raise InputError(f"unknown routing {routing!r}; known: {', '.join(ROUTINGS)}")
    src, dst = np.atleast_1d(np.asarray(src, np.int64)), np.atleast_1d(np.asarray(dst, np.int64))
    channel = np.broadcast_to(np.asarray(channel, np.int64), src.shape)
    by_destination = np.argsort(dst, kind="stable")
    announce(walk_routes)
    first, link, share, latency, lost = walk_routes(
        np.stack((src, dst, flow_hash(src, dst, channel, seed)), axis=1)[by_destination],
        links_in_rows(network.dst, network.src, network.n_nodes),
        links_in_rows(network.src, network.dst, network.n_nodes),
        network.latency,
        network.forwards,
        ROUTINGS.index(routing),
    )
    if lost >= 0:
        a, b = (network.nodes[int(v[by_destination[lost]])] for v in (src, dst))
        raise RoutingError(f"{network.name}: no path from {a} to {b}")
    return _in_given_order(first, link, share, latency, by_destination)


def links_in_rows(
    key: NDArray[np.int32], other: NDArray[np.int32], n_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Group links by one of their ends.

    Returns
    -------
    first : int64[n_nodes + 1], link : int32[n_links], end : int32[n_links]
        The links of node v, in order, and the node at the other end of each.
    """
    order = np.argsort(key, kind="stable").astype(np.int32)
    first = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(key, minlength=n_nodes), out=first[1:])
    return first, order, other[order]


def flow_hash(
    src: NDArray[np.int64], dst: NDArray[np.int64], channel: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Hash flows to 31 bits, as a switch hashes a five-tuple."""
    h = np.full(src.shape, np.uint64(seed % 2**64), np.uint64)
    for part in (src, dst, channel):
        h = _mix(h ^ (part.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)))
    return (h >> np.uint64(33)).astype(np.int64)


def _mix(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def _in_given_order(
    first: NDArray[np.int64],
    link: NDArray[np.int32],
    share: NDArray[np.float64],
    latency: NDArray[np.float64],
    order: NDArray[np.intp],
) -> Routes:
    """Undo the sorting by destination."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    length = np.diff(first)[place]
    new_first = np.concatenate((np.zeros(1, np.int64), np.cumsum(length)))
    take = np.arange(new_first[-1]) + np.repeat(first[place] - new_first[:-1], length)
    return Routes(new_first, link[take], share[take], latency[place])
