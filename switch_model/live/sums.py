"""Tensors that every worker can make for itself, whoever's they are, and what their sum must be."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from switch_model.quantize import block_exponents, error_bound

from .exchange import DTYPES
from .worker import SwitchGroup


def drawn_tensor(seed: int, rank: int, n_elements: int, dtype: str) -> NDArray[Any]:
    """Return one rank's tensor: integers of all 32 bits, or floats of the normal distribution.

    Raises
    ------
    InputError
        If the type is another, or a number is negative.
    """
    if dtype not in DTYPES or min(seed, rank, n_elements) < 0:
        raise InputError(f"a tensor is {' or '.join(DTYPES)}, and no number negative, got {n_elements} of {dtype}, "
                         f"seed {seed}")  # fmt: skip
    random = np.random.default_rng([seed, rank])
    if dtype == "int32":
        return random.integers(-(2**31), 2**31, n_elements, np.int32)
    return random.standard_normal(n_elements, np.float32)


def timed_sums(
    group: SwitchGroup, tensor: NDArray[Any], iterations: int, seed: int | None = None
) -> tuple[list[dict[str, Any]], NDArray[Any]]:
    """Sum a tensor over the workers of a group, several times.

    Parameters
    ----------
    group : SwitchGroup
        Workers that have met.
    tensor : int32[n] or float32[n]
        What this worker adds.
    iterations : int
        All-reduces, one after the other.
    seed : int, optional
        Seed of the tensors of all workers, with which every sum is compared. Default: no sum is.

    Returns
    -------
    list of dict, int32[n] or float32[n]
        A row for each sum, and the last sum.
    """
    rows, total, lease = [], tensor, group.lease
    for number in range(iterations):
        group.barrier()
        sent, resent, began = group.traffic.sent, group.traffic.retransmissions, time.perf_counter()
        total = group.all_reduce(tensor)
        took = time.perf_counter() - began
        sent, resent = group.traffic.sent - sent, group.traffic.retransmissions - resent
        error = None if seed is None else worst_error(total, seed, lease.n_workers, lease.elements)
        limit = 0 if tensor.dtype == np.int32 else 1
        rows.append({"tensor": number, "rank": lease.rank, "time_s": took, "elements": len(tensor),
                     "elements_per_s": len(tensor) / took, "packets_sent": sent, "packets_per_s": sent / took,
                     "retransmissions": resent, "error": error,
                     "right": None if error is None else error <= limit})  # fmt: skip
    return rows, total


def worst_error(got: NDArray[Any], seed: int, n_workers: int, elements: int) -> float:
    """Compare a sum with that of all ranks' drawn tensors.

    Parameters
    ----------
    got : int32[n] or float32[n]
        What the switch returned.
    seed, n_workers : int
        Seed and number of workers with which the tensors were drawn.
    elements : int
        Elements of a packet, which are a block.

    Returns
    -------
    float
        Integers: how many elements are wrong. Floats: the largest error, over what quantisation and the rounding to
        float32 may cause; up to 1 is right.
    """
    floats = got.dtype == np.float32
    total: NDArray[Any] = np.zeros(len(got), np.float64 if floats else np.uint32)
    exponents = np.full(-(-len(got) // elements), -128, np.int32)
    for rank in range(n_workers):
        tensor = drawn_tensor(seed, rank, len(got), str(got.dtype))
        if floats:
            exponents = np.maximum(exponents, block_exponents(tensor, elements))
            total += tensor
        else:
            total += tensor.view(np.uint32)
    if not floats:
        return float((total != got.view(np.uint32)).sum())
    return error_over_bound(got, total, exponents, elements, n_workers)


def error_over_bound(
    got: NDArray[np.float32], exact: NDArray[np.float64], exponents: NDArray[np.int32], elements: int, n_workers: int
) -> float:
    """Largest error of a sum of floats over what it may be, so that up to 1 is right.

    Quantisation rounds each worker's value, and the sum is rounded to float64 twice and to float32 once.

    Parameters
    ----------
    got : float32[n]
        What the switch returned.
    exact : float64[n]
        The sum.
    exponents : int32[n_blocks]
        The largest of all workers, for each block.
    elements, n_workers : int
        Elements of a block, and workers of the job.
    """
    size = np.abs(got).astype(np.float64)
    rounding = np.spacing(np.abs(got)) / 2 + 2 * np.finfo(np.float64).eps * size
    quantisation = np.repeat(error_bound(exponents, n_workers), elements)[: len(got)]
    return float((np.abs(got - exact) / (quantisation + rounding)).max())
