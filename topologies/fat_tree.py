"""The fat tree: three tiers of equal switches with full bisection bandwidth, or tapered."""

from __future__ import annotations

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Ratio, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_buildable, topology
from .uplinks import CableOptions, Tier, by_tier, lay


@topology(sized_by=("k",))
def fat_tree(
    k: int,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    latency: Seconds = LINK_LATENCY,
    oversubscription: Ratio | None = None,
    pod_oversubscription: Ratio | None = None,
    uplink_bandwidth: Bandwidth | None = None,
    pod_uplink_bandwidth: Bandwidth | None = None,
    uplink_latency: Seconds | None = None,
    pod_uplink_latency: Seconds | None = None,
) -> Network:
    """Three-tier fat tree of k-port switches: k pods, k^3/4 hosts, full bisection bandwidth unless tapered.

    Parameters
    ----------
    k : int
        Ports per switch; even, at least 2.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    latency : float, s
        Latency of each link; two links lie between hosts of one edge switch, four inside a pod, six between pods.
    oversubscription, pod_oversubscription : float, optional
        Capacity of an edge (aggregation) switch's links down over that of its cables up, such as 2:1, which tapers the
        tree: it has fewer cables, and aggregation (core) switches that would get none are left out. By default 1.
    uplink_bandwidth, pod_uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each cable up from an edge (aggregation) switch, one way; by default that of a link below.
    uplink_latency : float, s, optional
        Latency of each cable between edge and aggregation switches; by default that of the hosts' links.
    pod_uplink_latency : float, s, optional
        Latency of each cable between aggregation and core switches; by default that of the cables below it.

    Returns
    -------
    Network
        ``k^3/4`` hosts ``h0 …``, ``k^2/2`` edge, ``k^2/2`` aggregation and ``k^2/4`` core switches; ``3k^3/2`` links.

    Raises
    ------
    InputError
        If `k` is odd or below 2, no number of cables has a ratio, or the network would be too large.

    References
    ----------
    Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008, section 2.2.
    """
    if k < 2 or k % 2:
        raise InputError(f"fat_tree needs an even k of at least 2, got k={k}")
    half = k // 2
    edges = Tier("fat_tree", "edge switch", "aggregation switch", "", "")
    tops = Tier("fat_tree", "aggregation switch", "core switch", "", "", "pod_")
    up = lay(edges, half * bandwidth, bandwidth, CableOptions(half, None, oversubscription, uplink_bandwidth))
    options = CableOptions(half, None, pod_oversubscription, pod_uplink_bandwidth)
    top = lay(tops, half * up.per_pair * up.rate, up.rate, options)
    n_hosts, n_edges, n_aggregations, n_cores = half * half * k, half * k, up.n_above * k, up.n_above * top.n_above
    n_up, n_top = up.n_above * up.per_pair, top.n_above * top.per_pair
    n_cables = [n_hosts, n_edges * n_up, n_aggregations * n_top]
    require_buildable("fat_tree", n_hosts + n_edges + n_aggregations + n_cores, 2 * sum(n_cables))
    edge = n_hosts
    aggregation = edge + n_edges
    core = aggregation + n_aggregations
    host, edge_up, aggregation_up = (np.arange(n) for n in n_cables)
    of_edge = edge_up // (half * n_up) * up.n_above + edge_up // up.per_pair % up.n_above
    # The i-th aggregation switch of every pod reaches the i-th group of core switches.
    of_aggregation = aggregation_up // n_top % up.n_above * top.n_above + aggregation_up // top.per_pair % top.n_above
    src, dst = both_ways(
        np.concatenate((host, edge + edge_up // n_up, aggregation + aggregation_up // n_top)),
        np.concatenate((edge + host // half, aggregation + of_edge, core + of_aggregation)),
    )
    names = node_names(h=n_hosts, edge=n_edges, aggregation=n_aggregations, core=n_cores)
    rate = np.tile(np.repeat([bandwidth, up.rate, top.rate], n_cables), 2)
    missing = [f"{one.left_out} of a {where}" for one, where in ((up, "pod"), (top, "group")) if one.left_out]
    nodes = kinds(n_hosts, len(names) - n_hosts)
    delay = by_tier(n_cables, latency, uplink_latency, pod_uplink_latency)
    return Network("fat_tree", names, nodes, src, dst, rate, delay, left_out=", ".join(missing))
