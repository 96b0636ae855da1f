"""PowerSGD: the gradient's matrix as a product of two thin ones, found by one step of a power iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError

from . import compressor
from .element_list import as_matrix, columns_of
from .message import CompressedMessage, Compressor, Exchange, GradientMemory, Residual, Vector, finite


class WarmResidual(Residual):
    """Error feedback, and the right factor of the last step, from which the next one starts.

    Attributes
    ----------
    factor : [columns, rank] or None
        The same at all ranks, since it is a sum over them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.factor: Vector | None = None


@dataclass(frozen=True, slots=True)
class PowerSgd:
    """See :func:`power_sgd`."""

    rank: int
    columns: int | None
    seed: int

    @property
    def not_summed(self) -> None:
        """Both factors are linear in the gradient, given the other."""

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> CompressedMessage:  # noqa: ARG002 - alike at all ranks
        """Factor the gradient of a single rank, from a drawn start."""
        vector = finite(vector)
        matrix = self._matrix(vector)
        left = orthonormal(product(matrix, self._start(matrix.shape[1], vector.dtype)))
        return CompressedMessage(len(vector), vector.dtype, (left, product(matrix.T, left)))

    def decode(self, message: CompressedMessage) -> Vector:
        """Return the product of the factors."""
        left, right = message.parts
        return np.asarray((left @ right.T).ravel()[: message.n_elements])

    def memory(self) -> WarmResidual:
        """Return error feedback with a warm start."""
        return WarmResidual()

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:
        """Return both factors."""
        return sum(self.exchange_bytes(n_elements, value_bytes))

    def exchange(self, vector: Vector, step: int, memory: GradientMemory) -> Exchange:  # noqa: ARG002
        """Sum left factors, make the sum orthonormal, and sum right factors."""
        vector = finite(vector)
        matrix, factor = self._matrix(vector), getattr(memory, "factor", None)
        start = self._start(matrix.shape[1], vector.dtype) if factor is None else factor
        left = yield product(matrix, start).ravel()
        left = orthonormal(left.reshape(-1, self.rank))
        own = product(matrix.T, left)
        total = (yield own.ravel()).reshape(-1, self.rank)
        if isinstance(memory, WarmResidual):
            memory.factor = total
        n = len(vector)
        return (left @ total.T).ravel()[:n], (left @ own.T).ravel()[:n]

    def exchange_bytes(self, n_elements: int, value_bytes: int = 4) -> tuple[int, ...]:
        """Return the left and the right factor.

        Raises
        ------
        InputError
            If they are no smaller than the gradient.
        """
        columns = columns_of(n_elements, self.columns)
        rows = -(-n_elements // columns)
        if self.rank * (rows + columns) >= n_elements:
            raise InputError(
                f"power_sgd: factors of rank {self.rank} of a matrix of {rows} x {columns} are no smaller than the "
                f"gradient of {n_elements} elements; give a smaller rank, or other columns"
            )
        return rows * self.rank * value_bytes, columns * self.rank * value_bytes

    def _matrix(self, vector: Vector) -> Vector:
        self.exchange_bytes(len(vector))
        return as_matrix(vector, columns_of(len(vector), self.columns))

    def _start(self, columns: int, dtype: np.dtype[np.floating]) -> Vector:
        return np.random.default_rng(self.seed).standard_normal((columns, self.rank)).astype(dtype)


def product(a: Vector, b: Vector) -> Vector:
    """Return the product of two matrices.

    Raises
    ------
    InputError
        If it is too large for the kind of number.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        out = a @ b
    finite(out.ravel(), "a factor of a gradient")
    return out


def orthonormal(matrix: Vector) -> Vector:
    """Return an orthonormal basis of the columns."""
    return np.asarray(np.linalg.qr(matrix.astype(np.float64))[0].astype(matrix.dtype))


@compressor
def power_sgd(rank: int = 2, columns: int | None = None, seed: int = 0) -> Compressor:
    """Send two factors of the gradient's matrix: rank (rows + columns) v bytes in two sums, with error feedback.

    Parameters
    ----------
    rank : int
        Columns of the factors.
    columns : int, optional
        Columns of the gradient's matrix, which is stored row after row; by default about the square root of its size.
    seed : int
        Seed of the first start; each step starts from the last one's right factor.

    Returns
    -------
    Compressor
        Whose messages can be summed: with M the sum of the ranks' matrices, P = M Q is the sum of theirs, and so is
        M^T P for the P that has been made orthonormal after the first sum.

    Raises
    ------
    InputError
        If the rank or the number of columns is below 1, or the seed negative.

    References
    ----------
    Vogels, Karimireddy and Jaggi, "PowerSGD: Practical low-rank gradient compression for distributed optimization",
    NeurIPS 2019, algorithms 1 and 2.
    """
    if rank < 1 or (columns is not None and columns < 1) or seed < 0:
        raise InputError(
            f"power_sgd needs rank and columns of at least 1 and a seed of at least 0, got rank={rank}, "
            f"columns={columns}, seed={seed}"
        )
    return PowerSgd(rank, columns, seed)
