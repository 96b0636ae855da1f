"""What routes ask of links, hop by hop: which links may limit a flow, and the flow links of connections."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

# A link is full where the sum of what may use it exceeds its capacity by more than rounding.
ROUNDED = 1 + 1e-12


class RouteLinks(NamedTuple):
    """Routes of connections, and what of the network they meet."""

    first: NDArray[np.int64]  # [n_connections + 1]
    link: NDArray[np.int32]  # [n_hops]
    share: NDArray[np.float64]  # [n_hops], part of a message on the link; none where all are 1
    nodes: NDArray[np.int32]  # [n_connections, 2], source and destination
    src: NDArray[np.int32]  # [n_links]
    dst: NDArray[np.int32]  # [n_links]


@kernel
def find_limiting(
    r: RouteLinks, bandwidth: NDArray[np.float64], sends: NDArray[np.bool_], receives: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Find out, for each link, whether it could limit a flow.

    It cannot where all that ever use it, each as fast as the slowest link of its route lets it be, fit together; unless
    it is the one that says so of some connection, or a host sends or receives by it with an overhead.

    Parameters
    ----------
    r : RouteLinks
        Routes of all connections.
    bandwidth : float64[n_links], bytes/s
        Bandwidth of each link.
    sends, receives : bool[n_connections]
        Whether the source of each connection has an overhead when it sends, and its destination when it receives.

    Returns
    -------
    bool[n_links]
    """
    n_links = bandwidth.shape[0]
    n = r.nodes.shape[0]
    limits = np.zeros(n_links, np.bool_)
    most = np.zeros(n_links)
    fastest = np.full(n, np.inf)
    for c in range(n):
        for k in range(r.first[c], r.first[c + 1]):
            q = r.link[k]
            alone = bandwidth[q] / r.share[k] if r.share.shape[0] > 0 else bandwidth[q]
            fastest[c] = min(fastest[c], alone)
            if (sends[c] and r.src[q] == r.nodes[c, 0]) or (receives[c] and r.dst[q] == r.nodes[c, 1]):
                limits[q] = True
        for k in range(r.first[c], r.first[c + 1]):
            most[r.link[k]] += fastest[c] * r.share[k] if r.share.shape[0] > 0 else fastest[c]
    for q in range(n_links):
        limits[q] |= most[q] > bandwidth[q] * ROUNDED
    held = np.zeros(n, np.bool_)
    slowest = np.full(n, -1, np.int64)
    for c in range(n):
        for k in range(r.first[c], r.first[c + 1]):
            q = r.link[k]
            alone = bandwidth[q] / r.share[k] if r.share.shape[0] > 0 else bandwidth[q]
            if alone == fastest[c]:
                held[c] |= limits[q]
                slowest[c] = q if slowest[c] < 0 else slowest[c]
    for c in range(n):
        if not held[c] and slowest[c] >= 0:
            limits[slowest[c]] = True
    return limits


@kernel
def count_flow_links(
    r: RouteLinks, limits: NDArray[np.bool_], rows: NDArray[np.int64], ports: NDArray[np.int64]
) -> None:
    """Count the flow links of routes.

    Parameters
    ----------
    r : RouteLinks
        Routes of all connections.
    limits : bool[n_links]
        Links that flows have flow links of.
    rows : int64[2 * n_connections]
        Gets how many more each flow has: one that sends for its route, one that receives for the last links.
    ports : int64[n_connections]
        Gets how many of these are ports of the sender.
    """
    n = r.nodes.shape[0]
    for c in range(n):
        for k in range(r.first[c], r.first[c + 1]):
            q = r.link[k]
            if limits[q]:
                rows[c] += 1
                ports[c] += r.src[q] == r.nodes[c, 0]
                rows[n + c] += r.dst[q] == r.nodes[c, 1]


@kernel
def write_flow_links(
    r: RouteLinks,
    limits: NDArray[np.bool_],
    free: NDArray[np.int64],
    resource: NDArray[np.int32],
    share: NDArray[np.float64],
) -> None:
    """Write the flow links that :func:`count_flow_links` counts.

    Parameters
    ----------
    r, limits
        As there.
    free : int64[2 * n_connections]
        Row at which those of each flow begin; moved on behind them.
    resource, share : int32[n_flow_links], float64[n_flow_links]
        Get the links, and the parts of the rate that they carry; no shares where all are 1.
    """
    n = r.nodes.shape[0]
    for c in range(n):
        for k in range(r.first[c], r.first[c + 1]):
            q = r.link[k]
            if not limits[q]:
                continue
            for s in range(c, c + n + 1, n):
                if s == c or r.dst[q] == r.nodes[c, 1]:
                    resource[free[s]] = q
                    if share.shape[0] > 0:
                        share[free[s]] = r.share[k] if r.share.shape[0] > 0 else 1.0
                    free[s] += 1
