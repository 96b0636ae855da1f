"""The full mesh: a cable between every two hosts."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology


@topology
def fully_connected(n_hosts: int, bandwidth: Bandwidth = LINK_BANDWIDTH, latency: Seconds = LINK_LATENCY) -> Network:
    """Full mesh: a cable between every two hosts, without a switch.

    Parameters
    ----------
    n_hosts : int
        Hosts, at least 1.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way; a host has one link for each of the others.
    latency : float, s
        Latency of each link; one link lies between any two hosts.

    Returns
    -------
    Network
        Hosts ``h0 …``, which all forward; each is a group of its own, for Valiant routing over a third one.

    Raises
    ------
    InputError
        If `n_hosts` is not positive, or the network would be too large.

    References
    ----------
    Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 3.1: direct networks.
    """
    require_at_least("fully_connected", 1, n_hosts=n_hosts)
    require_buildable("fully_connected", n_hosts, n_hosts * (n_hosts - 1))
    src, dst = both_ways(*np.triu_indices(n_hosts, 1))
    return Network(
        "fully_connected", node_names(h=n_hosts), kinds(n_hosts, 0), src, dst, bandwidth, latency,
        forwards=np.ones(n_hosts, bool), coordinates=np.arange(n_hosts)[:, None],
    )  # fmt: skip
