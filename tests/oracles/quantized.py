"""One worker's vector as the integers that it sends, and back: what the kernels of the live switch do, obviously."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from switch_model.quantize import block_exponents, scale


def quantize(values: ArrayLike, exponents: ArrayLike, block: int, n_workers: int) -> NDArray[np.int32]:
    """Round one worker's vector to the integers that it sends.

    Parameters
    ----------
    values : float32[n]
        One worker's vector.
    exponents : int32[ceil(n / block)]
        The largest over all workers.
    block, n_workers : int
        Elements of a block, and workers.

    Returns
    -------
    int32[n]

    Raises
    ------
    InputError
        If a value is not below 2**exponent, so that the sum could overflow.
    """
    values = np.asarray(values, np.float32)
    exponents = np.asarray(exponents, np.int32)
    if (block_exponents(values, block) > np.maximum(exponents, np.finfo(np.float32).minexp + 1)).any():
        raise InputError("a block is larger than its agreed exponent allows; the sum could overflow")
    return np.rint(values * np.repeat(scale(exponents, n_workers), block)[: len(values)]).astype(np.int32)


def dequantize(sums: ArrayLike, exponents: ArrayLike, block: int, n_workers: int) -> NDArray[np.float32]:
    """Turn summed integers back into floats; the result is within :func:`error_bound` of the exact sum.

    Parameters
    ----------
    sums : int32[n]
        Sum over the workers.
    exponents, block, n_workers
        Same as in :func:`quantize`.
    """
    sums = np.asarray(sums, np.int32)
    return (sums / np.repeat(scale(exponents, n_workers), block)[: len(sums)]).astype(np.float32)
