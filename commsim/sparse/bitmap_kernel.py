"""Kernels of bitmaps: find the blocks that are not all zero at the speed of memory, and cut bitmaps into chunks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, long_loops


@long_loops
@kernel
def mark_blocks(
    bits: NDArray[np.unsignedinteger], block: int, magnitude: np.uint64, limit: np.uint64, words: NDArray[np.uint64]
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


@long_loops
@kernel
def mark_elements(
    bits: NDArray[np.unsignedinteger], magnitude: np.uint64, limit: np.uint64, words: NDArray[np.uint64]
) -> np.uint64:
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
    words: NDArray[np.uint64], class_of: NDArray[np.int32], following: NDArray[np.int64], out: NDArray[np.uint64]
) -> None:
    """Put every rank's bits in the order of classes; those of a class keep their order.

    Parameters
    ----------
    words : uint64[n_ranks, n]
        Bitmaps.
    class_of : int32[n_blocks]
        Class of each block.
    following : int64[n_classes]
        Bit at which a class goes on in `out`, which is moved on.
    out : uint64[n_ranks, m]
        Written here. Zeros at the start.
    """
    place = np.empty(class_of.shape[0], np.int64)
    for b in range(class_of.shape[0]):
        place[b] = following[class_of[b]]
        following[class_of[b]] += 1
    for rank in range(words.shape[0]):
        for w in range(words.shape[1]):
            word = words[rank, w]
            b = 64 * w
            while word:
                while not word & np.uint64(255):
                    word >>= np.uint64(8)
                    b += 8
                if word & np.uint64(1):
                    out[rank, place[b] // 64] |= np.uint64(1) << np.uint64(place[b] % 64)
                word >>= np.uint64(1)
                b += 1
