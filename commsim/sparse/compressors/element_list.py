"""Elements of a gradient as a list with their places, and a gradient as a matrix."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.sparse.encodings import INDEX_BYTES

from .message import CompressedMessage, Vector

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
        Number of elements of the gradient.
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


def write_list(vector: Vector, index: NDArray[np.int64]) -> CompressedMessage:
    """Write the elements at some indices.

    Raises
    ------
    InputError
        If indices do not fit four bytes.
    """
    if len(vector) > MAX_ELEMENTS:
        raise InputError(f"indices of {INDEX_BYTES} bytes reach {MAX_ELEMENTS} elements, got {len(vector)}")
    return CompressedMessage(len(vector), vector.dtype, (index.astype("<u4"), vector[index]))


def read_list(message: CompressedMessage) -> Vector:
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
