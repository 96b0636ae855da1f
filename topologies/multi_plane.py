"""Multi-plane: several leaf-spines side by side, with one port of every host in each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network, kinds, node_names
from commsim.core.units import Bandwidth, Ratio, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology
from .leaf_spine import leaf_spine
from .switch_ports import LEAVES, LeafUp
from .uplinks import CableOptions, Tier


@topology(sized_by=("hosts_per_leaf", "n_leaves"))
def multi_plane(
    n_planes: int,
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
    """Multi-plane: `n_planes` separate leaf-spines that share nothing but the hosts, which have a port in each.

    Parameters
    ----------
    n_planes : int
        Planes, at least 1; with two, hosts are dual-homed and nothing that fails in one plane is felt in the other.
    n_leaves : int, optional
        Number of leaves of every plane, at least 1; by default as few as take `n_hosts`.
    n_spines, hosts_per_leaf : int, optional
        Number of spines of every plane, and of hosts of a leaf; as of ``leaf_spine``.
    bandwidth : float, bytes/s
        Bandwidth of each link between host and leaf, one way: of one port, not of all ports of a host.
    uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each cable between leaf and spine, one way; by default that of the hosts' ports.
    oversubscription, uplinks_per_spine : float and int, optional
        Capacity of a leaf's links to hosts over that of its cables to spines in its plane, and parallel cables between
        each leaf and each spine; as of ``leaf_spine``.
    latency : float, s
        Latency of each link; two links lie between hosts of one leaf, four between others.
    switch_ports : int, optional
        Ports of each switch; as of ``leaf_spine``.
    n_hosts : int, optional
        Number of all hosts, if the last leaves are not full; by default all are.
    uplink_latency : float, s, optional
        Latency of each cable between leaf and spine; by default that of the hosts' links.

    Returns
    -------
    Network
        Hosts ``h0 …``, then plane by plane ``plane0_leaf0 …`` and ``plane0_spine0 …``.

    Raises
    ------
    InputError
        If a count is not positive, no number of cables has this `oversubscription`, or the network would be too large.

    References
    ----------
    Qian et al., "Alibaba HPN: a data center network for large language model training", SIGCOMM 2024, section 4: the
    dual plane.
    """
    require_at_least("multi_plane", 1, n_planes=n_planes)
    counts = {"n_leaves": n_leaves, "n_spines": n_spines, "hosts_per_leaf": hosts_per_leaf, "n_hosts": n_hosts,
              "uplinks_per_spine": uplinks_per_spine}  # fmt: skip
    require_at_least("multi_plane", 1, **{key: count for key, count in counts.items() if count is not None})
    options = CableOptions(n_spines, uplinks_per_spine, oversubscription, uplink_bandwidth)
    leaf_up = LeafUp(Tier("multi_plane", "leaf", "spine"), LEAVES, bandwidth, options, switch_ports)
    leaves = leaf_up.laid(hosts_per_leaf, n_leaves, n_hosts)
    n_hosts, n_leaves, up = leaves.n_hosts, leaves.n_leaves, leaves.up
    require_buildable("multi_plane", n_hosts + n_planes * (n_leaves + 1), 2 * n_planes * (n_hosts + n_leaves))
    n_spines = up.n_above
    plane = leaf_spine(
        n_leaves, n_spines, leaves.per_leaf, bandwidth, up.rate, uplinks_per_spine=up.per_pair, latency=latency,
        n_hosts=n_hosts, uplink_latency=uplink_latency,
    )  # fmt: skip
    n_switches = n_planes * (n_leaves + n_spines)
    require_buildable("multi_plane", n_hosts + n_switches, n_planes * plane.n_links)

    def in_every_plane(end: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the ends of all planes' cables, and then of the same cables the other way round."""
        shift = np.arange(n_planes, dtype=np.int32)[:, None] * np.int32(n_leaves + n_spines)
        return np.where(end < n_hosts, end, end + shift).reshape(n_planes, 2, -1).swapaxes(0, 1).ravel()

    names = {f"plane{i}_{tier}": n for i in range(n_planes) for tier, n in (("leaf", n_leaves), ("spine", n_spines))}
    rate, delay = (np.repeat(of.reshape(2, 1, -1), n_planes, axis=1).ravel() for of in (plane.bandwidth, plane.latency))
    missing = f"{up.left_out} in each plane" if up.left_out else ""
    return Network(
        "multi_plane", node_names(h=n_hosts, **names), kinds(n_hosts, n_switches),
        in_every_plane(plane.src), in_every_plane(plane.dst), rate, delay, left_out=missing,
    )  # fmt: skip
