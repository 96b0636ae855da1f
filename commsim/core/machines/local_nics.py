"""The NICs of its machine that are near a GPU, and the ones that its channels take where it has several to itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import Network
from commsim.core.network_queries import levels_from, live_nics

# Networks whose tables are kept: a network and the one that it is compared with.
KEPT = 2
_latest: list[tuple[Network, NDArray[np.int64] | None]] = []


def rails(network: Network) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the live NICs of machines, machine by machine, and the number of each in its own; int64[n_nics] each."""
    nics = np.asarray(live_nics(network), np.int64)
    nics = nics[np.argsort(network.machine[nics], kind="stable")]
    machine = network.machine[nics]
    return nics, np.arange(len(nics)) - np.searchsorted(machine, machine)


def links_to_nics(
    network: Network, nodes: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Count the links between nodes and each live NIC of their machines.

    Only where there is no other way are NVLinks among them, and then the count is beyond the number of nodes: what
    comes in by a NIC does not go through another GPU.

    Parameters
    ----------
    network : Network
        Network with the machines.
    nodes : int[n]
        Nodes of machines.

    Returns
    -------
    links : int64[n_rails, n]
        Links to the first NIC of a node's machine, to the second, and so on; twice the number of nodes without it.
    nics : int64[n_rails, n]
        Those NICs; -1 without.
    """
    machine, n_nodes = network.machine, network.n_nodes
    nics, rail = rails(network)
    inside = (machine[network.src] == machine[network.dst]) & (machine[network.src] >= 0)
    n_rails = int(rail.max(initial=-1)) + 1
    links, of = np.empty((n_rails, len(nodes)), np.int64), np.full((n_rails, len(nodes)), -1, np.int64)
    nic_of = np.full(int(machine.max(initial=-1)) + 2, -1, np.int64)  # the last one, of no machine, stays
    for r in range(n_rails):
        start = np.zeros(n_nodes, np.bool_)
        start[nics[rail == r]] = True
        nic_of[:-1] = -1
        nic_of[machine[nics[rail == r]]] = nics[rail == r]
        of[r] = nic_of[machine[nodes]]
        for n, some in enumerate((inside & (network.metric != NVLINK_METRIC), inside)):
            found = levels_from(start, network.src[some], network.dst[some])[nodes]
            found = np.where(found < 0, n_nodes, found)
            links[r] = np.where(links[r] < n_nodes, links[r], n_nodes + found) if n else found
    return links, of


def near_nics(network: Network, gpus: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the NICs that channels of some GPUs of one machine take: the nearest of each, int64[n_nics], rising.

    Parameters
    ----------
    network : Network
        Network with the machine.
    gpus : int[n]
        GPUs that are used.

    References
    ----------
    NCCL 2.30, ``src/graph/search.cc`` (ncclTopoSelectNets: first those that are local to each GPU) and ``topo.cc``
    (ncclTopoGetLocal).
    """
    links, nics = links_to_nics(network, gpus)
    near = (links == links.min(axis=0)) & (nics >= 0) if len(links) else nics >= 0
    return np.unique(nics[near])


def own_nics(network: Network) -> NDArray[np.int64] | None:
    """Return the NICs of each node that has several to itself, in the order in which its channels take them.

    GPUs with the same NICs near them divide these among themselves, ceil(NICs / GPUs) each. That is looked for in
    machines with more NICs than GPUs; elsewhere a GPU has one, or the routing draws one of those that are equally near.

    Returns
    -------
    int64[n_nodes, most] or None
        -1 behind the last NIC, and for nodes with fewer than two; None where no node has two. The last networks'
        are kept.

    References
    ----------
    NCCL 2.30, ``src/graph/topo.cc`` (ncclTopoGetLocalNetType: `netsPerGpu`, channel modulo `netsPerGpu`).
    """
    for known, found in _latest:
        if known is network:
            return found
    _latest[:] = [*_latest[-KEPT + 1 :], (network, _own_nics(network))]
    return _latest[-1][1]


def most_own(network: Network, nodes: NDArray[np.integer[Any]]) -> int:
    """Return how many NICs a node has to itself, at most; 1 where it has only one, or none."""
    own = own_nics(network)
    return 1 if own is None else max(1, int(np.count_nonzero(own[nodes] >= 0, axis=1).max()))


def _own_nics(network: Network) -> NDArray[np.int64] | None:
    machine, seats = network.machine, network.endpoints
    seats = seats[machine[seats] >= 0]
    if not seats.size:
        return None
    n_machines = int(machine.max()) + 1
    n_nics, n_seats = (np.bincount(machine[some], minlength=n_machines) for some in (live_nics(network), seats))
    seats = seats[(n_nics > n_seats)[machine[seats]]]
    if not seats.size:
        return None
    links, nics = links_to_nics(network, seats)
    near = (links == links.min(axis=0)) & (nics >= 0)
    keys, group = np.unique(np.vstack((machine[seats], near)), axis=1, return_inverse=True)
    group = group.ravel()
    order = np.argsort(group, kind="stable")
    n_sharing = np.bincount(group, minlength=keys.shape[1])
    place = np.empty(len(seats), np.int64)  # of a seat among those with the same NICs
    place[order] = np.arange(len(seats)) - np.repeat(np.cumsum(n_sharing) - n_sharing, n_sharing)
    n_near = near.sum(axis=0)
    each = -(-n_near // n_sharing[group])
    if each.max() < 2:
        return None
    own = np.full((network.n_nodes, int(each.max())), -1, np.int64)
    for seat in np.flatnonzero(each > 1).tolist():
        mine = nics[near[:, seat], seat]
        own[seats[seat], : each[seat]] = mine[(place[seat] * each[seat] + np.arange(each[seat])) % len(mine)]
    return own


def nics_of_channels(
    own: NDArray[np.int64], nodes: NDArray[np.integer[Any]], channel: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the NIC that a channel of each node takes: its NICs in turn, channel by channel; -1 without a choice.

    Parameters
    ----------
    own : int64[n_nodes, most]
        What :func:`own_nics` returns.
    nodes, channel : int[n]
        Nodes, and a channel of each.
    """
    n_own = np.count_nonzero(own >= 0, axis=1)[nodes]
    return np.asarray(own[nodes, channel % np.maximum(n_own, 1)])
