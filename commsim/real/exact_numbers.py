"""Whole numbers that every rank knows of every other, so that any collective's result can be checked exactly.

Sums of them are exact in every type and every order of addition, and rank r's part of the answer costs no more memory
than the part itself, however many ranks there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError
from commsim.core.layouts import chunk_bounds
from commsim.core.operations import OPERATIONS

# Prime, so that no power of two or chunk size hides a shift.
PERIOD = 17


def fill(rank: int, first: int, end: int, dtype: str) -> NDArray[Any]:
    """Elements `first` to `end` of a rank's input: ``(7 i + 13 rank) mod 17 - 8``.

    Parameters
    ----------
    rank : int
        Rank with the input.
    first, end : int
        Elements.
    dtype : str
        Type of an element.
    """
    return _repeat(_period(np.array([rank])), first, end, dtype)


def expected(
    operation: str, n_ranks: int, rank: int, root: int, n_elements: int, dtype: str, layout: tuple[int, ...] = ()
) -> tuple[slice, NDArray[Any]]:
    """Part of the output buffer that `rank` is promised, and what it must hold.

    Parameters
    ----------
    operation : str
        A name of ``OPERATIONS``.
    n_ranks, rank, root, n_elements : int
        Size of the problem, and whose result.
    dtype : str
        Type of an element.
    layout : tuple of int
        Layout of the schedule, where the operation has one.

    Returns
    -------
    part : slice
        Of the output buffer; empty when nothing is promised.
    values : array
        The contents of that part.

    Raises
    ------
    BackendError
        If the operation is ``custom``, which promises nothing.
    """
    if operation not in OPERATIONS:
        raise BackendError(f"nothing is known about the result of {operation}")
    postcondition = OPERATIONS[operation]
    n_chunks = postcondition.least_chunks(n_ranks, layout)
    bounds = chunk_bounds(n_elements, n_chunks)
    if postcondition.signals:
        return slice(0, 0), np.empty(0, dtype)
    if postcondition.moves is not None:
        _, ends, origins, chunks = postcondition.moves(np.array([rank]), n_ranks, n_chunks, layout)
        if postcondition.reduces:
            return _summed(ends, origins, chunks, bounds, dtype)
        runs = [fill(int(o), int(bounds[c]), int(bounds[c + 1]), dtype) for o, c in zip(origins, chunks, strict=True)]
        return slice(0, int(bounds[len(runs)])), np.concatenate([np.empty(0, dtype), *runs])
    blocks = chunk_bounds(n_elements, n_ranks).tolist()
    if layout:
        blocks = [0, *bounds[np.cumsum(layout)].tolist()]
    first, end = 0, n_elements
    if postcondition.ends == "home":
        first, end = blocks[rank], blocks[rank + 1]
    if postcondition.ends == "root" and rank != root:
        first = end = 0
    if postcondition.reduces:
        return slice(first, end), _repeat(_period(np.arange(n_ranks)), first, end, dtype)
    if postcondition.starts == "root":
        return slice(first, end), fill(root, first, end, dtype)
    parts = [fill(r, max(first, blocks[r]), min(end, blocks[r + 1]), dtype) for r in range(n_ranks)]
    return slice(first, end), np.concatenate(parts)


def _summed(
    ends: NDArray[np.int64], origins: NDArray[np.int64], chunks: NDArray[np.int64], bounds: NDArray[np.int64],
    dtype: str,
) -> tuple[slice, NDArray[Any]]:  # fmt: skip
    """Sum of the chunks that end in each chunk, where all are of one size and every chunk up to the last gets some."""
    width = int(bounds[1])
    total = np.zeros((int(ends.max(initial=-1)) + 1, width), dtype)
    for end, origin, chunk in zip(ends, origins, chunks, strict=True):
        total[end] += fill(int(origin), int(chunk) * width, (int(chunk) + 1) * width, dtype)
    return slice(0, total.size), total.ravel()


def _period(ranks: NDArray[Any]) -> NDArray[np.int64]:
    out: NDArray[np.int64] = ((7 * np.arange(PERIOD) + 13 * ranks[:, np.newaxis]) % PERIOD - 8).sum(axis=0)
    return out


def _repeat(period: NDArray[np.int64], first: int, end: int, dtype: str) -> NDArray[Any]:
    if end <= first:
        return np.empty(0, dtype)
    return np.resize(np.roll(period, -(first % PERIOD)).astype(dtype), end - first)
