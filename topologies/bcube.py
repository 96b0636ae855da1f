"""BCube: servers with several ports on cheap switches, forwarding for each other."""

from __future__ import annotations

import numpy as np

from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, bounded_power, require_at_least, require_buildable, topology


@topology(sized_by=("n", "k"))
def bcube(n: int, k: int, bandwidth: Bandwidth = LINK_BANDWIDTH, latency: Seconds = LINK_LATENCY) -> Network:
    """BCube(n, k): n^(k+1) hosts of k+1 ports on k+1 levels of n-port switches; hosts forward, switches join no switch.

    Parameters
    ----------
    n : int
        Ports per switch, at least 1.
    k : int
        Highest level, at least 0; BCube(n, 0) is a star.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    latency : float, s
        Latency of each link; two links lie between hosts for every digit in which their addresses differ.

    Returns
    -------
    Network
        Hosts ``h0 …``, numbered by their address in base n, and switches ``level0_0 …``, n^k per level. Coordinates
        are the digits of the address, that of level 0 first; a switch of level l spans digit l.

    Raises
    ------
    InputError
        If `n` is below 1, `k` is negative, or the network would be too large.

    References
    ----------
    Guo et al., "BCube: a high performance, server-centric network architecture for modular data centers", SIGCOMM 2009,
    section 3.
    """
    require_at_least("bcube", 1, n=n)
    require_at_least("bcube", 0, k=k)
    per_level = bounded_power("bcube", n, k)
    n_hosts = per_level * n
    require_buildable("bcube", n_hosts + (k + 1) * per_level, 2 * (k + 1) * n_hosts)
    host, level = np.arange(n_hosts)[:, None], np.arange(k + 1)
    digits = host // n**level % n
    # The switch of level l has the address of its hosts without digit l.
    switch = host // n ** (level + 1) * n**level + host % n**level
    src, dst = both_ways(np.repeat(host, k + 1), n_hosts + switch + level * per_level)
    at = np.empty((n_hosts + (k + 1) * per_level, k + 1), np.int32)
    at[:n_hosts] = digits
    at[n_hosts + switch + level * per_level] = digits[:, None, :]
    at[n_hosts + np.arange((k + 1) * per_level), np.repeat(level, per_level)] = -1
    names = node_names(h=n_hosts, **{f"level{i}_": per_level for i in range(k + 1)})
    forwards = np.ones(len(names), bool)
    return Network(
        "bcube", names, kinds(n_hosts, (k + 1) * per_level), src, dst, bandwidth, latency,
        forwards=forwards, coordinates=at,
    )  # fmt: skip
