"""Forwarding tables: at each node, over which links a destination is reached."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network
from commsim.core.node_kind import SEATS
from commsim.core.routes.routing import HASHED, find_routes


def next_hops(network: Network, routing: str) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return the links that a router may take, by (node, destination).

    Several where the routing spreads over equal paths; routers then choose by a hash of addresses and ports, which is
    not the hash that the engines draw.

    Raises
    ------
    InputError, RoutingError
        As `find_routes`.
    """
    pairs = np.argwhere(~np.eye(network.n_nodes, dtype=bool))
    seats = np.flatnonzero(np.isin(network.kind, SEATS))
    pairs = pairs[np.isin(pairs[:, 0], seats) | np.isin(pairs[:, 1], seats)]
    spread = "spray" if routing in HASHED and routing.startswith("ecmp") else routing
    routes = find_routes(network, pairs[:, 0], pairs[:, 1], routing=spread)
    found: dict[tuple[int, int], set[int]] = {}
    for row, (_, destination) in enumerate(pairs.tolist()):
        for link in routes.link[routes.first[row] : routes.first[row + 1]].tolist():
            found.setdefault((int(network.src[link]), destination), set()).add(link)
    return {key: tuple(sorted(links)) for key, links in found.items()}
