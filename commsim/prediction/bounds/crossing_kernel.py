"""Kernel that adds up the capacity between sets of nodes, of millions of links in one pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel


@kernel
def add_crossing(
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    bandwidth: NDArray[np.float64],
    of_node: NDArray[np.int32],
    capacity: NDArray[np.float64],
    n_links: NDArray[np.int64],
    last: NDArray[np.int64],
) -> None:
    """Add up, for each set, what leaves it (row 0) and what enters it (row 1).

    Parameters
    ----------
    src, dst, bandwidth : int32[m], int32[m], float64[m]
        Links; bandwidth in bytes/s.
    of_node : int32[n_nodes]
        Set of each node, or -1.
    capacity : float64[2, k], bytes/s
        Written: sum over the links that cross, added in their order.
    n_links, last : int64[2, k]
        Written: how many they are, and the last of them.
    """
    for i in range(src.shape[0]):
        a, b = of_node[src[i]], of_node[dst[i]]
        if a == b:
            continue
        if a >= 0:
            capacity[0, a] += bandwidth[i]
            n_links[0, a] += 1
            last[0, a] = i
        if b >= 0:
            capacity[1, b] += bandwidth[i]
            n_links[1, b] += 1
            last[1, b] = i
