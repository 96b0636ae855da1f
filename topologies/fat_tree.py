"""The fat tree: three tiers of equal switches with full bisection bandwidth."""

from __future__ import annotations

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_buildable, topology


@topology(sized_by=("k",))
def fat_tree(k: int, bandwidth: Bandwidth = LINK_BANDWIDTH, latency: Seconds = LINK_LATENCY) -> Network:
    """Three-tier fat tree of k-port switches: k pods, k^3/4 hosts, full bisection bandwidth.

    Parameters
    ----------
    k : int
        Ports per switch; even, at least 2.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    latency : float, s
        Latency of each link; two links lie between hosts of one edge switch, four inside a pod, six between pods.

    Returns
    -------
    Network
        ``k^3/4`` hosts ``h0 …``, ``k^2/2`` edge, ``k^2/2`` aggregation and ``k^2/4`` core switches; ``3k^3/2`` links.

    Raises
    ------
    InputError
        If `k` is odd or below 2, or the network would be too large.

    References
    ----------
    Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008, section 2.2.
    """
    if k < 2 or k % 2:
        raise InputError(f"fat_tree needs an even k of at least 2, got k={k}")
    half = k // 2
    n_hosts, n_pod_switches = half * half * k, half * k
    require_buildable("fat_tree", n_hosts + 2 * n_pod_switches + half * half, 6 * n_hosts)
    edge = n_hosts
    aggregation = edge + n_pod_switches
    core = aggregation + n_pod_switches
    cable = np.arange(n_hosts)  # every tier has as many cables as there are hosts
    column = cable % half
    host_edge = edge + cable // half
    edge_aggregation = aggregation + cable // (half * half) * half + column
    # The i-th aggregation switch of every pod reaches the i-th group of core switches.
    aggregation_core = core + cable // half % half * half + column
    src, dst = both_ways(
        np.concatenate((cable, host_edge, aggregation + cable // half)),
        np.concatenate((host_edge, edge_aggregation, aggregation_core)),
    )
    names = node_names(h=n_hosts, edge=n_pod_switches, aggregation=n_pod_switches, core=half * half)
    return Network("fat_tree", names, kinds(n_hosts, len(names) - n_hosts), src, dst, bandwidth, latency)
