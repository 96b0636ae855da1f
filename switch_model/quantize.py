"""Floats as the integers that a switch can add: fixed point with one exponent per block, as SwitchML's workers do it.

A switch adds int32 and knows no floats. So the workers agree, per block, on the largest exponent among them and scale
by the same factor, chosen so that the sum over all of them cannot overflow. ATP's workers agree on nothing: they
multiply by a million, refuse what is too large, and its switch saturates.

References
----------
Sapio et al., "Scaling distributed machine learning with in-network aggregation", NSDI 2021, section 3.7 (SwitchML).
Lao et al., "ATP: in-network aggregation for multi-tenant learning", NSDI 2021; factor and limit from its public code.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError

INT32_MAX = 2**31 - 1
FIXED_FACTOR = 1e6
FIXED_LIMIT = 213.0


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


def quantize(values: ArrayLike, exponents: ArrayLike, block: int, n_workers: int) -> NDArray[np.int32]:
    """Round one worker's vector to the integers that it sends.

    Parameters
    ----------
    values : float32[n]
        One worker's vector.
    exponents : int32[ceil(n / block)]
        The largest over all workers.
    block, n_workers : int
        Layout of the blocks, see above.

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


def error_bound(exponents: ArrayLike, n_workers: int) -> NDArray[np.float64]:
    """Largest error of an element of the sum, per block: n roundings by half a step, n / (2 scale).

    The final rounding to float32 adds at most half a unit in the last place of the result.
    """
    return n_workers / (2 * scale(exponents, n_workers))


def quantize_fixed(values: ArrayLike, factor: float = FIXED_FACTOR, limit: float = FIXED_LIMIT) -> NDArray[np.int32]:
    """Round one worker's vector to integers by a fixed factor, as ATP's hosts do; no exponents travel.

    Parameters
    ----------
    values : float32[n]
        One worker's vector.
    factor : float
        Integers per unit.
    limit : float
        Largest magnitude that a host accepts. ATP's leaves room for ten workers, whose sum still fits in int32; with
        more the switch may saturate, see :func:`saturated`.

    Returns
    -------
    int32[n]

    Raises
    ------
    InputError
        If a value is larger than the limit, NaN or infinite, or the largest would not fit in int32.
    """
    values = np.asarray(values, np.float32)
    if not (factor > 0 and limit > 0 and limit * factor <= INT32_MAX):
        raise InputError(f"a factor and a limit are positive and their product fits in int32, got {factor} and {limit}")
    over = ~(np.abs(values) <= limit)
    if over.any():
        bad = int(np.flatnonzero(over)[0])
        raise InputError(f"element {bad} is {values[bad]}; with a factor of {factor:g} a host takes at most {limit:g}")
    return np.rint(values.astype(np.float64) * factor).astype(np.int32)


def dequantize_fixed(sums: ArrayLike, factor: float = FIXED_FACTOR) -> NDArray[np.float32]:
    """Turn summed integers back into floats, within n / (2 factor) of the exact sum of n workers where none saturated.

    Parameters
    ----------
    sums : int32[n]
        Sum over the workers.
    factor : float
        Same as in :func:`quantize_fixed`.
    """
    return (np.asarray(sums, np.int32) / factor).astype(np.float32)


def saturated(sums: ArrayLike) -> NDArray[np.bool_]:
    """Which sums are the largest or smallest int32, so that the workers must be asked for floats.

    Parameters
    ----------
    sums : int32[n]
        Sums returned by a saturating switch.
    """
    sums = np.asarray(sums, np.int32)
    return np.asarray((sums == INT32_MAX) | (sums == -INT32_MAX - 1))
