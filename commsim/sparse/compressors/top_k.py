"""Top-k: the elements of largest magnitude, as a list."""

from __future__ import annotations

from dataclasses import dataclass

from commsim.sparse.encodings import INDEX_BYTES

from . import compressor
from .element_list import count, largest, read_list, share, write_list
from .message import CompressedMessage, Compressor, Residual, Vector, finite


@dataclass(frozen=True, slots=True)
class TopK:
    """See :func:`top_k`."""

    density: float
    k: int | None

    @property
    def not_summed(self) -> str:
        """Every rank has other indices."""
        return "every rank keeps other elements, so that lists cannot be added without growing"

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> CompressedMessage:  # noqa: ARG002
        """List the largest."""
        vector = finite(vector)
        return write_list(vector, largest(vector, count(len(vector), self.density, self.k)))

    def decode(self, message: CompressedMessage) -> Vector:
        """Return the list with zeros between."""
        return read_list(message)

    def memory(self) -> Residual:
        """Return error feedback."""
        return Residual()

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:
        """Return k indices and values."""
        return count(n_elements, self.density, self.k) * (INDEX_BYTES + value_bytes)


@compressor
def top_k(density: float = 0.01, k: int | None = None) -> Compressor:
    """Keep the k elements of largest magnitude: k(4 + v) bytes, with error feedback.

    Parameters
    ----------
    density : float
        Share of elements that are kept, above 0 and at most 1.
    k : int, optional
        Number of elements, in place of a share.

    Returns
    -------
    Compressor
        Of equal magnitudes the one of lower index is kept. What is kept is exact, so that message and residual are
        the gradient bit for bit.

    Raises
    ------
    InputError
        If the density is not in (0, 1], or k is below 1.

    References
    ----------
    Aji and Heafield, "Sparse communication for distributed gradient descent", EMNLP 2017. Stich, Cordonnier and
    Jaggi, NeurIPS 2018.
    """
    share(density, k)
    return TopK(density, k)
