"""Cables: which two links are one, which cables make the fabric, and what links are called."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .network import Network


def partners(network: Network) -> NDArray[np.int64]:
    """Link that is the other direction of the same cable; of parallel ones, the one with the same number.

    Returns
    -------
    int64[n_links]
        A link without another direction is its own partner.
    """
    number, src, dst = _numbers(network), network.src.astype(np.int64), network.dst.astype(np.int64)
    base = int(number.max(initial=0)) + 1
    there, back = (src * network.n_nodes + dst) * base + number, (dst * network.n_nodes + src) * base + number
    order = np.argsort(there)
    found = order[np.minimum(np.searchsorted(there[order], back), network.n_links - 1)]
    return np.where(there[found] == back, found, np.arange(network.n_links))


def fabric_cables(network: Network) -> NDArray[np.int64]:
    """One link of every cable between nodes that forward and are not inside a machine, the lower number of the two."""
    inner = network.forwards & (network.machine < 0)
    lower = np.arange(network.n_links) <= partners(network)
    return np.flatnonzero(lower & inner[network.src] & inner[network.dst])


def link_names(network: Network) -> list[str]:
    """Names of all links, as :meth:`Network.link_name` gives them one by one."""
    columns = (network.src.tolist(), network.dst.tolist(), _numbers(network).tolist())
    nodes = network.nodes
    return [f"{nodes[a]}->{nodes[b]}" + (f"#{n}" if n else "") for a, b, n in zip(*columns, strict=True)]


def _numbers(network: Network) -> NDArray[np.int64]:
    """How many links with the same ends come before each link."""
    order = np.lexsort((network.dst, network.src))
    src, dst = network.src[order], network.dst[order]
    starts = np.flatnonzero(np.r_[True, (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])][: len(order)])
    number = np.empty(network.n_links, np.int64)
    number[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return number
