"""The dual ToR: a leaf-spine whose racks have two leaves each, with every host on both."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Ratio, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology
from .switch_ports import LeafUp
from .uplinks import CableOptions, Tier, by_tier


@topology(sized_by=("hosts_per_rack", "n_racks"))
def dual_tor(
    n_racks: int | None = None,
    n_spines: int | None = None,
    hosts_per_rack: int | None = None,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    uplink_bandwidth: Bandwidth | None = None,
    oversubscription: Ratio | None = None,
    uplinks_per_spine: int | None = None,
    latency: Seconds = LINK_LATENCY,
    switch_ports: int | None = None,
    n_hosts: int | None = None,
    uplink_latency: Seconds | None = None,
) -> Network:
    """Dual ToR: every host is cabled to the two top-of-rack switches of its rack, and these to every spine.

    Parameters
    ----------
    n_racks : int, optional
        Number of racks, at least 1; by default as few as take `n_hosts`.
    n_spines, hosts_per_rack : int, optional
        Number of spines, and of hosts of a rack, numbered consecutively; as `n_spines` and `hosts_per_leaf` of
        ``leaf_spine``.
    bandwidth : float, bytes/s
        Bandwidth of each link between host and switch, one way; a host has two of them.
    uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each cable to a spine, one way; by default that of a host's one port.
    oversubscription, uplinks_per_spine : float and int, optional
        Capacity of a switch's links to hosts over that of its cables to spines, and parallel cables between it and each
        spine; as of ``leaf_spine``.
    latency : float, s
        Latency of each link; two links lie between hosts of one rack, four between others.
    switch_ports : int, optional
        Ports of each switch; as of ``leaf_spine``.
    n_hosts : int, optional
        Number of all hosts, if the last rack is not full; by default all are.
    uplink_latency : float, s, optional
        Latency of each cable between a switch of a rack and a spine; by default that of the hosts' links.

    Returns
    -------
    Network
        Hosts ``h0 …``, ``tor0 …`` (2r and 2r + 1 are those of rack r), and ``spine0 …``. With one plane of
        spines for the first and another for the second switch of each rack, it is ``multi_plane:n_planes=2``.

    Raises
    ------
    InputError
        If a count is not positive, no number of cables has this `oversubscription`, or the network would be too large.

    References
    ----------
    Qian et al., "Alibaba HPN: a data center network for large language model training", SIGCOMM 2024, section 4: the
    non-stacked dual ToR.
    """
    counts = {"n_racks": n_racks, "n_spines": n_spines, "hosts_per_rack": hosts_per_rack, "n_hosts": n_hosts,
              "uplinks_per_spine": uplinks_per_spine}  # fmt: skip
    require_at_least("dual_tor", 1, **{key: count for key, count in counts.items() if count is not None})
    options = CableOptions(n_spines, uplinks_per_spine, oversubscription, uplink_bandwidth)
    tier, keys = Tier("dual_tor", "switch of a rack", "spine"), ("hosts_per_rack", "n_racks")
    racks = LeafUp(tier, keys, bandwidth, options, switch_ports, 2).laid(hosts_per_rack, n_racks, n_hosts)
    n_hosts, up = racks.n_hosts, racks.up
    n_spines, per_tor, n_tors = up.n_above, up.n_above * up.per_pair, 2 * racks.n_leaves
    n_uplinks = n_tors * per_tor
    require_buildable("dual_tor", n_hosts + n_tors + n_spines, 2 * (2 * n_hosts + n_uplinks))
    port, uplink = np.arange(2 * n_hosts), np.arange(n_uplinks)
    host = port // 2
    tor = n_hosts + np.concatenate((host // racks.per_leaf * 2 + port % 2, uplink // per_tor))
    spine = n_hosts + n_tors + uplink // up.per_pair % n_spines
    src, dst = both_ways(np.concatenate((host, tor[2 * n_hosts :])), np.concatenate((tor[: 2 * n_hosts], spine)))
    rate = np.tile(np.repeat([bandwidth, up.rate], [2 * n_hosts, n_uplinks]), 2)
    names = node_names(h=n_hosts, tor=n_tors, spine=n_spines)
    nodes = kinds(n_hosts, n_tors + n_spines)
    delay = by_tier([2 * n_hosts, n_uplinks], latency, uplink_latency)
    return Network("dual_tor", names, nodes, src, dst, rate, delay, left_out=up.left_out)
