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


@kernel
def number_pairs(
    number: NDArray[np.int32],
    value: NDArray[np.float64],
    known_number: NDArray[np.int32],
    known_value: NDArray[np.float64],
    n_known: int,
) -> int:
    """Tell things of one number apart by another value, where few pairs of both are different.

    Parameters
    ----------
    number : int32[n]
        Number of each thing; becomes that of its pair, in the order in which pairs first occur.
    value : float64[n]
        What else each thing has.
    known_number, known_value : int32[m], float64[m]
        Pairs that were found, the first `n_known` of them; gets more.
    n_known : int
        Pairs that are known.

    Returns
    -------
    int
        Pairs that are known now; -1 where there is no room for them, and then numbers mean nothing.
    """
    k = 0
    for i in range(number.shape[0]):
        if k >= n_known or known_number[k] != number[i] or known_value[k] != value[i]:  # else as the one before
            k = 0
            while k < n_known and (known_number[k] != number[i] or known_value[k] != value[i]):
                k += 1
            if k == n_known:
                if n_known == known_number.shape[0]:
                    return -1
                known_number[k], known_value[k] = number[i], value[i]
                n_known += 1
        number[i] = k
    return n_known


@kernel
def number_bundles(
    node: NDArray[np.int32], src: NDArray[np.int32], dst: NDArray[np.int32], kind: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Give numbers to bundles of links, in the order of their first links.

    Those of links from one class have a part of a table to themselves, near to that of the next class.

    Parameters
    ----------
    node : int32[n_nodes]
        Class of each node.
    src, dst, kind : int32[n_links]
        Links, and what tells those apart that join the same classes.

    Returns
    -------
    number : int32[n_links], first : int32[n_bundles], n_members : int32[n_bundles]
        Bundle of each link, its first link, and how many it has.
    """
    n, n_classes = src.shape[0], 0
    for v in range(node.shape[0]):
        n_classes = max(n_classes, node[v] + 1)
    begin = np.zeros(n_classes + 1, np.int64)
    for i in range(n):
        begin[node[src[i]] + 1] += 2
    for a in range(n_classes):
        begin[a + 1] += begin[a]
    table = np.full(2 * n, -1, np.int32)
    found = np.zeros(n, np.int32)
    number = np.empty(n, np.int32)
    first = np.empty(n, np.int32)
    m = 0
    for i in range(n):
        a, b = node[src[i]], node[dst[i]]
        low, high = begin[a], begin[a + 1]
        colour = _mixed(np.uint64(b) ^ np.uint64(kind[i]) << np.uint64(32))
        at = low + np.int64(colour % np.uint64(high - low))
        while table[at] >= 0:
            j = first[table[at]]
            if node[dst[j]] == b and kind[j] == kind[i]:
                break
            at = at + 1 if at + 1 < high else low
        if table[at] < 0:
            table[at] = m
            first[m] = i
            m += 1
        number[i] = table[at]
        found[table[at]] += 1
    return number, first[:m].copy(), found[:m].copy()
