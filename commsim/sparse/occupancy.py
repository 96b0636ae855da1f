"""The occupancy: which blocks of a tensor are not all zero at each rank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.value import Value, freeze

from .bitmap import WORD, bitmap_words

# Words of each rank that are united at once.
PIECE = 2**16


@dataclass(frozen=True, slots=True, eq=False)
class Occupancy(Value):
    """Non-zero blocks of each rank's tensor, one bit each.

    Parameters
    ----------
    n_elements : int
        Elements of the tensor.
    block : int
        Elements of a block, the last one perhaps fewer; 1 tells of every element.
    words : uint64[n_ranks, ceil(n_blocks / 64)]
        Bit ``b % 64`` of word ``b // 64`` is set where block b is not all zero. Bits beyond the last block are 0.

    Raises
    ------
    InputError
        Without a rank, element or block, or if the number of words is not that of the blocks, or a bit beyond the last
        block is set.
    """

    n_elements: int
    block: int
    words: NDArray[np.uint64]

    def __post_init__(self) -> None:
        if self.n_elements < 1 or self.block < 1:
            raise InputError(
                f"an occupancy needs at least 1 element and blocks of at least 1, got n_elements={self.n_elements}, "
                f"block={self.block}"
            )
        words = self.words if _is_frozen(self.words) else freeze(self.words, np.uint64, name="words")
        object.__setattr__(self, "words", words)
        n_words = -(-self.n_blocks // WORD)
        if words.ndim != 2 or not len(words) or words.shape[1] != n_words:
            raise InputError(
                f"{self.n_blocks} blocks need words of the shape [n_ranks >= 1, {n_words}], got {words.shape}"
            )
        spare = self.n_blocks % WORD
        if spare and (words[:, -1] >> np.uint64(spare)).any():
            raise InputError(f"an occupancy of {self.n_blocks} blocks has a bit set beyond its last block")

    @classmethod
    def from_bitmap(cls, bitmap: ArrayLike, n_elements: int, block: int = 1) -> Occupancy:
        """Make an occupancy of one truth value per rank and block.

        Parameters
        ----------
        bitmap : bool[n_ranks, n_blocks]
            True (or 1) where a block is not all zero.
        n_elements, block : int
            Elements of the tensor, and of a block.

        Raises
        ------
        InputError
            If the shape is not that of the blocks, or something other than truth values, 0 and 1 is in it.
        """
        bits = np.asarray(bitmap)
        if n_elements < 1 or block < 1 or bits.ndim != 2 or bits.shape[1] != -(-n_elements // block):
            raise InputError(
                f"{n_elements} elements in blocks of {block} need a bitmap [n_ranks, n_blocks], got {bits.shape}"
            )
        if bits.dtype != np.bool_ and not np.isin(bits, (0, 1)).all():
            raise InputError("a bitmap holds truth values, or only 0 and 1")
        return cls(n_elements, block, packed(bits.astype(np.bool_)))

    @property
    def n_ranks(self) -> int:
        """Ranks."""
        return len(self.words)

    @property
    def n_blocks(self) -> int:
        """Blocks of the tensor."""
        return -(-self.n_elements // self.block)

    @property
    def bitmap(self) -> NDArray[np.bool_]:
        """Truth values, bool[n_ranks, n_blocks]: 8 times the size of the words."""
        return np.stack([self.bitmap_of(rank) for rank in range(self.n_ranks)])

    def bitmap_of(self, rank: int) -> NDArray[np.bool_]:
        """Return the truth values of one rank, bool[n_blocks]."""
        return unpacked(self.words[rank], self.n_blocks)

    def piece(self, first: int, stop: int) -> NDArray[np.uint64]:
        """Return the words of some blocks, of which the first is that of a word, and the last that of a word or of all.

        Returns
        -------
        uint64[n_ranks, ceil((stop - first) / 64)]
        """
        words = np.ascontiguousarray(self.words[:, first // WORD : -(-stop // WORD)])
        words.setflags(write=False)
        return words

    @property
    def counts(self) -> NDArray[np.int64]:
        """Non-zero blocks of each rank, int64[n_ranks]."""
        return np.array([np.bitwise_count(row).sum(dtype=np.int64) for row in self.words], np.int64)

    @property
    def density(self) -> NDArray[np.float64]:
        """Share of blocks that are not zero, float64[n_ranks]."""
        return self.counts / self.n_blocks

    @property
    def n_union(self) -> int:
        """Blocks that some rank has."""
        steps = range(0, self.words.shape[1], PIECE)
        united = (np.bitwise_or.reduce(self.words[:, at : at + PIECE], axis=0) for at in steps)
        return sum(int(np.bitwise_count(words).sum(dtype=np.int64)) for words in united)

    def union(self) -> Occupancy:
        """Return the occupancy of one rank that has every block that any rank has."""
        return Occupancy(self.n_elements, self.block, np.bitwise_or.reduce(self.words, axis=0)[np.newaxis])

    def first(self, n_ranks: int) -> Occupancy:
        """Return the occupancy of the first `n_ranks` ranks."""
        if not 1 <= n_ranks <= self.n_ranks:
            raise InputError(f"an occupancy of {self.n_ranks} ranks has no first {n_ranks}")
        return Occupancy(self.n_elements, self.block, self.words[:n_ranks])

    def elements(self) -> NDArray[np.int64]:
        """Return the elements in each rank's non-zero blocks, int64[n_ranks]; the last block may be short."""
        last = self.n_blocks - 1
        has_last = (self.words[:, last // WORD] >> np.uint64(last % WORD)) & np.uint64(1)
        return self.counts * self.block - has_last.astype(np.int64) * (self.n_blocks * self.block - self.n_elements)


def occupancy_of(gradients: ArrayLike | Iterable[ArrayLike], block: int = 1, threshold: float = 0.0) -> Occupancy:
    """Find the non-zero blocks of real gradients.

    Parameters
    ----------
    gradients : [n_ranks, n_elements], or one [n_elements] per rank
        float16, float32, float64 or integers. Read once each, so rows may be mapped files or made one at a time.
    block : int
        Elements of a block.
    threshold : float
        A block counts when some ``|x| > threshold``; only 0 for integers. Above 0 the rest is lost unless the caller
        keeps it.

    Raises
    ------
    InputError
        If a value is NaN or infinite, with its rank and index; or the ranks' lengths or kinds of number differ.

    References
    ----------
    Fei et al., "Efficient sparse collective communication and its application to accelerate distributed deep learning"
    (OmniReduce), SIGCOMM 2021: blocks, threshold and bitmap.
    """
    if block < 1:
        raise InputError(f"a block has at least 1 element, got block={block}")
    rows: list[NDArray[np.uint64]] = []
    kind: tuple[int, np.dtype[Any]] | None = None
    for rank, gradient in enumerate(gradients):  # type: ignore[arg-type]  # an array is its rows
        array: NDArray[Any] = np.asarray(gradient)
        if array.ndim != 1 or not array.size:
            raise InputError(f"rank {rank}: gradients must be one row of elements per rank, got shape {array.shape}")
        kind = kind or (len(array), array.dtype)
        if (len(array), array.dtype) != kind:
            raise InputError(f"rank {rank} has {len(array)} elements of {array.dtype}, rank 0 {kind[0]} of {kind[1]}")
        rows.append(bitmap_words(array, block, threshold, f"rank {rank}"))
    if kind is None:
        raise InputError("gradients must be those of at least 1 rank, got none")
    words = np.stack(rows)
    words.setflags(write=False)
    return Occupancy(kind[0], block, words)


def unpacked(words: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    """Return the first n bits of some words, bool[n]."""
    octets = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(octets, bitorder="little", count=n).view(np.bool_)


def packed(bitmap: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return the words of some rows of truth values, read-only."""
    octets = np.packbits(bitmap, axis=1, bitorder="little")
    padded = np.zeros((len(bitmap), -(-bitmap.shape[1] // WORD) * 8), np.uint8)
    padded[:, : octets.shape[1]] = octets
    words = padded.view("<u8").astype(np.uint64, copy=False)
    words.setflags(write=False)
    return words


def _is_frozen(words: Any) -> bool:
    """Whether these words are read-only for good, so that they need no copy: they may be hundreds of megabytes."""
    return isinstance(words, np.ndarray) and words.dtype == np.uint64 and not words.flags.writeable
