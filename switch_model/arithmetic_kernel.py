"""What registers do with values: integers that wrap around or saturate, and floats.

Compiled, integers wrap silently. Uncompiled, NumPy warns when they do; callers say that they mean it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount

Numbers = NDArray[np.int32] | NDArray[np.float32]
Sums = NDArray[np.int32] | NDArray[np.int64] | NDArray[np.float64]
INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)


@njit_norefcount
def overwrite(register: Numbers, values: Numbers) -> None:
    """Let a register hold a packet's values; what a short packet lacks becomes zero.

    Parameters
    ----------
    register : int32[k] or float32[k]
        Changed in place.
    values : same type, [at most k]
    """
    n = len(values)
    for i in range(n):
        register[i] = values[i]
    for i in range(n, len(register)):
        register[i] = 0


@njit_norefcount
def add(register: Numbers, values: Numbers) -> None:
    """Add values: int32 wraps around as a switch's adder does, float32 rounds each sum.

    Parameters
    ----------
    register : int32[k] or float32[k]
        Changed in place.
    values : same type, [at most k]
    """
    for i in range(len(values)):
        register[i] += values[i]


@njit_norefcount
def add_saturating(register: NDArray[np.int32], values: NDArray[np.int32]) -> None:
    """Add values; a sum that does not fit becomes the nearest int32, as in ATP's registers.

    Parameters
    ----------
    register : int32[k]
        Changed in place.
    values : int32[at most k]
    """
    for i in range(len(values)):
        total = int(np.int64(register[i]) + np.int64(values[i]))
        register[i] = min(max(total, INT32_MIN), INT32_MAX)


@njit_norefcount
def round_to_bfloat16(bits: NDArray[np.uint32]) -> None:
    """Round float32 to the nearest bfloat16, ties to even, which keeps the upper half of the bits.

    Parameters
    ----------
    bits : uint32[k]
        The float32 values' bits; changed in place. NaN stays NaN.
    """
    for i in range(len(bits)):
        word = bits[i]
        if word & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000):
            bits[i] = (word | np.uint32(0x00400000)) & np.uint32(0xFFFF0000)
        else:
            odd = (word >> np.uint32(16)) & np.uint32(1)
            bits[i] = (word + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)


@njit_norefcount
def add_blocks(total: Sums, values: Numbers, starts: NDArray[np.int64], length: int) -> None:
    """Add one block of every worker to `total`, four workers at a time, in the order of the workers.

    Parameters
    ----------
    total : int32[k], int64[k] or float64[k]
        Changed in place; its type decides how exact the sum is.
    values : int32[n] or float32[n]
        Array of all blocks.
    starts : int64[n_workers]
        First element of each worker's block.
    length : int
        Elements of the block.
    """
    w = 0
    while w + 4 <= len(starts):
        a, b = values[starts[w] : starts[w] + length], values[starts[w + 1] : starts[w + 1] + length]
        c, d = values[starts[w + 2] : starts[w + 2] + length], values[starts[w + 3] : starts[w + 3] + length]
        for i in range(length):
            total[i] = total[i] + a[i] + b[i] + c[i] + d[i]
        w += 4
    while w < len(starts):
        a = values[starts[w] : starts[w] + length]
        for i in range(length):
            total[i] += a[i]
        w += 1
