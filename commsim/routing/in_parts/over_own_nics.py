"""Routes of GPUs that have several NICs near them: each channel leaves and arrives by one of its GPU's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.local_nics import nics_of_channels, own_nics, rails
from commsim.core.network import Network

from ..link_rows import only_sends
from ..routes import Routes

Ints = NDArray[np.int64]


# Finds routes from nodes to nodes by a routing; with "" by the one that was asked for.
Finder = Callable[[Ints, Ints, str], Routes]


def over_own_nics(
    network: Network, ends: tuple[Ints, Ints, Ints], used: NDArray[np.integer[Any]] | None, find: Finder
) -> Routes | None:
    """Find routes in parts: to the NIC of the channel, over the network to the other one, and from it.

    With PXN the NIC that a message leaves by is the one of the receiver's rail, by way of the GPU that it belongs to.

    Parameters
    ----------
    network : Network
        Network with the machines.
    ends : (int64[n_routes], int64[n_routes], int64[n_routes])
        Nodes that routes begin and end at, and channels.
    used : int[n], optional
        Nodes that take part, among which NICs are divided. Default: all.
    find : callable
        Finds the routes of all channels between other nodes, within a machine by the only way.

    Returns
    -------
    Routes or None
        None where no route leaves or arrives by a NIC of several.
    """
    own = own_nics(network, used)
    if own is None:
        return None
    src, dst, channel = ends
    apart = network.machine[src] != network.machine[dst]
    leaving, arriving = (
        np.where(apart & (nic >= 0), nic, node)
        for node, nic in ((node, nics_of_channels(own, node, channel)) for node in (src, dst))
    )
    if ((leaving == src) & (arriving == dst)).all():
        return None
    moved = np.flatnonzero(apart & only_sends(network)[src] & (leaving != src) & (arriving != dst))
    leaving[moved] = _same_rail(network, leaving[moved], arriving[moved])
    by = src.copy()
    by[moved] = _owner(network, own, src[moved], leaving[moved])
    ways = (src, by, leaving, arriving, dst)
    parts = [find(a, b, "" if a is leaving else "shortest") for a, b in itertools.pairwise(ways)]
    row = np.concatenate([np.repeat(np.arange(len(src)), np.diff(part.first)) for part in parts])
    order = np.argsort(row, kind="stable")
    last = np.cumsum(np.bincount(row, minlength=len(src)))
    link, share = (np.concatenate([getattr(part, name) for part in parts])[order] for name in ("link", "share"))
    latency = np.asarray(sum(part.latency for part in parts), np.float64)
    return Routes(np.append(0, last).astype(np.int64), link, share, latency)


def _same_rail(network: Network, leaving: Ints, arriving: Ints) -> Ints:
    """Return the NIC of the rail of `arriving` in the machine of `leaving`; `leaving` where that has no such rail."""
    nics, number = rails(network)
    machine = network.machine[nics]
    rail = np.zeros(network.n_nodes, np.int64)
    rail[nics] = number
    wanted = network.machine[leaving]
    at = np.minimum(np.searchsorted(machine, wanted) + rail[arriving], len(nics) - 1)
    return np.where(machine[at] == wanted, nics[at], leaving)


def _owner(network: Network, own: Ints, src: Ints, nic: Ints) -> Ints:
    """Return the first GPU that has each NIC to itself, its sender if that is one; the sender where none has."""
    owner = np.full(network.n_nodes, -1, np.int64)
    node, place = np.nonzero(own >= 0)
    owner[own[node, place][::-1]] = node[::-1]
    found = np.where(owner[nic] >= 0, owner[nic], src)
    return np.where((own[src] == nic[:, None]).any(axis=1), src, found)
