"""The leaf-spine: racks of hosts under leaves, every leaf cabled to every spine."""

from __future__ import annotations

import math

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology


@topology(sized_by=("hosts_per_leaf", "n_leaves"))
def leaf_spine(
    n_leaves: int,
    n_spines: int,
    hosts_per_leaf: int,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    uplink_bandwidth: Bandwidth | None = None,
    oversubscription: float | None = None,
    uplinks_per_spine: int = 1,
    latency: Seconds = LINK_LATENCY,
) -> Network:
    """Leaf-spine: a two-tier folded Clos, every leaf cabled to every spine.

    Parameters
    ----------
    n_leaves, n_spines, hosts_per_leaf : int
        Number of leaves, of spines and of hosts of a leaf, at least 1 each. Hosts of one leaf are numbered
        consecutively.
    bandwidth : float, bytes/s
        Bandwidth of each link between host and leaf, one way.
    uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each link between leaf and spine; by default that of the hosts, or set by `oversubscription`.
    oversubscription : float, optional
        Capacity of a leaf's links to hosts over that of its links to spines: 2 for 2:1. It sets the rate of the
        uplinks, not their number, so that one may stand for several real cables; `uplinks_per_spine` sets the number.
        By default uplinks are as fast as hosts' links, whatever ratio that gives.
    uplinks_per_spine : int
        Parallel cables between each leaf and each spine.
    latency : float, s
        Latency of each link; two links lie between hosts of one leaf, four between others.

    Returns
    -------
    Network
        Hosts ``h0 …``, ``leaf0 …``, ``spine0 …``; ``2 n_leaves (hosts_per_leaf + n_spines uplinks_per_spine)`` links.

    Raises
    ------
    InputError
        If a count or `oversubscription` is not positive, `oversubscription` contradicts `uplink_bandwidth`, or the
        network would be too large.

    References
    ----------
    Greenberg et al., "VL2: a scalable and flexible data center network", SIGCOMM 2009, section 4.1.
    """
    require_at_least(
        "leaf_spine", 1, n_leaves=n_leaves, n_spines=n_spines, hosts_per_leaf=hosts_per_leaf,
        uplinks_per_spine=uplinks_per_spine,
    )  # fmt: skip
    n_hosts, n_uplinks = n_leaves * hosts_per_leaf, n_leaves * n_spines * uplinks_per_spine
    require_buildable("leaf_spine", n_hosts + n_leaves + n_spines, 2 * (n_hosts + n_uplinks))
    balanced = hosts_per_leaf * bandwidth / (n_spines * uplinks_per_spine)
    uplink = _uplink_bandwidth(bandwidth, uplink_bandwidth, oversubscription, balanced)
    host, cable = np.arange(n_hosts), np.arange(n_uplinks)
    leaf = n_hosts + np.concatenate((host // hosts_per_leaf, cable // (n_spines * uplinks_per_spine)))
    spine = n_hosts + n_leaves + cable // uplinks_per_spine % n_spines
    src, dst = both_ways(np.concatenate((host, leaf[n_hosts:])), np.concatenate((leaf[:n_hosts], spine)))
    rate = np.tile(np.repeat([bandwidth, uplink], [n_hosts, n_uplinks]), 2)
    names = node_names(h=n_hosts, leaf=n_leaves, spine=n_spines)
    return Network("leaf_spine", names, kinds(n_hosts, n_leaves + n_spines), src, dst, rate, latency)


def _uplink_bandwidth(bandwidth: float, given: float | None, oversubscription: float | None, balanced: float) -> float:
    """Rate of one uplink cable; `balanced` is the rate at which a leaf is not oversubscribed."""
    if oversubscription is None:
        return bandwidth if given is None else given
    if not 0 < oversubscription < math.inf:
        raise InputError(f"leaf_spine needs a positive oversubscription, got {oversubscription}")
    wanted = balanced / oversubscription
    if given is not None and not math.isclose(given, wanted, rel_tol=1e-9):
        raise InputError(
            f"leaf_spine: uplink_bandwidth {given:.6g} B/s is an oversubscription of {balanced / given:.6g}, which "
            f"contradicts oversubscription={oversubscription}; give one of the two"
        )
    return wanted
