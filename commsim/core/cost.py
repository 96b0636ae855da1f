"""The one vocabulary of time: LogGP, protocols of messages by their size, and the overhead of the wire."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError
from .units import parse_bandwidth, parse_size
from .value import Value

# RoCEv2: preamble and gap 20, Ethernet 14 and 4, IPv4 20, UDP 8, BTH 12 and ICRC 4 bytes.
ROCE_HEADER = 82.0


@dataclass(frozen=True, slots=True)
class LogGP:
    """Cost of a message: on an otherwise idle path it takes ``o + bytes / B + L``, and ``gamma * bytes`` to reduce.

    Parameters
    ----------
    L : float, s
        Propagation along the path; occupies nothing.
    o : float, s
        Overhead per message; occupies a message engine of the sender, and the port that the message leaves by.
    B : float, bytes/s
        Bandwidth of the bottleneck.
    gamma : float, s/byte
        Time to reduce a byte at the receiver.
    ports : int
        Links by which a rank sends at once, each of this bandwidth and each for one receiver; its messages have one
        message engine.

    References
    ----------
    Hockney, "The communication challenge for MPP", 1994 (alpha = L + o, beta = 1/B). Alexandrov et al., "LogGP",
    SPAA 1995, whose G is 1/B.
    """

    L: float = 0.0
    o: float = 0.0
    B: float = 1.0
    gamma: float = 0.0
    ports: int = 1

    @property
    def alpha(self) -> float:
        """Hockney's start-up time, L + o."""
        return self.L + self.o

    def message(self, n_bytes: float) -> float:
        """Time of one message without others."""
        return self.o + n_bytes / self.B + self.L


@dataclass(frozen=True, slots=True)
class Framing:
    """How messages are cut into packets: every `payload` bytes carry `header` bytes more.

    Parameters
    ----------
    payload, header : float, bytes
        Largest payload of a packet and the bytes beside it; none by default.
    """

    payload: float = float("inf")
    header: float = 0.0

    def __post_init__(self) -> None:
        if not self.payload > 0 or not 0 <= self.header < float("inf"):
            raise InputError(f"a packet needs payload > 0 and header >= 0, got {self.payload} and {self.header}")

    def on_wire(self, n_bytes: ArrayLike) -> NDArray[np.float64]:
        """Bytes that messages of `n_bytes` put on the wire; a message of no bytes is one packet."""
        n_bytes = np.asarray(n_bytes, np.float64)
        if not self.header:
            return n_bytes
        return n_bytes + self.header * np.maximum(1.0, np.ceil(n_bytes / self.payload))


@dataclass(frozen=True, slots=True, eq=False)
class MessageProtocol(Value):
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

    def added(
        self, n_bytes: NDArray[np.float64], latency: NDArray[np.float64], overhead: NDArray[np.float64]
    ) -> NDArray[np.float64]:
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


def read_protocol(text: str) -> MessageProtocol | None:
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
    return MessageProtocol(**found)
