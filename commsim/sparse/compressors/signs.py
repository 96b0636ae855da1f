"""Signs of all elements, and one scale: EFSignSGD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import compressor
from .message import CompressedMessage, Compressor, Residual, Vector, finite

SCALE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Sign:
    """See :func:`sign`."""

    @property
    def not_summed(self) -> str:
        """A sum needs more bits."""
        return (
            "a sum of p signs is one of p + 1 numbers and does not fit a bit, and a vote on the way would drop the "
            "minority, which no residual remembers"
        )

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> CompressedMessage:  # noqa: ARG002
        """Take the signs, and the mean magnitude."""
        vector = finite(vector)
        with np.errstate(over="ignore"):
            scale = np.abs(vector).mean(dtype=np.float64, keepdims=True).astype("<f4")
        return CompressedMessage(
            len(vector), vector.dtype, (np.packbits(vector < 0), finite(scale, "the scale of a gradient"))
        )

    def decode(self, message: CompressedMessage) -> Vector:
        """Return plus or minus the scale."""
        negative = np.unpackbits(message.parts[0], count=message.n_elements)
        scale = message.parts[1].astype(message.dtype)
        return np.concatenate((scale, -scale))[negative]

    def memory(self) -> Residual:
        """Return error feedback."""
        return Residual()

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:  # noqa: ARG002
        """Return a bit for each element, and the scale."""
        return -(-n_elements // 8) + SCALE_BYTES


@compressor
def sign() -> Compressor:
    """Send the sign of every element and the mean magnitude: n/8 + 4 bytes, with error feedback.

    Returns
    -------
    Compressor
        Zero counts as positive.

    References
    ----------
    Karimireddy, Rebjock, Stich and Jaggi, "Error feedback fixes SignSGD and other gradient compression schemes", ICML
    2019: EF-SignSGD.
    """
    return Sign()
