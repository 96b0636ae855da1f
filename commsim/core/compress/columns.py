"""A gradient seen as a matrix, row after row."""

from __future__ import annotations

import math

import numpy as np

from ..errors import InputError
from .message import Vector


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
