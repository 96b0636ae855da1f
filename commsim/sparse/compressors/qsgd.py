"""QSGD: each element as one of a few levels of its bucket's norm, rounded at random so that the mean is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from . import compressor
from .element_list import as_matrix
from .message import CompressedMessage, Compressor, Forgetful, Vector, finite

# Elements of a bucket, as in SparCML.
BUCKET = 1024
WIDTHS = (2, 4, 8)
NORM_BYTES = 4


@dataclass(frozen=True, slots=True)
class Qsgd:
    """See :func:`qsgd`."""

    bits: int
    bucket: int
    seed: int

    @property
    def not_summed(self) -> str:
        """A level means something else at every rank."""
        return "every rank's buckets have norms of their own, so that its levels mean other numbers than another rank's"

    @property
    def n_levels(self) -> int:
        """Levels above 0: s; with a sign and 0 there are 2 s + 1."""
        return (1 << (self.bits - 1)) - 1

    def encode(self, vector: Vector, rank: int = 0, step: int = 0) -> CompressedMessage:
        """Round every element to a level at random."""
        vector = finite(vector)
        matrix = as_matrix(vector, min(self.bucket, len(vector))).astype(np.float64)
        norm = self._norms(matrix)
        scaled = np.abs(matrix) * np.divide(self.n_levels, norm, out=np.zeros(len(norm)), where=norm > 0)[:, np.newaxis]
        level = np.floor(scaled)
        level += np.random.default_rng([self.seed, rank, step]).random(level.shape) < scaled - level
        level = np.minimum(level, self.n_levels)  # which rounding may have passed
        codes = (np.copysign(level, matrix) + self.n_levels).astype(np.uint8).ravel()[: len(vector)]
        return CompressedMessage(len(vector), vector.dtype, (norm.astype("<f4"), packed(codes, self.bits)))

    def decode(self, message: CompressedMessage) -> Vector:
        """Return each level's share of the norm."""
        norm, words = message.parts
        level = unpacked(words, self.bits, message.n_elements).astype(np.int16) - self.n_levels
        matrix = (
            as_matrix(level, min(self.bucket, message.n_elements)) * (norm.astype(np.float64) / self.n_levels)[:, None]
        )
        return np.asarray(matrix.ravel()[: message.n_elements].astype(message.dtype))

    def memory(self) -> Forgetful:
        """Return no memory: the mean is right."""
        return Forgetful()

    def message_bytes(self, n_elements: int, value_bytes: int = 4) -> int:  # noqa: ARG002
        """Return the levels, and a norm for each bucket."""
        return -(-n_elements * self.bits // 8) - NORM_BYTES * (-n_elements // min(self.bucket, n_elements))

    def _norms(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the buckets' norms as numbers of 4 bytes, rounded up: no element may be above the highest level."""
        exact = np.linalg.norm(matrix, axis=1)
        with np.errstate(over="ignore"):
            norm = exact.astype(np.float32)
        norm = np.where(norm < exact, np.nextafter(norm, np.float32(np.inf)), norm)
        return finite(norm, "the norm of a bucket").astype(np.float64)


def packed(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Pack numbers of 2, 4 or 8 bits, the first in the lowest bits of a byte."""
    each = 8 // bits
    places = as_matrix(codes, each)
    out = np.zeros(len(places), np.uint8)
    for i in range(each):
        out |= places[:, i] << np.uint8(bits * i)
    return out


def unpacked(words: NDArray[Any], bits: int, n: int) -> NDArray[np.uint8]:
    """Return the first n numbers of what :func:`packed` made."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.asarray(((words[:, np.newaxis] >> shifts) & np.uint8(2**bits - 1)).ravel()[:n])


@compressor
def qsgd(bits: int = 4, bucket: int = BUCKET, seed: int = 0) -> Compressor:
    """Round elements at random to 2 s + 1 levels of their bucket's norm: n bits/8 + 4 n/bucket bytes, unbiased.

    Parameters
    ----------
    bits : int
        Bits of an element: 2, 4 or 8, for s = 2^(bits - 1) - 1 levels of each sign.
    bucket : int
        Elements that share a norm.
    seed : int
        Step t of rank r draws from ``numpy.random.default_rng([seed, r, t])``.

    Returns
    -------
    Compressor
        The mean over the draws of what is decoded is the gradient, up to its own rounding. Levels have a fixed width;
        the paper's variable one, which pays where most levels are 0, is not written.

    Raises
    ------
    InputError
        If the width is none of these, the bucket is empty, or the seed is negative.

    References
    ----------
    Alistarh, Grubic, Li, Tomioka and Vojnovic, "QSGD: Communication-efficient SGD via gradient quantization and
    encoding", NeurIPS 2017. Renggli et al. (SparCML), SC 2019: buckets of 1024 and 2, 4 or 8 bits.
    """
    if bits not in WIDTHS or bucket < 1 or seed < 0:
        raise InputError(
            f"qsgd needs bits of {', '.join(map(str, WIDTHS))}, a bucket of at least 1 and a seed of at least 0, got "
            f"bits={bits}, bucket={bucket}, seed={seed}"
        )
    return Qsgd(bits, bucket, seed)
