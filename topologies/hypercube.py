"""The hypercube: hosts cabled to all whose number differs in one bit."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, bounded_power, require_at_least, require_buildable, topology


@topology(sized_by=("dimension",))
def hypercube(dimension: int, bandwidth: Bandwidth = LINK_BANDWIDTH, latency: Seconds = LINK_LATENCY) -> Network:
    """Hypercube: 2^dimension hosts, each cabled to those whose number differs from its own in one bit.

    Parameters
    ----------
    dimension : int
        Cables per host, at least 1.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    latency : float, s
        Latency of each link; as many links lie between two hosts as their numbers differ in bits.

    Returns
    -------
    Network
        Hosts ``h0 …``, which all forward; coordinates are their bits, the lowest first, which is also the order in
        which they are routed (e-cube).

    Raises
    ------
    InputError
        If `dimension` is below 1, or the network would be too large.

    References
    ----------
    Saad and Schultz, "Topological properties of hypercubes", IEEE Transactions on Computers, 1988.
    Sullivan and Bashkow, "A large scale, homogeneous, fully distributed parallel machine", ISCA 1977, for the routing.
    """
    require_at_least("hypercube", 1, dimension=dimension)
    n_hosts = bounded_power("hypercube", 2, dimension)
    require_buildable("hypercube", n_hosts, dimension * n_hosts)
    host, bit = np.arange(n_hosts)[:, None], np.arange(dimension)
    at = host >> bit & 1
    near, along = np.nonzero(at == 0)
    src, dst = both_ways(near, near + (1 << along))
    return Network(
        "hypercube", node_names(h=n_hosts), kinds(n_hosts, 0), src, dst, bandwidth, latency,
        forwards=np.ones(n_hosts, bool), routing="dimension_order", coordinates=at,
    )  # fmt: skip
