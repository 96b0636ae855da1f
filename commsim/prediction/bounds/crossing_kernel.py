"""Kernels of bounds from cuts: what lies below each node, and the capacity between sets, of millions of links."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel


@kernel
def add_crossing(
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    bandwidth: NDArray[np.float64],
    passes: NDArray[np.bool_],
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
    passes : bool[n_nodes]
        Nodes whose links count.
    of_node : int32[n_nodes]
        Set of each node, or -1.
    capacity : float64[2, k], bytes/s
        Written: sum over the links that cross, added in their order.
    n_links, last : int64[2, k]
        Written: how many they are, and the last of them.
    """
    for i in range(src.shape[0]):
        a, b = of_node[src[i]], of_node[dst[i]]
        if a == b or not (passes[src[i]] and passes[dst[i]]):
            continue
        if a >= 0:
            capacity[0, a] += bandwidth[i]
            n_links[0, a] += 1
            last[0, a] = i
        if b >= 0:
            capacity[1, b] += bandwidth[i]
            n_links[1, b] += 1
            last[1, b] = i


@kernel
def links_by_tier(
    src: NDArray[np.int32], dst: NDArray[np.int32], tier: NDArray[np.int32], n_tiers: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Sort links between tiers by the tier of their upper end.

    Parameters
    ----------
    src, dst : int32[m]
        Links.
    tier : int32[n_nodes]
        Tier of each node, or -1.
    n_tiers : int
        Largest tier.

    Returns
    -------
    first, upper, lower : int64[n_tiers + 1], int32[k], int32[k]
        Upper and lower ends; those of tier t, from 1 on, from ``first[t - 1]`` to ``first[t]``.
    """
    first = np.zeros(n_tiers + 1, np.int64)
    for i in range(src.shape[0]):
        a, b = tier[src[i]], tier[dst[i]]
        if a != b and a >= 0 and b >= 0:
            first[max(a, b)] += 1
    for t in range(1, n_tiers + 1):
        first[t] += first[t - 1]
    at = first.copy()
    upper, lower = np.empty(first[n_tiers], np.int32), np.empty(first[n_tiers], np.int32)
    for i in range(src.shape[0]):
        a, b = tier[src[i]], tier[dst[i]]
        if a != b and a >= 0 and b >= 0:
            k = at[max(a, b) - 1]
            upper[k], lower[k] = (src[i], dst[i]) if a > b else (dst[i], src[i])
            at[max(a, b) - 1] += 1
    return first, upper, lower


@kernel
def spread_up(
    upper: NDArray[np.int32], lower: NDArray[np.int32], of_node: NDArray[np.int32], low: NDArray[np.int32],
    high: NDArray[np.int32],
) -> None:  # fmt: skip
    """Lower and raise, for each upper end, the least and the most of what its lower ends are.

    Parameters
    ----------
    upper, lower : int32[m]
        Ends of links.
    of_node : int32[n_nodes]
        Set of each node, or -1.
    low, high : int32[n_nodes]
        Changed.
    """
    for i in range(upper.shape[0]):
        node, found = upper[i], of_node[lower[i]]
        low[node], high[node] = min(low[node], found), max(high[node], found)
