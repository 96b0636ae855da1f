"""Random-k: elements drawn alike at all ranks, so that only their values are sent, and can be summed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from . import compressor
from .element_list import count, share
from .message import CompressedMessage, Compressor, Exchange, Forgetful, GradientMemory, Residual, Vector, finite


@dataclass(frozen=True, slots=True)
class RandomK:
    """See :func:`random_k`."""

    density: float
    k: int | None
    seed: int
    unbiased: bool

    @property
    def not_summed(self) -> None:
        """All ranks send the same elements."""

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> CompressedMessage:  # noqa: ARG002 - alike at all ranks
        """Take the drawn elements; the step is sent too, since the decoder must draw alike."""
        vector = finite(vector)
        values = vector[self._drawn(len(vector), step)]
        if self.unbiased:
            with np.errstate(over="ignore"):
                values = finite(values * vector.dtype.type(len(vector) / len(values)), "a gradient times n/k")
        return CompressedMessage(len(vector), vector.dtype, (values, np.array([step], "<u4")))

    def decode(self, message: CompressedMessage) -> Vector:
        """Return the drawn elements with zeros between."""
        out = np.zeros(message.n_elements, message.dtype)
        out[self._drawn(message.n_elements, int(message.parts[1][0]))] = message.parts[0]
        return out

    def memory(self) -> GradientMemory:
        """Return error feedback, unless on average nothing is lost."""
        return Forgetful() if self.unbiased else Residual()

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:
        """Return k values, and the step."""
        return count(n_elements, self.density, self.k) * value_bytes + 4

    def exchange(self, vector: Vector, step: int, memory: GradientMemory) -> Exchange:  # noqa: ARG002
        """Sum the drawn values; that all are in the same step is known then."""
        own = self.encode(vector, step=step)
        total = yield own.parts[0]
        return self.decode(CompressedMessage(own.n_elements, own.dtype, (total, own.parts[1]))), self.decode(own)

    def exchange_bytes(self, n_elements: int, value_bytes: int = 4) -> tuple[int, ...]:
        """Return k values."""
        return (count(n_elements, self.density, self.k) * value_bytes,)

    def _drawn(self, n_elements: int, step: int) -> NDArray[np.int64]:
        k = count(n_elements, self.density, self.k)
        drawn = np.random.default_rng([self.seed, step]).choice(n_elements, k, replace=False, shuffle=False)
        return np.sort(drawn)


@compressor
def random_k(density: float = 0.01, k: int | None = None, seed: int = 0, unbiased: bool = False) -> Compressor:
    """Keep k elements drawn equally at all ranks: k v bytes where messages are summed, with error feedback.

    Parameters
    ----------
    density : float
        Share of elements that are kept, above 0 and at most 1.
    k : int, optional
        Number of elements, in place of a share.
    seed : int
        Step t draws from ``numpy.random.default_rng([seed, t])``, at every rank.
    unbiased : bool
        Multiply by n/k, and keep no residual: the mean over the draws is the gradient.

    Returns
    -------
    Compressor
        Whose messages can be summed, since all ranks keep the same elements; no indices are sent.

    Raises
    ------
    InputError
        If the density is not in (0, 1], k is below 1, or the seed is negative.

    References
    ----------
    Stich, Cordonnier and Jaggi, "Sparsified SGD with memory", NeurIPS 2018: rand-k. Vogels, Karimireddy and Jaggi
    (PowerSGD), NeurIPS 2019: drawn alike, it can be summed.
    """
    share(density, k)
    if seed < 0:
        raise InputError(f"seed must be at least 0, got {seed}")
    return RandomK(density, k, seed, unbiased)
