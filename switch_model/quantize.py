"""Floats as the integers that a switch can add: fixed point with one exponent per block, as SwitchML's workers do it.

A switch adds int32 and knows no floats. So the workers agree, per block, on the largest exponent among them and scale
by the same factor, chosen so that the sum over all of them cannot overflow.

References
----------
Sapio et al., "Scaling distributed machine learning with in-network aggregation", NSDI 2021, section 3.7 (SwitchML).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError

INT32_MAX = 2**31 - 1


def block_exponents(values: ArrayLike, block: int) -> NDArray[np.int32]:
    """Exponent of each block: the least e such that every value of the block is smaller than 2**e in magnitude.

    Parameters
    ----------
    values : float32[n]
        One worker's vector; the last block may be short.
    block : int
        Elements of a block, at least 1.

    Returns
    -------
    int32[ceil(n / block)]
        A block of zeros has the exponent of the smallest normal float32.

    Raises
    ------
    InputError
        If a value is NaN or infinite, which an integer could only hide, or the block is empty.
    """
    values = np.asarray(values, np.float32)
    if block < 1:
        raise InputError(f"a block has at least 1 element, got {block}")
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(f"element {bad} is {values[bad]}; NaN and infinity cannot be quantised")
    if not values.size:
        return np.empty(0, np.int32)
    largest = np.maximum.reduceat(np.abs(values), np.arange(0, len(values), block))
    smallest = np.finfo(np.float32).smallest_normal
    return np.frexp(np.maximum(largest, smallest))[1].astype(np.int32)


def scale(exponents: ArrayLike, n_workers: int) -> NDArray[np.float64]:
    """Scaling factor of each block, (2**31 - 1) / (n 2**e): n values below 2**e then sum to less than 2**31.

    Parameters
    ----------
    exponents : int32[n_blocks]
        The largest over all workers, as the switch returns it.
    n_workers : int
        n, at least 1.
    """
    if n_workers < 1:
        raise InputError(f"a job has at least 1 worker, got {n_workers}")
    return np.ldexp(INT32_MAX / n_workers, -np.asarray(exponents, np.int32))


def error_bound(exponents: ArrayLike, n_workers: int) -> NDArray[np.float64]:
    """Largest error of an element of the sum, per block: n roundings by half a step, n / (2 scale).

    The final rounding to float32 adds at most half a unit in the last place of the result.
    """
    return n_workers / (2 * scale(exponents, n_workers))
