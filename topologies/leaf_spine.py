"""The leaf-spine: racks of hosts under leaves, every leaf cabled to every spine."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Ratio, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology
from .switch_ports import LEAVES, LeafUp
from .uplinks import CableOptions, Tier, by_tier


@topology(sized_by=("hosts_per_leaf", "n_leaves"))
def leaf_spine(
    n_leaves: int | None = None,
    n_spines: int | None = None,
    hosts_per_leaf: int | None = None,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    uplink_bandwidth: Bandwidth | None = None,
    oversubscription: Ratio | None = None,
    uplinks_per_spine: int | None = None,
    latency: Seconds = LINK_LATENCY,
    switch_ports: int | None = None,
    n_hosts: int | None = None,
    uplink_latency: Seconds | None = None,
) -> Network:
    """Leaf-spine: a two-tier folded Clos, every leaf cabled to every spine.

    Parameters
    ----------
    n_leaves : int, optional
        Number of leaves, at least 1; by default as few as take `n_hosts`.
    n_spines : int, optional
        Number of spines; by default as many as a leaf has cables up, which are then as few as are non-blocking, or as
        `oversubscription` says; with `switch_ports` as few as have ports for all cables.
    hosts_per_leaf : int, optional
        Number of hosts of a leaf, numbered consecutively; by default as few as take `n_hosts` on so many leaves, or as
        many as `switch_ports` have room for.
    bandwidth : float, bytes/s
        Bandwidth of each link between host and leaf, one way.
    uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each cable between leaf and spine, one way; by default that of the hosts' links.
    oversubscription : float, optional
        Capacity of a leaf's links to hosts over that of its cables to spines, such as 2:1. It says how many cables
        there are: with fewer than spines, the spines that would get none are left out. By default the ratio that
        `n_spines` and `uplinks_per_spine` give.
    uplinks_per_spine : int, optional
        Parallel cables between each leaf and each spine; by default 1, or as many as `oversubscription` asks for.
    latency : float, s
        Latency of each link; two links lie between hosts of one leaf, four between others.
    switch_ports : int, optional
        Ports of each switch, such as 64; a network that needs switches with more is refused. By default any number.
    n_hosts : int, optional
        Number of all hosts, if the last leaf is not full; by default all are.
    uplink_latency : float, s, optional
        Latency of each cable between leaf and spine; by default that of the hosts' links.

    Returns
    -------
    Network
        Hosts ``h0 …``, ``leaf0 …``, ``spine0 …``; ``2 (n_hosts + n_leaves n_spines uplinks_per_spine)`` links.

    Raises
    ------
    InputError
        If a count or `oversubscription` is not positive, no number of cables has this `oversubscription`, or the
        network would be too large.

    References
    ----------
    Greenberg et al., "VL2: a scalable and flexible data center network", SIGCOMM 2009, section 4.1.
    """
    counts = {"n_leaves": n_leaves, "n_spines": n_spines, "hosts_per_leaf": hosts_per_leaf, "n_hosts": n_hosts,
              "uplinks_per_spine": uplinks_per_spine}  # fmt: skip
    require_at_least("leaf_spine", 1, **{key: count for key, count in counts.items() if count is not None})
    options = CableOptions(n_spines, uplinks_per_spine, oversubscription, uplink_bandwidth)
    leaf_up = LeafUp(Tier("leaf_spine", "leaf", "spine"), LEAVES, bandwidth, options, switch_ports)
    leaves = leaf_up.laid(hosts_per_leaf, n_leaves, n_hosts)
    n_hosts, n_leaves, up = leaves.n_hosts, leaves.n_leaves, leaves.up
    n_uplinks = n_leaves * up.n_above * up.per_pair
    require_buildable("leaf_spine", n_hosts + n_leaves + up.n_above, 2 * (n_hosts + n_uplinks))
    host, cable = np.arange(n_hosts), np.arange(n_uplinks)
    leaf = n_hosts + np.concatenate((host // leaves.per_leaf, cable // (up.n_above * up.per_pair)))
    spine = n_hosts + n_leaves + cable // up.per_pair % up.n_above
    src, dst = both_ways(np.concatenate((host, leaf[n_hosts:])), np.concatenate((leaf[:n_hosts], spine)))
    rate = np.tile(np.repeat([bandwidth, up.rate], [n_hosts, n_uplinks]), 2)
    names = node_names(h=n_hosts, leaf=n_leaves, spine=up.n_above)
    nodes = kinds(n_hosts, n_leaves + up.n_above)
    delay = by_tier([n_hosts, n_uplinks], latency, uplink_latency)
    return Network("leaf_spine", names, nodes, src, dst, rate, delay, left_out=up.left_out)
