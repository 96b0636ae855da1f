"""The twisted torus: wrap-around links of the short dimensions lead half-way along the long ones."""

from __future__ import annotations

import math

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology


@topology(sized_by=("dims",))
def twisted_torus(
    dims: tuple[int, ...], bandwidth: Bandwidth = LINK_BANDWIDTH, latency: Seconds = LINK_LATENCY
) -> Network:
    """Twisted torus: sides of k and 2k; the wrap-around of a side of k leads k hosts further along each side of 2k.

    Parameters
    ----------
    dims : tuple of int
        Hosts along each dimension: k or 2k, k at least 2; those along the last one are numbered consecutively. With
        equal sides nothing is twisted.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    latency : float, s
        Latency of each link.

    Returns
    -------
    Network
        Hosts ``h0 …``, which all forward; routed on shortest paths.

    Raises
    ------
    InputError
        If the sides are not k and 2k, or the network would be too large.

    References
    ----------
    Cámara et al., "Twisted torus topologies for enhanced interconnection networks", IEEE TPDS 2010. Jouppi et al., "TPU
    v4", ISCA 2023, section 2.8: slices of k x k x 2k and k x 2k x 2k.
    """
    require_at_least("twisted_torus", 2, **{f"dimension {d}": size for d, size in enumerate(dims)})
    short = min(dims, default=0)
    if not dims or not set(dims) <= {short, 2 * short}:
        raise InputError(f"twisted_torus needs dims of k and 2k, got {'x'.join(map(str, dims)) or 'none'}")
    n_hosts = math.prod(dims)
    require_buildable("twisted_torus", n_hosts, 2 * n_hosts * len(dims))
    host = np.arange(n_hosts)
    at = np.stack(np.unravel_index(host, dims), axis=1)
    twist = np.array([short if size > short else 0 for size in dims])
    ends = []
    for d, size in enumerate(dims):
        after = at.copy()
        after[:, d] += 1
        wraps = after[:, d] == size
        after[wraps, d] = 0
        if size == short:
            after[wraps] += twist
        once = at[:, d] == 0 if size == 2 and not (size == short and twist.any()) else host >= 0  # one cable for two
        ends.append((host[once], np.ravel_multi_index(tuple((after[once] % dims).T), dims)))
    src, dst = both_ways(*np.concatenate(ends, axis=1))
    return Network(
        "twisted_torus", node_names(h=n_hosts), kinds(n_hosts, 0), src, dst, bandwidth, latency,
        forwards=np.ones(n_hosts, bool), routing="ecmp",
    )  # fmt: skip
