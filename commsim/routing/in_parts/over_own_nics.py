"""Routes of GPUs that have several NICs to themselves: each channel leaves and arrives by one of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.local_nics import nics_of_channels, own_nics, rails
from commsim.core.network import Network

from ..link_rows import only_sends
from ..walk import Routes

Ints = NDArray[np.int64]


# Finds routes from nodes to nodes by a routing; with "" by the one that was asked for.
Finder = Callable[[Ints, Ints, str], Routes]


def over_own_nics(network: Network, src: Ints, dst: Ints, channel: Ints, find: Finder) -> Routes | None:
    """Find routes in three parts: to the NIC of the channel, over the network to the other one, and from it.

    With PXN the NIC that a message leaves by is the one of the receiver's rail.

    Parameters
    ----------
    network : Network
        Network with the machines.
    src, dst, channel : int64[n_routes]
        Nodes and channels.
    find : callable
        Finds the routes of all channels between other nodes, within a machine by the only way.

    Returns
    -------
    Routes or None
        None where no route leaves or arrives by a NIC of several.
    """
    own = own_nics(network)
    if own is None:
        return None
    apart = network.machine[src] != network.machine[dst]
    leaving, arriving = (
        np.where(apart & (nic >= 0), nic, node)
        for node, nic in ((node, nics_of_channels(own, node, channel)) for node in (src, dst))
    )
    if ((leaving == src) & (arriving == dst)).all():
        return None
    moved = np.flatnonzero(apart & only_sends(network)[src] & (leaving != src) & (arriving != dst))
    leaving[moved] = _same_rail(network, leaving[moved], arriving[moved])
    parts = (find(src, leaving, "shortest"), find(leaving, arriving, ""), find(arriving, dst, "shortest"))
    row = np.concatenate([np.repeat(np.arange(len(src)), np.diff(part.first)) for part in parts])
    order = np.argsort(row, kind="stable")
    ends = np.cumsum(np.bincount(row, minlength=len(src)))
    link, share = (np.concatenate([getattr(part, name) for part in parts])[order] for name in ("link", "share"))
    latency = np.asarray(sum(part.latency for part in parts), np.float64)
    return Routes(np.append(0, ends).astype(np.int64), link, share, latency)


def _same_rail(network: Network, leaving: Ints, arriving: Ints) -> Ints:
    """Return the NIC of the rail of `arriving` in the machine of `leaving`; `leaving` where that has no such rail."""
    nics, number = rails(network)
    machine = network.machine[nics]
    rail = np.zeros(network.n_nodes, np.int64)
    rail[nics] = number
    wanted = network.machine[leaving]
    at = np.minimum(np.searchsorted(machine, wanted) + rail[arriving], len(nics) - 1)
    return np.where(machine[at] == wanted, nics[at], leaving)
