"""Bitmaps of real numbers: one pass over a gradient, at the speed of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

# Blocks in one word of a bitmap.
WORD = 64

_PART = 2**20  # so that a mapped file of many gigabytes needs little memory
_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def bitmap_words(gradient: NDArray[Any], block: int, threshold: float, whose: str) -> NDArray[np.uint64]:
    """Return one bit per block, set where some ``|x| > threshold``.

    Parameters
    ----------
    gradient : [n_elements]
        Floats of 16, 32 or 64 bits, or integers.
    block : int
        Elements of a block.
    threshold : float
        Largest magnitude that counts as zero, at least 0; 0 for integers.
    whose : str
        Owner named in messages: ``"rank 3"``.

    Returns
    -------
    uint64[ceil(n_blocks / 64)]

    Raises
    ------
    InputError
        If a value is NaN or infinite, the threshold is negative or not finite, or these are no such numbers.
    """
    bits, magnitude, infinity = _as_bits(gradient, whose)
    words, largest = _mark(bits, block, magnitude, _limit(gradient.dtype, threshold))
    if largest >= infinity:
        refuse_non_finite(gradient, whose)
    return words


def _mark(bits: NDArray[Any], block: int, magnitude: int, limit: int) -> tuple[NDArray[np.uint64], int]:
    """Return the bitmap, and the largest pattern; short blocks by way of a bitmap of elements."""
    from .bitmap_kernel import fold_elements, mark_blocks, mark_elements

    masks = np.uint64(magnitude), np.uint64(limit)
    n_blocks = -(-len(bits) // block)
    words = np.zeros(-(-n_blocks // WORD), np.uint64)
    if block >= WORD:
        return words, int(mark_blocks(bits, block, *masks, words))
    elements = words if block == 1 else np.zeros(-(-len(bits) // WORD), np.uint64)
    largest = int(mark_elements(bits, *masks, elements))
    if block > 1:
        fold_elements(elements, block, n_blocks, words)
    return words, largest


def refuse_non_finite(values: NDArray[Any], whose: str) -> None:
    """Raise if a value is NaN or infinite.

    Raises
    ------
    InputError
        Naming the first index, and its value.
    """
    flat = values.reshape(-1)
    for begin in range(0, len(flat), _PART):
        finite = np.isfinite(flat[begin : begin + _PART])
        if not finite.all():
            bad = begin + int(finite.argmin())
            raise InputError(f"{whose}: values must be finite, got {flat[bad]} at index {bad}")


def _as_bits(gradient: NDArray[Any], whose: str) -> tuple[NDArray[Any], int, int]:
    """Return the same memory as unsigned integers, the bits that make the magnitude, and the pattern of infinity."""
    dtype = gradient.dtype
    if dtype.kind not in "iuf" or dtype.itemsize not in (1, *_BITS) or not dtype.isnative:
        raise InputError(f"{whose}: gradients must be float16, float32, float64 or integers, got {dtype}")
    bits = np.ascontiguousarray(gradient).view(_BITS.get(dtype.itemsize, np.uint8))
    every = 2 ** (8 * dtype.itemsize) - 1
    if dtype.kind != "f":
        return bits, every, every + 1  # no pattern of an integer is that large
    return bits, every >> 1, int(np.array(np.inf, dtype).view(bits.dtype))


def _limit(dtype: np.dtype[Any], threshold: float) -> int:
    """Return the pattern that a magnitude must exceed: patterns of positive floats rise as the floats do."""
    if not 0 <= threshold < np.inf:
        raise InputError(f"a threshold must be at least 0 and finite, got {threshold}")
    if dtype.kind != "f":
        if threshold:
            raise InputError(f"integers are non-zero or not: their threshold must be 0, got {threshold}")
        return 0
    largest = float(np.finfo(dtype).max)
    rounded = np.array(min(threshold, largest), dtype)
    if float(rounded) > threshold:  # else a number between the threshold and its rounding would be lost
        rounded = np.nextafter(rounded, np.array(0, dtype))
    return int(rounded.view(_BITS[dtype.itemsize]))
