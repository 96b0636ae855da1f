"""Forwarding tables: at each node, over which links a destination is reached."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import SEATS, Network
from commsim.routing.routing import HASHED, find_routes

NextHops = dict[tuple[int, int], tuple[int, ...]]


def next_hops(network: Network, routing: str) -> NextHops:
    """Return the links that a router may take, by (node, destination).

    Several where the routing spreads over equal paths; routers then choose by a hash of addresses and ports, which is
    not the hash that the engines draw.

    Raises
    ------
    InputError, RoutingError
        As :func:`commsim.routing.routing.find_routes`; and if the routing is ``valiant``, whose next hop depends
        on where a message has been before, which no forwarding table knows.
    """
    if routing == "valiant":
        raise InputError("a testbed's routers know where a message goes, not where it has been: routing valiant cannot "
                         "be built; minimal can")  # fmt: skip
    seats = np.flatnonzero(np.isin(network.kind, SEATS))
    others = np.setdiff1d(np.arange(network.n_nodes), seats)
    spread = "spray" if routing in HASHED and routing.startswith("ecmp") else routing
    links_between = _between(network, seats, np.arange(network.n_nodes), spread)
    # A switch as a source comes second: where messages pass it, their path decides and not its own.
    return _between(network, others, seats, spread) | links_between


def _between(network: Network, sources: NDArray[np.intp], destinations: NDArray[np.intp], routing: str) -> NextHops:
    pairs = [(int(a), int(b)) for a in sources for b in destinations if a != b]
    if not pairs:
        return {}
    routes = find_routes(network, [a for a, _ in pairs], [b for _, b in pairs], routing=routing)
    links_between: dict[tuple[int, int], set[int]] = {}
    for row, (_, destination) in enumerate(pairs):
        for link in routes.link[routes.first[row] : routes.first[row + 1]].tolist():
            links_between.setdefault((int(network.src[link]), destination), set()).add(link)
    return {key: tuple(sorted(links)) for key, links in links_between.items()}
