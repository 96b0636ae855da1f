"""The star: every host on one switch."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology


@topology
def star(n_hosts: int, bandwidth: Bandwidth = LINK_BANDWIDTH, latency: Seconds = LINK_LATENCY) -> Network:
    """Star: every host on one switch, the network without contention except at the hosts' own links.

    Parameters
    ----------
    n_hosts : int
        Hosts, at least 1.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    latency : float, s
        Latency of each link; two links lie between two hosts.

    Returns
    -------
    Network
        Hosts ``h0 …`` and ``switch0``; ``2 n_hosts`` directed links.

    Raises
    ------
    InputError
        If `n_hosts` is not positive, or the network would be too large.

    References
    ----------
    Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapter 6: the crossbar.
    """
    require_at_least("star", 1, n_hosts=n_hosts)
    require_buildable("star", n_hosts + 1, 2 * n_hosts)
    src, dst = both_ways(np.arange(n_hosts), np.full(n_hosts, n_hosts))
    return Network("star", node_names(h=n_hosts, switch=1), kinds(n_hosts, 1), src, dst, bandwidth, latency)
