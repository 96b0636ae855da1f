"""The one vocabulary of time, and the overhead of the wire."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError


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

    References
    ----------
    Hockney, "The communication challenge for MPP", 1994 (alpha = L + o, beta = 1/B). Alexandrov et al., "LogGP",
    SPAA 1995, whose G is 1/B.
    """

    L: float = 0.0
    o: float = 0.0
    B: float = 1.0
    gamma: float = 0.0

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
