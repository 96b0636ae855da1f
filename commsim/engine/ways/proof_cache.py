"""What simulations of loops found, and what their keys are made of: digests of the contents of networks and arrays.

Keys are of contents, so that nothing that is kept can be of something else.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cache import Cache
from commsim.core.network import Network
from commsim.routing.joined_routes import JoinedRoutes
from commsim.routing.routing import Routes

# Times, 100 bytes each; proofs, a few megabytes each for a thousand GPUs; and digests of networks.
MANY_TIMES, MANY_PROOFS, MANY_DIGESTS = 1024, 32, 16
# Bytes of routes beyond which a proof is not kept.
LONG = 2**24
# Seconds that loops take.
TIMES: Cache[float] = Cache(MANY_TIMES)
# Digests by the network itself, which is frozen; it is kept too, so that its id stays its own.
_DIGESTS: Cache[tuple[Network, bytes]] = Cache(MANY_DIGESTS)
__all__ = ["PROOFS", "TIMES", "digest_of", "digest_of_routes"]


# Routes of connections with a link that may be in their way.
PROOFS: Cache[tuple[JoinedRoutes, int]] = Cache(MANY_PROOFS, lambda proof: proof[0].n_bytes <= LONG)


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
    for field in fields(network):
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
