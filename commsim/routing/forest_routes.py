"""Routes over a forest of switch classes: the same ones that a search finds, without the search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

from .route_ends import WALK_STEPS, ends_of_routes

Found = tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


def walk_known(
    network: Network,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    key: NDArray[np.int64],
    choice: int,
    order: NDArray[np.int64],
) -> Found | None:
    """Walk the routes between different machines that need no search; worth it from ``walk.LEAST`` routes on.

    Parameters
    ----------
    network : Network
        Any.
    src, dst, key : int64[n_routes]
        Nodes, and the hash of each flow.
    choice : int
        Choice among links, as the kernels number it.
    order : int64[2, n_nodes]
        Order from :func:`commsim.routing.dmodk.destination_order`; zeros for others.

    Returns
    -------
    which, first, link, latency, or None
        Numbers of the routes found, rising, and their columns of Routes; None where the fabric is no forest.
    """
    ends = ends_of_routes(network, src, dst)
    if ends is None:
        return None
    from commsim.core.jit import expected_work

    from .forest_kernel import walk_forest

    with expected_work(network.n_links + WALK_STEPS * len(ends.apart)):
        first, link, latency, known = walk_forest(
            (dst[ends.apart], key[ends.apart]), ends.ports, ends.rows, ends.nodes, ends.forest, network.latency,
            order, choice,
        )  # fmt: skip
    return ends.apart[known], np.append(first[:-1][known], first[-1]), link, latency[known]
