"""Kernel that hashes the neighbourhoods of switches, of millions of links in one pass."""

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
