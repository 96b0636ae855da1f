"""Kernels that cut bitmaps into chunks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..jit import kernel


@kernel
def pack_ranges(words: NDArray[np.uint64], bounds: NDArray[np.int64], out: NDArray[np.uint64]) -> None:
    """Cut every rank's bitmap into ranges of bits, each moved to the start of a row.

    Parameters
    ----------
    words : uint64[n_ranks, n]
        Bitmaps.
    bounds : int64[n_chunks + 1]
        First bit of each chunk.
    out : uint64[n_ranks * n_chunks, m]
        Written here: row ``rank * n_chunks + chunk``. Zeros at the start.
    """
    n_chunks = bounds.shape[0] - 1
    n = words.shape[1]
    for rank in range(words.shape[0]):
        for c in range(n_chunks):
            n_bits = bounds[c + 1] - bounds[c]
            first, shift = bounds[c] // 64, np.uint64(bounds[c] % 64)
            row = out[rank * n_chunks + c]
            for j in range((n_bits + 63) // 64):
                word = words[rank, first + j] >> shift
                if shift and first + j + 1 < n:
                    word |= words[rank, first + j + 1] << (np.uint64(64) - shift)
                row[j] = word
            if n_bits % 64:
                row[n_bits // 64] &= (np.uint64(1) << np.uint64(n_bits % 64)) - np.uint64(1)


@kernel
def pack_classes(
    words: NDArray[np.uint64], chunk_of: NDArray[np.int32], n_chunks: int, out: NDArray[np.uint64]
) -> None:
    """Cut every rank's bitmap into the classes of a hash; the blocks of a class keep their order.

    Parameters
    ----------
    words : uint64[n_ranks, n]
        Bitmaps.
    chunk_of : int32[n_blocks]
        Class of each block.
    n_chunks : int
        Classes.
    out : uint64[n_ranks * n_chunks, m]
        Written here: row ``rank * n_chunks + class``. Zeros at the start.
    """
    place = np.empty(chunk_of.shape[0], np.int32)
    filled = np.zeros(n_chunks, np.int32)
    for b in range(chunk_of.shape[0]):
        place[b] = filled[chunk_of[b]]
        filled[chunk_of[b]] += 1
    for rank in range(words.shape[0]):
        for w in range(words.shape[1]):
            word = words[rank, w]
            b = 64 * w
            while word:
                while not word & np.uint64(255):
                    word >>= np.uint64(8)
                    b += 8
                if word & np.uint64(1):
                    row = out[rank * n_chunks + chunk_of[b]]
                    row[place[b] // 64] |= np.uint64(1) << np.uint64(place[b] % 64)
                word >>= np.uint64(1)
                b += 1
