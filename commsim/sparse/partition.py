"""Which blocks make a chunk: equal ranges, ranges between bounds such as balanced ones, or classes of a hash."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.layouts import chunk_bounds
from commsim.core.value import Value

from .long_occupancy import AnyOccupancy, pieces
from .occupancy import unpacked

# Blocks that are hashed at once.
PIECE = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Partition(Value):
    """Blocks of a tensor, cut into chunks.

    Parameters
    ----------
    n_elements, block, n_chunks : int
        Elements of the tensor and of a block; pieces.
    hashed : bool
        Chunk c is the blocks whose hash is c, in rising order, in place of an equal range. Where non-zero blocks crowd
        together, as rows of an embedding do, hashed chunks still get equal parts of them.
    bounds : tuple of int, optional
        Chunk c is the blocks ``bounds[c] .. bounds[c + 1] - 1``, in place of an equal range.

    Raises
    ------
    InputError
        If the bounds do not run from 0 to the number of blocks without falling, one more of them than chunks.

    References
    ----------
    Wang et al. (ZEN), OSDI 2025: balanced parallelism. The hash is Steele's mixing function of SplitMix64.
    """

    n_elements: int
    block: int
    n_chunks: int
    hashed: bool = False
    bounds: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.bounds is None:
            return
        ends = (self.bounds[0], self.bounds[-1]) if len(self.bounds) == self.n_chunks + 1 else ()
        if self.hashed or ends != (0, self.n_blocks) or (np.diff(self.bounds) < 0).any():
            raise InputError(
                f"{self.n_chunks} chunks that are ranges of {self.n_blocks} blocks need {self.n_chunks + 1} bounds "
                f"that rise from 0 to {self.n_blocks}, got {self.bounds}{' of hashed chunks' if self.hashed else ''}"
            )

    @property
    def n_blocks(self) -> int:
        """Blocks of the tensor."""
        return -(-self.n_elements // self.block)

    def ranges(self) -> NDArray[np.int64]:
        """Return the first block of each chunk that is a range, and the end: int64[n_chunks + 1]."""
        return chunk_bounds(self.n_blocks, self.n_chunks) if self.bounds is None else np.array(self.bounds, np.int64)

    def chunk_of_blocks(self, blocks: range | None = None) -> NDArray[np.int32]:
        """Return the chunk of each block, or of those in a range of them: int32[n_blocks]."""
        blocks = range(self.n_blocks) if blocks is None else blocks
        if self.hashed:
            chunks = np.empty(len(blocks), np.int32)
            for at in range(0, len(blocks), PIECE):
                hashes = _mixed(min(PIECE, len(blocks) - at), blocks.start + at)
                chunks[at : at + PIECE] = hashes % np.uint64(self.n_chunks)
            return chunks
        inside = np.clip(self.ranges(), blocks.start, blocks.stop)
        return np.repeat(np.arange(self.n_chunks, dtype=np.int32), np.diff(inside))

    def sizes(self) -> NDArray[np.int64]:
        """Return the blocks of each chunk, int64[n_chunks]."""
        if not self.hashed:
            return np.diff(self.ranges())
        starts = range(0, self.n_blocks, PIECE)  # no table of all blocks
        pieces = (self.chunk_of_blocks(range(at, min(at + PIECE, self.n_blocks))) for at in starts)
        return sum((np.bincount(piece, minlength=self.n_chunks) for piece in pieces), np.zeros(self.n_chunks, np.int64))

    def element_sizes(self) -> NDArray[np.int64]:
        """Return the elements of each chunk, int64[n_chunks]; the last block of the tensor may be short."""
        out = self.sizes() * self.block
        out[self.chunk_of_last()] -= self.n_blocks * self.block - self.n_elements
        return out

    def chunk_of_last(self) -> int:
        """Return the chunk that the tensor's last block is in; it is the chunk's last block too."""
        if self.hashed:
            return int(_mixed(1, self.n_blocks - 1)[0] % np.uint64(self.n_chunks))
        return int(np.searchsorted(self.ranges(), self.n_blocks - 1, side="right")) - 1


def _mixed(n: int, first: int = 0) -> NDArray[np.uint64]:
    """Hash of the numbers first, first + 1, ...: unsigned arithmetic that wraps around."""
    x = np.arange(first + 1, first + n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def balanced_bounds(occupancy: AnyOccupancy, n_chunks: int) -> tuple[int, ...]:
    """Cut a tensor where the ranks, on average, cut it to have equal numbers of their own blocks in every range.

    Parameters
    ----------
    occupancy : Occupancy or LongOccupancy
        Non-zero blocks of each rank. A rank without any has no say.
    n_chunks : int
        Ranges.

    Returns
    -------
    tuple of int
        n_chunks + 1 bounds: range c is the blocks ``bounds[c] .. bounds[c + 1] - 1``. Where all ranks have the same k
        blocks, each range has k / n_chunks of them; the mean of bounds is not the bound of the mean, so that ranges
        are the less equal the more the ranks differ.

    Raises
    ------
    InputError
        Without a chunk.

    References
    ----------
    Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning" (Ok-Topk), PPoPP 2022: every worker
    finds the bounds that split its own list evenly, and all take the mean of these.
    """
    if n_chunks < 1:
        raise InputError(f"ranges need at least 1 chunk, got n_chunks={n_chunks}")
    counts = occupancy.counts
    # A bound is the block after so many of a rank's own.
    before = np.arange(1, n_chunks) * counts[:, np.newaxis] // n_chunks
    total, passed = np.zeros(n_chunks - 1, np.int64), np.zeros(len(counts), np.int64)
    for first, stop, words in pieces(occupancy):
        for rank, own in enumerate(words):
            index = np.flatnonzero(unpacked(own, stop - first))
            here = before[rank] - passed[rank]
            inside = (here >= 0) & (here < len(index))
            total[inside] += first + index[here[inside]]
            passed[rank] += len(index)
    inner = np.rint(total / max(1, int((counts > 0).sum()))).astype(np.int64)
    return (0, *inner.tolist(), occupancy.n_blocks)
