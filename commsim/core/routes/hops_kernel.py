"""Kernel that counts hops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..jit import kernel
from .link_rows import Rows


@kernel
def hops_to(target: int, incoming: Rows, forwards: NDArray[np.bool_], hops: NDArray[np.int32]) -> None:
    """Fill `hops` with the number of links from each node to `target`, -1 where there is no path.

    Parameters
    ----------
    target : int
        Node.
    incoming : (int64[n_nodes + 1], int32[n_links], int32[n_links])
        Links by the node that they lead to, and where they come from.
    forwards : bool[n_nodes]
        Whether traffic may pass through a node.
    hops : int32[n_nodes]
        Written in place.
    """
    first, _, origin = incoming
    hops[:] = -1
    hops[target] = 0
    queue = np.empty(hops.shape[0], np.int32)
    queue[0] = target
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        if node != target and not forwards[node]:
            continue
        for k in range(first[node], first[node + 1]):
            if hops[origin[k]] < 0:
                hops[origin[k]] = hops[node] + 1
                queue[tail] = origin[k]
                tail += 1
