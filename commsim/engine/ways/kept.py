"""What was found once and depends on nothing but its key: kept for another size, draw or question, within bounds.

Keys are of contents, so that nothing that is kept can be of something else: networks and arrays by a digest of their
bytes.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.routing.routing import Routes

# Times, 100 bytes each; proofs, a few megabytes each for a thousand GPUs; and digests of networks.
MANY_TIMES, MANY_PROOFS, MANY_DIGESTS = 1024, 32, 16
# Bytes of routes beyond which a proof is not kept.
LONG = 2**24
Kind = TypeVar("Kind")
__all__ = ["PROOFS", "TIMES", "Kept", "digest_of", "digest_of_routes"]


class Kept(Generic[Kind]):
    """Values by key, of which the oldest go.

    Parameters
    ----------
    most : int
        How many are kept.
    wanted : callable
        Whether a value is worth its memory.
    """

    def __init__(self, most: int, wanted: Callable[[Kind], bool] = lambda _: True) -> None:
        self.most, self.wanted = most, wanted
        self._found: OrderedDict[Hashable, Kind] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: Hashable, find: Callable[[], Kind]) -> Kind:
        """Return the value of a key; one that is not known is found."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        value = find()  # without the lock: two threads may find the same
        if self.wanted(value):
            with self._lock:
                self._found[key] = value
                while len(self._found) > self.most:
                    self._found.popitem(last=False)
        return value

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._found.clear()


def _is_short(proof: tuple[Routes, int]) -> bool:
    routes = proof[0]
    return routes.link.nbytes + routes.share.nbytes + routes.first.nbytes + routes.latency.nbytes <= LONG


# Seconds that loops take, and routes of connections with a link that may be in their way.
TIMES: Kept[float] = Kept(MANY_TIMES)
PROOFS: Kept[tuple[Routes, int]] = Kept(MANY_PROOFS, _is_short)
# Digests by the network itself, which is frozen; it is kept too, so that its id stays its own.
_DIGESTS: Kept[tuple[Network, bytes]] = Kept(MANY_DIGESTS)


def digest_of(*values: Network | NDArray[Any]) -> bytes:
    """Return a digest of the contents of networks and arrays."""
    found = hashlib.blake2b(digest_size=20)
    for value in values:
        if isinstance(value, Network):
            found.update(_DIGESTS.get(id(value), functools.partial(_with_digest, value))[1])
        else:
            found.update(f"{value.dtype.str}{value.shape}".encode())
            found.update(np.ascontiguousarray(value).data)
    return found.digest()


def _with_digest(network: Network) -> tuple[Network, bytes]:
    found = hashlib.blake2b(digest_size=20)
    for one in fields(network):
        value = getattr(network, one.name)
        found.update(one.name.encode())
        found.update(digest_of(value) if isinstance(value, np.ndarray) else repr(value).encode())
    return network, found.digest()


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
