"""Fields of a frame, read from and written to a row of words; `frames` says where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount

LOW = 0xFFFFFFFF


@njit_norefcount
def swapped(word: Any) -> Any:
    """Turn a word from the wire's order of bytes into this machine's, or back."""
    x = np.uint32(word)
    return np.uint32(
        (x >> np.uint32(24))
        | ((x >> np.uint32(8)) & np.uint32(0xFF00))
        | ((x & np.uint32(0xFF00)) << np.uint32(8))
        | ((x & np.uint32(0xFF)) << np.uint32(24))
    )


@njit_norefcount
def type_and_size_of(words: Any, row: int) -> Any:
    """First byte of the frame in this row."""
    return (np.int64(words[row, 1]) >> 16) & 0xFF


@njit_norefcount
def job_of(words: Any, row: int) -> Any:
    """Job number, 0..255."""
    return np.int64(words[row, 1]) >> 24


@njit_norefcount
def tsi_of(words: Any, row: int) -> Any:
    """Which packet it is, 0..2**32 - 1."""
    return np.int64(swapped(words[row, 2]))


@njit_norefcount
def pool_index_of(words: Any, row: int) -> Any:
    """Version in bit 15, slot in the bits below."""
    word = np.int64(words[row, 3])
    return ((word & 0xFF) << 8) | ((word >> 8) & 0xFF)


@njit_norefcount
def exponent_of(words: Any, row: int, which: int) -> Any:
    """Exponent 0 or 1, -128..127."""
    byte = (np.int64(words[row, 3]) >> (16 + 8 * which)) & 0xFF
    return byte - 256 if byte > 127 else byte


@njit_norefcount
def write_exponents(words: Any, row: int, first: int, second: int) -> None:
    """Replace both exponents."""
    kept = np.int64(words[row, 3]) & 0xFFFF
    words[row, 3] = np.uint32(kept | ((first & 0xFF) << 16) | ((second & 0xFF) << 24))


@njit_norefcount
def write_header(words: Any, row: int, type_and_size: int, job: int, tsi: int, pool_index: int) -> None:
    """Write all fields but the exponents, which become 0."""
    words[row, 1] = np.uint32((type_and_size << 16) | (job << 24))
    words[row, 2] = swapped(np.uint32(tsi & LOW))
    words[row, 3] = np.uint32((pool_index >> 8) | ((pool_index & 0xFF) << 8))
