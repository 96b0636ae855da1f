"""The dragonfly: groups of routers, every two routers of a group and every two groups joined by a cable."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network, both_ways, kinds, node_names
from commsim.core.units import Bandwidth, Ratio, Seconds

from . import LINK_BANDWIDTH, LINK_LATENCY, require_at_least, require_buildable, topology
from .uplinks import Tier, nearest


@topology(sized_by=("p", "n_groups"))
def dragonfly(
    p: int,
    a: int,
    h: int,
    n_groups: int | None = None,
    bandwidth: Bandwidth = LINK_BANDWIDTH,
    uplink_bandwidth: Bandwidth | None = None,
    latency: Seconds = LINK_LATENCY,
    global_latency: Seconds | None = None,
    oversubscription: Ratio | None = None,
) -> Network:
    """Dragonfly: fully connected groups of routers, and fully connected groups.

    Parameters
    ----------
    p, a, h : int
        Hosts per router, routers per group, and cables to other groups per router; at least 1 each. The paper
        recommends a = 2p = 2h.
    n_groups : int, optional
        Number of groups, from 1 to ``a h + 1``, the default. With fewer, the cables to other groups are shared out
        evenly, so that two groups have several; one that is then left over in every group is not laid.
    bandwidth : float, bytes/s
        Bandwidth of each link, one way.
    uplink_bandwidth : float, bytes/s, optional
        Bandwidth of each cable between groups, one way; by default that of the other links.
    latency : float, s
        Latency of each link.
    global_latency : float, s, optional
        Latency of each link between groups; by default that of the others.
    oversubscription : float, optional
        Capacity of a group's links to hosts over that of its cables to other groups, such as 2:1. It says how many of
        the ``a h`` cables of a group are laid: as many to each other group. By default all.

    Returns
    -------
    Network
        Hosts ``h0 …`` and routers ``router0 …``, group by group; the first coordinate is the group, the second the
        router in it. Routed minimally: a cable in the own group, one between groups, and one in the other group.

    Raises
    ------
    InputError
        If a count is below 1, `n_groups` above ``a h + 1``, no number of cables has this `oversubscription`, or the
        network would be too large.

    References
    ----------
    Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008, section 3.
    """
    groups = a * h + 1 if n_groups is None else n_groups
    require_at_least("dragonfly", 1, p=p, a=a, h=h, n_groups=groups)
    if groups > a * h + 1:
        raise InputError(f"dragonfly needs n_groups of at most a h + 1 = {a * h + 1}, got n_groups={n_groups}")
    n_routers = a * groups
    n_hosts = p * n_routers
    require_buildable("dragonfly", n_hosts + n_routers, n_routers * (2 * p + a - 1 + h))
    host, group = np.arange(n_hosts), np.arange(groups)[:, None]
    one, other = np.triu_indices(a, 1)
    rate = bandwidth if uplink_bandwidth is None else uplink_bandwidth
    far = _global_cables(groups, a, _n_global(p, a, h, groups, bandwidth / rate, rate, oversubscription))
    ends = [
        (host, n_hosts + host // p),
        ((n_hosts + group * a + one).ravel(), (n_hosts + group * a + other).ravel()),
        (n_hosts + far[0], n_hosts + far[1]),
    ]
    src, dst = both_ways(*np.concatenate(ends, axis=1))
    n_cables = [len(near) for near, _ in ends]
    rates = [bandwidth, bandwidth, rate]
    delays = [latency, latency, latency if global_latency is None else global_latency]
    router = np.concatenate((host // p, np.arange(n_routers)))
    return Network(
        "dragonfly", node_names(h=n_hosts, router=n_routers), kinds(n_hosts, n_routers), src, dst,
        np.tile(np.repeat(rates, n_cables), 2), np.tile(np.repeat(delays, n_cables), 2), routing="minimal",
        coordinates=np.stack((router // a, router % a), axis=1),
    )  # fmt: skip


def _n_global(p: int, a: int, h: int, groups: int, port: float, rate: float, ratio: float | None) -> int:
    """Ports of a group for cables to other groups; `port` is the rate of a host in cables of `rate`."""
    if ratio is None or groups == 1:
        return a * h
    near = [n * (groups - 1) for n in range(1, a * h // (groups - 1) + 1)]
    tier = Tier("dragonfly", "group", "group")
    return nearest(tier, p * a * port, rate, ratio, near, f"a={a},h={h},n_groups={groups}")


def _global_cables(groups: int, a: int, n: int) -> NDArray[np.int64]:
    """Routers at the two ends of the cables between groups.

    Port q of the `n` of a group, shared out evenly over its routers, leads ``q % (groups - 1) + 1`` groups on. The port
    that leads as many groups back is at the other end, so every distance comes with its opposite: of the last round
    through the distances, which may be incomplete, those nearest to half of the groups are taken.

    Returns
    -------
    int64[2, n_cables]
    """
    if groups == 1:
        return np.empty((2, 0), np.int64)
    rounds, left = divmod(n, groups - 1)
    distance = np.arange(1, groups)
    off_centre = np.abs(2 * distance - groups)  # 0 for half of the groups, and equal for a distance and its opposite
    outermost = np.sort(off_centre[off_centre > 0])[: left // 2 * 2].max(initial=0)
    taken = distance[(off_centre <= outermost) & ((off_centre > 0) | (left % 2 == 1))]
    there = np.concatenate((np.tile(distance, rounds), taken))
    copy = np.concatenate((np.repeat(np.arange(rounds), groups - 1), np.full(len(taken), rounds)))
    port = copy * (groups - 1) + np.concatenate((np.tile(distance - 1, rounds), np.arange(len(taken))))
    opposite = np.empty_like(port)
    opposite[np.lexsort((there, copy))] = port[np.lexsort((groups - there, copy))]
    group = np.arange(groups)[:, None]
    far = (group + there) % groups
    near_router, far_router = group * a + port * a // n, far * a + opposite * a // n
    once = group < far
    return np.stack((np.broadcast_to(near_router, once.shape)[once], far_router[once]))
