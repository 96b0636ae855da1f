"""Ranges of a tensor in which all ranks together have equal numbers of non-zero blocks, or nearly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .occupancy import Occupancy


def balanced_bounds(indices: Iterable[NDArray[np.int64]], n_blocks: int, n_chunks: int) -> tuple[int, ...]:
    """Cut a tensor where the ranks, on average, cut it to have equal numbers of their own blocks in every range.

    Parameters
    ----------
    indices : iterable of int64[k]
        For each rank its non-zero blocks, rising. A rank without any has no say.
    n_blocks, n_chunks : int
        Blocks of the tensor, and ranges.

    Returns
    -------
    tuple of int
        n_chunks + 1 bounds: range c is the blocks ``bounds[c] .. bounds[c + 1] - 1``. Where all ranks have the same k
        blocks, each range has k / n_chunks of them; the mean of bounds is not the bound of the mean, so that ranges
        are the less equal the more the ranks differ.

    Raises
    ------
    InputError
        If there is no block or chunk.

    References
    ----------
    Li and Hoefler, "Near-optimal sparse allreduce for distributed deep learning" (Ok-Topk), PPoPP 2022: every worker
    finds the bounds that split its own list evenly, and all take the mean of these.
    """
    if n_blocks < 1 or n_chunks < 1:
        raise InputError(f"ranges need at least 1 block and 1 chunk, got n_blocks={n_blocks}, n_chunks={n_chunks}")
    total, n_ranks = np.zeros(n_chunks - 1, np.int64), 0
    for index in indices:
        if len(index):
            total += index[np.arange(1, n_chunks) * len(index) // n_chunks]
            n_ranks += 1
    inner = np.rint(total / max(1, n_ranks)).astype(np.int64)
    return (0, *inner.tolist(), n_blocks)


def places(occupancy: Occupancy) -> Iterator[NDArray[np.int64]]:
    """Yield the non-zero blocks of each rank, rising."""
    for rank in range(occupancy.n_ranks):
        yield np.flatnonzero(occupancy.bitmap_of(rank))
