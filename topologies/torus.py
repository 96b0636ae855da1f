"""The torus and the mesh: hosts in a grid of any number of dimensions, cabled to their neighbours."""

from __future__ import annotations

import math

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology


@topology(sized_by=("dims",))
def torus(
    dims: tuple[int, ...],
    wrap: bool = True,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    latency: Seconds = LINK_LATENCY,
) -> Network:
    """Torus: hosts in a grid, each cabled to the next and the previous one in every dimension; a mesh without `wrap`.

    Parameters
    ----------
    dims : tuple of int
        Hosts along each dimension, at least 1 each; those along the last one are numbered consecutively.
    wrap : bool
        Whether the last host along a dimension is cabled to the first. Two hosts share one cable either way.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    latency : float, s
        Latency of each link; up to ``sum(dim // 2)`` links lie between two hosts, ``sum(dim - 1)`` in a mesh.

    Returns
    -------
    Network
        Hosts ``h0 …``, which all forward, with their coordinates; routed in dimension order.

    Raises
    ------
    InputError
        Without a dimension, or if one is below 1, or the network would be too large.

    References
    ----------
    Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 5.1: k-ary n-cubes.
    """
    require_at_least("torus", 1, dimensions=len(dims), **{f"dimension {d}": size for d, size in enumerate(dims)})
    n_hosts = math.prod(dims)
    require_buildable("torus", n_hosts, 2 * n_hosts * len(dims))
    host = np.arange(n_hosts)
    strides = [math.prod(dims[d + 1 :]) for d in range(len(dims))]
    at = host[:, None] // strides % dims
    ends = []
    for d, (size, stride) in enumerate(zip(dims, strides, strict=True)):
        near = host if wrap and size > 2 else host[at[:, d] < size - 1]
        ends.append((near, near + np.where(at[near, d] < size - 1, stride, -stride * (size - 1))))
    src, dst = both_ways(*np.concatenate(ends, axis=1))
    return Network(
        "torus", node_names(h=n_hosts), kinds(n_hosts, 0), src, dst, bandwidth, latency,
        forwards=np.ones(n_hosts, bool), routing="dimension_order", coordinates=at,
    )  # fmt: skip
