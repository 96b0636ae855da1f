"""Top-k: the elements of largest magnitude, as a list.

Threshold: the elements above a magnitude, as a list.

Random-k: elements drawn alike at all ranks, so that only their values are sent, and can be summed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ..encodings import INDEX_BYTES
from . import compressor
from .message import Compressed, Compressor, Exchange, Forgetful, Memory, Residual, Vector, finite


@dataclass(frozen=True, slots=True)
class TopK:
    """See :func:`top_k`."""

    density: float
    k: int | None

    @property
    def not_summed(self) -> str:
        """Every rank has other indices."""
        return "every rank keeps other elements, so that lists cannot be added without growing"

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> Compressed:  # noqa: ARG002
        """List the largest."""
        vector = finite(vector)
        return write_list(vector, largest(vector, count(len(vector), self.density, self.k)))

    def decode(self, message: Compressed) -> Vector:
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


@dataclass(frozen=True, slots=True)
class Threshold:
    """See :func:`threshold`."""

    above: float

    @property
    def not_summed(self) -> str:
        """Every rank has other indices."""
        return "every rank keeps other elements, so that lists cannot be added without growing"

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> Compressed:  # noqa: ARG002
        """List what is above."""
        vector = finite(vector)
        return write_list(vector, np.flatnonzero(np.abs(vector) > np.float64(self.above)))

    def decode(self, message: Compressed) -> Vector:
        """Return the list with zeros between."""
        return read_list(message)

    def memory(self) -> Residual:
        """Return error feedback."""
        return Residual()

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        raise InputError(
            f"threshold:above={self.above:g} sends as many elements as the data has above it, which does not follow"
            f" from the size; top_k:density=... sends a known number"
        )


@compressor
def threshold(above: float) -> Compressor:
    """Keep the elements of larger magnitude than a threshold: (4 + v) bytes each, with error feedback.

    Parameters
    ----------
    above : float
        The threshold, 0 or more.

    Returns
    -------
    Compressor
        What is kept is exact, so that message and residual are the gradient bit for bit.

    Raises
    ------
    InputError
        If the threshold is negative or no finite number.

    References
    ----------
    Strom, "Scalable distributed DNN training using commodity GPU cloud computing", Interspeech 2015: a fixed
    threshold and a residual; there the threshold itself is sent in place of the value.
    """
    if not 0 <= above < math.inf:
        raise InputError(f"a threshold must be at least 0 and finite, got above={above}")
    return Threshold(above)


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

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> Compressed:  # noqa: ARG002 - alike at all ranks
        """Take the drawn elements; the step is sent too, since the decoder must draw alike."""
        vector = finite(vector)
        values = vector[self._drawn(len(vector), step)]
        if self.unbiased:
            with np.errstate(over="ignore"):
                values = finite(values * vector.dtype.type(len(vector) / len(values)), "a gradient times n/k")
        return Compressed(len(vector), vector.dtype, (values, np.array([step], "<u4")))

    def decode(self, message: Compressed) -> Vector:
        """Return the drawn elements with zeros between."""
        out = np.zeros(message.n_elements, message.dtype)
        out[self._drawn(message.n_elements, int(message.parts[1][0]))] = message.parts[0]
        return out

    def memory(self) -> Memory:
        """Return error feedback, unless on average nothing is lost."""
        return Forgetful() if self.unbiased else Residual()

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:
        """Return k values, and the step."""
        return count(n_elements, self.density, self.k) * value_bytes + 4

    def exchange(self, vector: Vector, step: int, memory: Memory) -> Exchange:  # noqa: ARG002
        """Sum the drawn values; that all are in the same step is known then."""
        own = self.encode(vector, step=step)
        total = yield own.parts[0]
        return self.decode(Compressed(own.n_elements, own.dtype, (total, own.parts[1]))), self.decode(own)

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


MAX_ELEMENTS = 2 ** (8 * INDEX_BYTES)


def share(density: float, k: int | None) -> None:
    """Refuse what is no share of a gradient, and no number of its elements.

    Raises
    ------
    InputError
        If the density is not above 0 and at most 1, or k is below 1.
    """
    if not 0 < density <= 1:
        raise InputError(f"density must be above 0 and at most 1, got {density}")
    if k is not None and k < 1:
        raise InputError(f"k must be at least 1, got k={k}")


def count(n_elements: int, density: float, k: int | None) -> int:
    """Return how many elements are kept: k where that is given, else the share, and one at least.

    Parameters
    ----------
    n_elements : int
        Of the gradient.
    density : float
        Share to keep.
    k : int, optional
        Number to keep, in place of the share.

    Raises
    ------
    InputError
        If there are not so many.
    """
    if k is not None and k > n_elements:
        raise InputError(f"a gradient of {n_elements} elements has no {k} to keep: k must be 1..{n_elements}")
    return max(1, round(density * n_elements)) if k is None else k


def largest(vector: Vector, k: int) -> NDArray[np.int64]:
    """Return the indices of the k elements of largest magnitude, rising; of equals, those of lower index.

    Parameters
    ----------
    vector : [n]
        Finite.
    k : int
        1..n.
    """
    magnitude = np.abs(vector)
    least = np.partition(magnitude, len(vector) - k)[len(vector) - k]
    chosen = magnitude > least
    missing = k - int(np.count_nonzero(chosen))
    chosen[np.flatnonzero(magnitude == least)[:missing]] = True
    return np.flatnonzero(chosen)


def write_list(vector: Vector, index: NDArray[np.int64]) -> Compressed:
    """Write the elements at some indices.

    Raises
    ------
    InputError
        If indices do not fit four bytes.
    """
    if len(vector) > MAX_ELEMENTS:
        raise InputError(f"indices of {INDEX_BYTES} bytes reach {MAX_ELEMENTS} elements, got {len(vector)}")
    return Compressed(len(vector), vector.dtype, (index.astype("<u4"), vector[index]))


def read_list(message: Compressed) -> Vector:
    """Return the vector in which all other elements are zero."""
    out = np.zeros(message.n_elements, message.dtype)
    out[message.parts[0]] = message.parts[1]
    return out


def columns_of(n_elements: int, columns: int | None) -> int:
    """Return the number of columns: as given, or such that the matrix is square, or nearly.

    Raises
    ------
    InputError
        If there are more columns than elements, or less than one.
    """
    if columns is None:
        return math.isqrt(n_elements - 1) + 1
    if not 1 <= columns <= n_elements:
        raise InputError(f"a gradient of {n_elements} elements has 1..{n_elements} columns, got columns={columns}")
    return columns


def as_matrix(vector: Vector, columns: int) -> Vector:
    """Return the matrix, [rows, columns]; where the last row is not full, it ends with zeros."""
    rows = -(-len(vector) // columns)
    if rows * columns == len(vector):
        return vector.reshape(rows, columns)
    out = np.zeros(rows * columns, vector.dtype)
    out[: len(vector)] = vector
    return out.reshape(rows, columns)
