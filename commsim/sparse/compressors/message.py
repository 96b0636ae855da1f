"""The compressor, the message that it makes of a gradient, and what a rank remembers from one step to the next.

Memories: of nothing, and of what was left out (error feedback).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError

Vector: TypeAlias = NDArray[Any]
"""[n] floats."""

Exchange: TypeAlias = Generator[Vector, Vector, tuple[Vector, Vector]]
"""Yields what is to be summed over the ranks, is sent the sum; returns the decoded sum and this rank's part of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Compressed:
    """One message.

    Parameters
    ----------
    n_elements : int
        Of the gradient.
    dtype : dtype
        Of the gradient.
    parts : tuple of array
        What goes on the wire, as it goes there. Lengths and kinds of number are known at both ends, from the
        compressor and the two above, but for the length of a list that the data decides.
    """

    n_elements: int
    dtype: np.dtype[Any]
    parts: tuple[NDArray[Any], ...]

    @property
    def n_bytes(self) -> int:
        """Bytes on the wire."""
        return sum(part.nbytes for part in self.parts)

    @property
    def payload(self) -> bytes:
        """The message itself."""
        return b"".join(part.tobytes() for part in self.parts)


class Memory(Protocol):
    """What a rank keeps of the gradients that it has not sent."""

    def add(self, gradient: Vector) -> Vector:
        """Return what is to be compressed now: the gradient, and what was left before."""

    def keep(self, wanted: Vector, sent: Vector) -> None:
        """Remember what was to be compressed and is not in the message, given what the message decodes to."""


class Compressor(Protocol):
    """Makes messages of gradients; frozen."""

    @property
    def not_summed(self) -> str | None:
        """Why messages cannot be added on their way; None where they can, and :class:`Summed` holds."""

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> Compressed:
        """Return the message of a rank in a step; the same for the same of both.

        Raises
        ------
        InputError
            If a value is NaN or infinite, or the vector is too short for what is to be kept of it.
        """

    def decode(self, message: Compressed) -> Vector:
        """Return what a message says of the gradient, [n_elements]."""

    def memory(self) -> Memory:
        """Return the memory of one rank, before the first step."""

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:
        """Return the bytes of a message.

        Raises
        ------
        InputError
            If these depend on the data, or the gradient is too short.
        """


@runtime_checkable
class Summed(Protocol):
    """A compressor whose messages can be added on their way, by any all-reduce."""

    def exchange(self, vector: Vector, step: int, memory: Memory) -> Exchange:
        """Compress, have the ranks' messages summed, and decode the sum; perhaps several times."""

    def exchange_bytes(self, n_elements: int, value_bytes: int = 4) -> tuple[int, ...]:
        """Return the bytes that each rank puts into each of the sums."""


def finite(values: Any, what: str = "a gradient") -> Vector:
    """Return floats that are finite: NaN and infinity would vanish in a list, a sign or a level, and are refused.

    Raises
    ------
    InputError
        If this is no vector of floats, or a value is NaN or infinite.
    """
    vector = np.asarray(values)
    if vector.ndim != 1 or not vector.size or vector.dtype.kind != "f":
        raise InputError(f"{what} must be [n >= 1] floats, got {vector.dtype} of shape {vector.shape}")
    good = np.isfinite(vector)
    if not good.all():
        bad = int(good.argmin())
        raise InputError(f"{what} must be finite, got {vector[bad]} at index {bad}")
    return vector


class Forgetful:
    """Remembers nothing: what is not in a message is lost. For unbiased compressors, which lose nothing on average."""

    def add(self, gradient: Vector) -> Vector:
        """Return the gradient."""
        return gradient

    def keep(self, wanted: Vector, sent: Vector) -> None:
        """Forget."""


class Residual:
    """Error feedback: what was to be sent and was not is added to the next gradient.

    Nothing is lost: after any number of steps the sum of all gradients is that of all decoded messages, and the
    residual. Exactly, where additions are exact; else each step's two additions round once each.

    Attributes
    ----------
    residual : [n] or None
        What was left out; None before the first step.

    References
    ----------
    Seide et al., "1-bit stochastic gradient descent and its application to data-parallel distributed training of
    speech DNNs", Interspeech 2014. Stich, Cordonnier and Jaggi, "Sparsified SGD with memory", NeurIPS 2018.
    """

    def __init__(self) -> None:
        self.residual: Vector | None = None

    def add(self, gradient: Vector) -> Vector:
        """Return the gradient with the residual; what overflows is refused where it is compressed."""
        with np.errstate(over="ignore"):
            return gradient if self.residual is None else gradient + self.residual

    def keep(self, wanted: Vector, sent: Vector) -> None:
        """Remember the difference; what overflows is refused in the next step."""
        with np.errstate(over="ignore"):
            self.residual = wanted - sent
