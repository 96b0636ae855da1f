"""Kernels that find the blocks that are not all zero, at the speed of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..jit import kernel


@kernel
def mark_blocks(
    bits: NDArray[Any], block: int, magnitude: np.uint64, limit: np.uint64, words: NDArray[np.uint64]
) -> np.uint64:
    """Set the bit of every block in which some magnitude exceeds the limit; for blocks that are not short.

    Parameters
    ----------
    bits : uint[n]
        Patterns of the elements.
    block : int
        Elements of a block.
    magnitude : uint64
        Mask of the bits without the sign.
    limit : uint64
        Pattern that must be exceeded.
    words : uint64[ceil(n_blocks / 64)]
        Written here.

    Returns
    -------
    uint64
        The largest pattern of a magnitude: NaN and infinity are above all numbers.
    """
    n = bits.shape[0]
    n_blocks = (n + block - 1) // block
    mask, least = bits.dtype.type(magnitude), bits.dtype.type(limit)
    largest = bits.dtype.type(0)
    for w in range(words.shape[0]):
        word = np.uint64(0)
        for b in range(64 * w, min(64 * w + 64, n_blocks)):
            most = bits.dtype.type(0)
            part = bits[b * block : min(b * block + block, n)]
            for i in range(part.shape[0]):
                most = max(most, bits.dtype.type(part[i] & mask))  # of the array's own width: that vectorises
            largest = max(largest, most)
            if most > least:
                word |= np.uint64(1) << np.uint64(b - 64 * w)
        words[w] = word
    return np.uint64(largest)


@kernel
def mark_elements(bits: NDArray[Any], magnitude: np.uint64, limit: np.uint64, words: NDArray[np.uint64]) -> np.uint64:
    """Set the bit of every element whose magnitude exceeds the limit; see :func:`mark_blocks`."""
    n = bits.shape[0]
    mask, least = bits.dtype.type(magnitude), bits.dtype.type(limit)
    largest = bits.dtype.type(0)
    for w in range(n // 64):
        word = np.uint64(0)
        for j in range(64):  # a fixed number of turns, which the compiler unrolls
            most = bits.dtype.type(bits[64 * w + j] & mask)
            largest = max(largest, most)
            word |= np.uint64(most > least) << np.uint64(j)
        words[w] = word
    for i in range(n // 64 * 64, n):
        most = bits.dtype.type(bits[i] & mask)
        largest = max(largest, most)
        words[i // 64] |= np.uint64(most > least) << np.uint64(i % 64)
    return np.uint64(largest)


@kernel
def fold_elements(elements: NDArray[np.uint64], block: int, n_blocks: int, words: NDArray[np.uint64]) -> None:
    """Set the bit of every block that has a marked element.

    Parameters
    ----------
    elements : uint64[ceil(n / 64)]
        One bit per element.
    block : int
        Elements of a block, at most 63.
    n_blocks : int
        Blocks.
    words : uint64[ceil(n_blocks / 64)]
        Written here.
    """
    mask = (np.uint64(1) << np.uint64(block)) - np.uint64(1)
    for w in range(words.shape[0]):
        word = np.uint64(0)
        for b in range(64 * w, min(64 * w + 64, n_blocks)):
            j, shift = (b * block) // 64, np.uint64((b * block) % 64)
            part = elements[j] >> shift
            if shift and j + 1 < elements.shape[0]:
                part |= elements[j + 1] << (np.uint64(64) - shift)
            word |= np.uint64((part & mask) != 0) << np.uint64(b - 64 * w)
        words[w] = word
