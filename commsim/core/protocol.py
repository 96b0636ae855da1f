"""How a library sends messages by their size: at once, or announced first and then fetched by the receiver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import InputError
from .units import parse_bandwidth, parse_size
from .value import Value

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Protocol(Value):
    """Eager and rendezvous messages of a library.

    An eager message is sent at once; where the library sends it through a buffer of its own, it is copied. A rendezvous
    is an announcement, which takes what a small message takes, a request to read that crosses the network back, and the
    data.

    Parameters
    ----------
    eager : float, bytes
        The largest message that is sent at once.
    copy : float, bytes/s
        Rate at which eager messages are copied; infinite where they are not. Of a message that may be sent at once the
        faster way is taken, as UCX takes it.

    Raises
    ------
    InputError
        If a number is not positive.

    References
    ----------
    UCX, ``src/ucp/core/ucp_ep.c``, ``ucp_ep_config_calc_rndv_thresh``; libfabric, ``prov/cxi``, ``max_eager_size``.
    """

    eager: float = np.inf
    copy: float = np.inf

    def __post_init__(self) -> None:
        if not (self.eager > 0 and self.copy > 0):
            raise InputError(f"a protocol needs eager and copy above 0, got {self.eager} and {self.copy}")

    def __str__(self) -> str:
        """Return what :func:`read_protocol` reads."""
        found = [f"eager={self.eager!r}B"] * bool(np.isfinite(self.eager))
        return ",".join(found + [f"copy={self.copy!r}B/s"] * bool(np.isfinite(self.copy)))

    def added(self, n_bytes: Floats, latency: Floats, overhead: Floats) -> Floats:
        """Return the seconds of messages beside overhead, bytes over bandwidth and latency.

        Parameters
        ----------
        n_bytes : float64[n], bytes
            Messages.
        latency, overhead : float64[n], s
            Latency of their paths, and what a message costs its two ends.
        """
        rendezvous = overhead + 2 * latency
        return np.where(n_bytes <= self.eager, np.minimum(n_bytes / self.copy, rendezvous), rendezvous)


def read_protocol(text: str) -> Protocol | None:
    """Read ``eager=SIZE,copy=RATE``, of which one may be missing; None for no text.

    Raises
    ------
    InputError
        If a part is unknown or no number.
    """
    if not text:
        return None
    found: dict[str, float] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key not in ("eager", "copy"):
            raise InputError(f"protocol has eager=SIZE and copy=RATE, got {part!r}")
        found[key] = parse_size(value, "eager") if key == "eager" else parse_bandwidth(value, "copy")
    return Protocol(**found)
