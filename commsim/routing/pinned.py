"""Routes of connections: those that a placement pins, and the routing's for all others."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import MAX_METRIC, Network
from commsim.core.network_queries import partners
from commsim.core.pinned_routes import PinnedRoutes, gathered
from commsim.core.placement import Placement

from .in_parts.joined_routes import LEAST, JoinedRoutes, find_joined_routes, on_their_own
from .routing import Routes, find_routes


def find_connection_routes(
    network: Network,
    placement: Placement,
    ends: NDArray[np.int32],
    channel: NDArray[np.int64],
    *,
    routing: str | None = None,
    seed: int = 0,
    hashed_channel: NDArray[np.int64] | None = None,
) -> Routes:
    """Find the route of each connection.

    Parameters
    ----------
    network : Network
        Network with the switches.
    placement : Placement
        Nodes of the participants, and the routes that are pinned; it fits the network.
    ends : int32[n_connections, 2]
        Sending and receiving participant of each connection.
    channel : int64[n_connections]
        Channel of each connection.
    routing, seed : str or None, int
        Same as in :func:`commsim.routing.routing.find_routes`, for connections that are not pinned.
    hashed_channel : int64[n_connections], optional
        What ECMP hashes in place of the channel, where jobs are to hash to paths of their own.

    Raises
    ------
    RoutingError
        If a connection is not pinned and its nodes have no path.
    """
    src, dst = placement.nodes[ends].T
    hashed = channel if hashed_channel is None else hashed_channel
    if placement.routes is None:
        return find_routes(network, src, dst, hashed, routing=routing, seed=seed, used=placement.nodes)
    row = placement.routes.rows_of(ends, channel)
    free = np.flatnonzero(row < 0)
    routes = find_routes(network, src[free], dst[free], hashed[free], routing=routing, seed=seed, used=placement.nodes)
    pinned = _as_routes(network, placement.routes)
    # Both kinds of rows one behind the other, and then in the order of the connections.
    return in_order((pinned, routes), np.where(row < 0, len(placement.routes) + np.cumsum(row < 0) - 1, row))


def find_shared_routes(
    network: Network,
    placement: Placement,
    ends: NDArray[np.int32],
    channel: NDArray[np.int64],
    *,
    routing: str | None = None,
    seed: int = 0,
) -> JoinedRoutes:
    """Find the route of each connection, in parts that many share where there are many and all paths are taken.

    Parameters
    ----------
    network, placement, ends, channel, routing, seed
        Same as in :func:`find_connection_routes`.

    Raises
    ------
    RoutingError
        If a connection is not pinned and its nodes have no path.
    """
    if len(ends) >= LEAST and placement.routes is None and (routing or network.routing) == "spray":
        joined = find_joined_routes(network, *placement.nodes[ends].T)
        if joined is not None:
            return joined
    return on_their_own(find_connection_routes(network, placement, ends, channel, routing=routing, seed=seed))


def find_routes_around(
    network: Network,
    placement: Placement,
    ends: NDArray[np.int32],
    channel: NDArray[np.int64],
    avoided: NDArray[np.bool_],
    *,
    routing: str | None = None,
    seed: int = 0,
    hashed_channel: NDArray[np.int64] | None = None,
) -> Routes:
    """Find the route of each connection, over links to avoid only as a last resort.

    A connection whose pinned route has such a link goes where the routing says.

    Parameters
    ----------
    network, placement, ends, channel, routing, seed, hashed_channel
        Same as in :func:`find_connection_routes`.
    avoided : bool[n_links]
        Whether to avoid each link.

    Raises
    ------
    RoutingError
        If a connection is not pinned and its nodes have no path.
    """
    around = turned_away(network, avoided)
    return find_connection_routes(
        around,
        without_routes_over(placement, avoided),
        ends,
        channel,
        routing=routing,
        seed=seed,
        hashed_channel=hashed_channel,
    )


def turned_away(network: Network, avoided: NDArray[np.bool_]) -> Network:
    """Return the network in which links to avoid, bool[n_links], are taken only as a last resort."""
    return dataclasses.replace(network, metric=np.where(avoided, MAX_METRIC, network.metric))


def turned_round(network: Network, placement: Placement) -> Placement:
    """Return the placement for traffic the other way: what acknowledgements take back.

    Parameters
    ----------
    network : Network
        Network with the switches.
    placement : Placement
        Placement of the traffic itself.

    Returns
    -------
    Placement
        Connections are named by their receiver first. Pinned routes are turned round link by link; where one takes a
        link that has no reverse, the routing says the way back.
    """
    if placement.routes is None:
        return placement
    pinned = placement.routes
    row = np.repeat(np.arange(len(pinned)), np.diff(pinned.first))
    back = partners(network)[pinned.link]
    kept = np.bincount(row, back == pinned.link, minlength=len(pinned)) == 0
    inside = kept[row]
    backwards = np.lexsort((-np.arange(len(row)), row))
    first = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.diff(pinned.first)[kept])))
    routes = PinnedRoutes(pinned.ends[kept][:, [1, 0, 2]], first, back[backwards[inside]])
    return Placement(placement.nodes, routes)


def in_order(parts: tuple[Routes, ...], rows: NDArray[np.int64]) -> Routes:
    """Choose routes from several tables.

    Parameters
    ----------
    parts : tuple of Routes
        The tables, whose rows are numbered one table behind the other.
    rows : int64[n]
        Row of each result, counted through all tables.
    """
    begin = np.cumsum([0, *(part.first[-1] for part in parts)])
    first = np.concatenate([np.zeros(1, np.int64), *(p.first[1:] + b for p, b in zip(parts, begin, strict=False))])
    link, share = (np.concatenate([getattr(part, name) for part in parts]) for name in ("link", "share"))
    new_first, position = gathered(first, np.arange(len(link), dtype=np.int32), rows)
    latency = np.concatenate([part.latency for part in parts])[rows]
    return Routes(new_first, link[position], share[position], latency)


def _as_routes(network: Network, pinned: PinnedRoutes) -> Routes:
    row = np.repeat(np.arange(len(pinned)), np.diff(pinned.first))
    latency = np.bincount(row, weights=network.latency[pinned.link], minlength=len(pinned))
    return Routes(pinned.first, pinned.link, np.ones(len(pinned.link)), latency.astype(np.float64))


def without_routes_over(placement: Placement, avoided: NDArray[np.bool_]) -> Placement:
    """Return the placement without the pinned routes over links that are avoided."""
    pinned = placement.routes
    if pinned is None or not avoided.any():
        return placement
    row = np.repeat(np.arange(len(pinned)), np.diff(pinned.first))
    kept = np.flatnonzero(np.bincount(row, avoided[pinned.link], minlength=len(pinned)) == 0)
    first, link = gathered(pinned.first, pinned.link, kept)
    return Placement(placement.nodes, PinnedRoutes(pinned.ends[kept], first, link))
