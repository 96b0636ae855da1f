"""1-bit SGD: signs of all elements, and two scales for each column of the gradient's matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError

from . import compressor
from .element_list import as_matrix, columns_of
from .message import CompressedMessage, Compressor, Residual, Vector, finite
from .signs import SCALE_BYTES


@dataclass(frozen=True, slots=True)
class OneBit:
    """See :func:`one_bit`."""

    columns: int | None

    @property
    def not_summed(self) -> str:
        """A bit means something else at every rank."""
        return "every rank has different scales, so equal bits mean different numbers"

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> CompressedMessage:  # noqa: ARG002
        """Take the signs, and of each column the mean of what is not negative, and of what is."""
        vector = finite(vector)
        matrix = as_matrix(vector, columns_of(len(vector), self.columns))
        negative = matrix < 0
        n_below = negative.sum(axis=0)
        full, rest = divmod(len(vector), matrix.shape[1])
        n_above = full + (np.arange(matrix.shape[1]) < rest) - n_below  # the zeros that fill the last row are not seen
        with np.errstate(over="ignore", invalid="ignore"):
            below = np.where(negative, matrix, 0).sum(axis=0, dtype=np.float64)
            above = np.where(negative, 0, matrix).sum(axis=0, dtype=np.float64)
            scales = np.stack((above / np.maximum(1, n_above), below / np.maximum(1, n_below))).astype("<f4")
        finite(scales.ravel(), "the scales of a gradient")
        return CompressedMessage(len(vector), vector.dtype, (np.packbits(vector < 0), scales))

    def decode(self, message: CompressedMessage) -> Vector:
        """Return each element's mean."""
        bits, scales = message.parts
        negative = as_matrix(np.unpackbits(bits, count=message.n_elements), scales.shape[1])
        values = np.where(negative, scales[1], scales[0]).ravel()[: message.n_elements]
        return np.asarray(values.astype(message.dtype))

    def memory(self) -> Residual:
        """Return error feedback."""
        return Residual()

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:  # noqa: ARG002
        """Return a bit for each element, and two scales for each column."""
        return -(-n_elements // 8) + 2 * SCALE_BYTES * columns_of(n_elements, self.columns)


@compressor
def one_bit(columns: int | None = None) -> Compressor:
    """Send the sign of every element and two means for every column: n/8 + 8 columns bytes, with error feedback.

    Parameters
    ----------
    columns : int, optional
        Columns of the gradient's matrix, which is stored row after row; by default about the square root of its size.

    Returns
    -------
    Compressor
        An element is decoded as the mean of those of its sign in its column, which is the best that two values can do.

    Raises
    ------
    InputError
        Without a column.

    References
    ----------
    Seide, Fu, Droppo, Li and Yu, "1-bit stochastic gradient descent and its application to data-parallel distributed
    training of speech DNNs", Interspeech 2014.
    """
    if columns is not None and columns < 1:
        raise InputError(f"columns must be at least 1, got {columns}")
    return OneBit(columns)
