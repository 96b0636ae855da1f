"""Kernel that measures distances between hosts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.jit import kernel
from .routing_kernel import Rows, hops_to


@kernel
def farthest(
    targets: NDArray[np.int32], hosts: NDArray[np.int32], incoming: Rows, forwards: NDArray[np.bool_]
) -> tuple[int, int, int]:
    """Longest of the shortest paths from any host to one of `targets`, by one breadth-first search per target.

    Parameters
    ----------
    targets : int32[n]
        Hosts.
    hosts : int32[m]
        Hosts that the paths start from.
    incoming : (int64[n_nodes + 1], int32[n_links], int32[n_links])
        Links by the node that they lead to, and where they come from.
    forwards : bool[n_nodes]
        Whether traffic may pass through a node.

    Returns
    -------
    hops, source, target
        Links on the longest path found, and the first host and target without a path, or -1 and -1.
    """
    hops = np.empty(forwards.shape[0], np.int32)
    most, lost, towards = 0, -1, -1
    for target in targets:
        hops_to(target, incoming, forwards, hops)
        for host in hosts:
            if hops[host] > most:
                most = hops[host]
            if hops[host] < 0 and lost < 0:
                lost, towards = host, target
    return most, lost, towards
