"""The ring: hosts cabled to their two neighbours, without a switch."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology


@topology
def ring(n_hosts: int, bandwidth: Bandwidth = LINK_BANDWIDTH, latency: Seconds = LINK_LATENCY) -> Network:
    """Ring: every host is cabled to the next one, and hosts forward for each other.

    Parameters
    ----------
    n_hosts : int
        Hosts, at least 1; two hosts share one cable, and one host has none.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    latency : float, s
        Latency of each link; up to ``n_hosts // 2`` links lie between two hosts.

    Returns
    -------
    Network
        Hosts ``h0 …``, which all forward, with their place as coordinate; two directed links per cable.

    Raises
    ------
    InputError
        If `n_hosts` is not positive, or the network would be too large.

    References
    ----------
    Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 5.1: the 1-D torus.
    """
    require_at_least("ring", 1, n_hosts=n_hosts)
    require_buildable("ring", n_hosts, 2 * n_hosts)
    n_cables = n_hosts if n_hosts > 2 else n_hosts - 1
    host = np.arange(n_cables)
    src, dst = both_ways(host, (host + 1) % n_hosts)
    return Network(
        "ring", node_names(h=n_hosts), kinds(n_hosts, 0), src, dst, bandwidth, latency,
        forwards=np.ones(n_hosts, bool), coordinates=np.arange(n_hosts)[:, None],
    )  # fmt: skip
