"""Kernels that tell classes apart, of millions of links in one pass: hashes of neighbourhoods, and numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

from .crossings.crossings_kernel import _mixed


@kernel
def add_neighbours(
    place: NDArray[np.int32],
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    kind: NDArray[np.int32],
    colour: NDArray[np.uint64],
    around: NDArray[np.uint64],
) -> None:
    """Add up, for each node that may be merged, the hashes of its links and of the nodes at their other ends.

    Parameters
    ----------
    place : int32[n_nodes]
        Place of each node in `around`, or -1.
    src, dst, kind : int32[n_links]
        Links, and what tells them apart.
    colour : uint64[n_nodes]
        What tells nodes apart.
    around : uint64[n]
        Written: the sums, modulo 2^64.
    """
    two, one = np.uint64(2), np.uint64(1)
    for i in range(src.shape[0]):
        leaves, enters = place[src[i]], place[dst[i]]
        if leaves < 0 and enters < 0:
            continue
        way = two * np.uint64(kind[i])
        if leaves >= 0:
            around[leaves] += _mixed(_mixed(way) + colour[dst[i]])
        if enters >= 0:
            around[enters] += _mixed(_mixed(way + one) + colour[src[i]])


@kernel
def number_colours(colour: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Give numbers to colours, in the order in which they first occur.

    Returns
    -------
    number : int32[n], first : int32[n_colours]
        Number of each colour, and where each first occurs.
    """
    n = colour.shape[0]
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int32)
    number = np.empty(n, np.int32)
    first = np.empty(n, np.int32)
    m = 0
    for i in range(n):
        at = np.int64(colour[i] & np.uint64(size - 1))
        while table[at] >= 0 and colour[first[table[at]]] != colour[i]:
            at = (at + 1) & (size - 1)
        if table[at] < 0:
            table[at] = m
            first[m] = i
            m += 1
        number[i] = table[at]
    return number, first[:m].copy()
