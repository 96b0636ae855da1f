"""What simulations of loops found, and what their keys are made of: digests of the contents of networks and arrays.

Keys are of contents, so that nothing that is kept can be of something else.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cache import Cache
from commsim.core.network import Network
from commsim.routing.in_parts.joined_routes import JoinedRoutes
from commsim.routing.routing import Routes

# Times, 100 bytes each, and digests of networks.
MANY_TIMES, MANY_DIGESTS = 1024, 16
# Bytes of all proofs: a few megabytes each for a ring of a thousand GPUs, 24 for an all-to-all of these; and of one
# beside its routes.
PROOF_BYTES, FEW_BYTES = 2**28, 2**12
# Seconds that loops take.
TIMES: Cache[float] = Cache(MANY_TIMES)
# Digests by the network itself, which is frozen; it is kept too, so that its id stays its own.
_DIGESTS: Cache[tuple[Network, bytes]] = Cache(MANY_DIGESTS)
# A rate of connections above all that they have, bytes/s.
ENDLESS = 1e30
# Routes of connections with a link that may be in their way.
PROOFS: Cache[Examined] = Cache(
    PROOF_BYTES, lambda found: found.routes.n_bytes <= PROOF_BYTES / 4, lambda found: found.routes.n_bytes + FEW_BYTES
)
__all__ = ["PROOFS", "TIMES", "Examined", "digest_of", "digest_of_routes"]


class Examined:
    """Routes of connections, and up to which rate of a connection no link is in their way.

    A link that is in the way of no connection at one rate is in nobody's way at a lower one: what it may carry are sums
    and minima of rates, which rounding does not turn round.

    Parameters
    ----------
    routes : JoinedRoutes
        Route of each connection.
    """

    routes: JoinedRoutes

    def __init__(self, routes: JoinedRoutes) -> None:
        self.routes = routes
        self._free, self._latest, self._is_new = 0.0, (0.0, -1), True

    def full(self, cap: float, look: Callable[[float], int]) -> int:
        """Return a link that may be in the way at a rate, or -1.

        Parameters
        ----------
        cap : float, bytes/s
            Most that a connection gets.
        look : callable
            Function from a rate to such a link, or -1.
        """
        if 0 < cap <= self._free:
            return -1
        if cap != self._latest[0]:
            if self._free > 0 and self._is_new:  # another size: perhaps no rate at all needs to be looked at again
                self._is_new = False
                if look(ENDLESS) < 0:
                    self._free = ENDLESS
                    return -1
            self._latest = cap, look(cap)
            if self._latest[1] < 0:
                self._free = max(self._free, cap)
        return self._latest[1]


def digest_of(*values: Network | NDArray[Any]) -> bytes:
    """Return a digest of the contents of networks and arrays."""
    digest = hashlib.blake2b(digest_size=20)
    for value in values:
        if isinstance(value, Network):
            digest.update(_DIGESTS.get(id(value), functools.partial(_with_digest, value))[1])
        else:
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).data)
    return digest.digest()


def _with_digest(network: Network) -> tuple[Network, bytes]:
    digest = hashlib.blake2b(digest_size=20)
    for field in (one for one in fields(network) if one.init):
        value = getattr(network, field.name)
        digest.update(field.name.encode())
        digest.update(digest_of(value) if isinstance(value, np.ndarray) else repr(value).encode())
    return network, digest.digest()


def digest_of_routes(routes: Routes, network: Network) -> bytes:
    """Return a digest of all that a simulation has from routes: their latencies, and the links that may hold them.

    Links of the highest rate are left out where each route has a slower one and all messages together, each as fast as
    that lets it be, do not fill one: tables of the flow engine then have no row for these (:mod:`..flow_tables`).

    Parameters
    ----------
    routes : Routes
        Route of each connection.
    network : Network
        Network of the links.
    """
    fastest = network.bandwidth.max(initial=0.0)
    rates, crosses = routes.rates(network), np.diff(routes.first) > 0
    slower = network.bandwidth[routes.link] < fastest
    if rates[crosses].sum() >= fastest * (1 - 1e-9) or not (rates[crosses] < fastest).all():
        slower[:] = True
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(slower)))
    return digest_of(before[routes.first], routes.link[slower], routes.share[slower], routes.latency, crosses)
