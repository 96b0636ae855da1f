"""The NICs of its machine that are near a GPU, and the ones that its channels take where it has several to itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.machines.parts import NVLINK_METRIC
from commsim.core.network import Network
from commsim.core.network_queries import AT_ONCE, fact, levels_from, live_nics


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
    links, nics = _all_links_to_nics(network)
    return links[:, nodes].astype(np.int64), nics[:, nodes].astype(np.int64)


@fact
def _all_links_to_nics(network: Network) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return both of :func:`links_to_nics` for all nodes."""
    machine, n_nodes = network.machine, network.n_nodes
    nics, rail = rails(network)
    inside = (machine[network.src] == machine[network.dst]) & (machine[network.src] >= 0)
    n_rails = int(rail.max(initial=-1)) + 1
    links, of = np.empty((n_rails, n_nodes), np.int32), np.full((n_rails, n_nodes), -1, np.int32)
    nic_of = np.full(int(machine.max(initial=-1)) + 2, -1, np.int64)  # the last one, of no machine, stays
    for r in range(n_rails):
        start = np.zeros(n_nodes, np.bool_)
        start[nics[rail == r]] = True
        nic_of[:-1] = -1
        nic_of[machine[nics[rail == r]]] = nics[rail == r]
        of[r] = nic_of[machine]
        for n, some in enumerate((inside & (network.metric != NVLINK_METRIC), inside)):
            found = levels_from(start, network.src[some], network.dst[some])
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


def own_nics(network: Network, used: NDArray[np.integer[Any]] | None = None) -> NDArray[np.int64] | None:
    """Return the NICs of each node that has several equally near, in the order in which its channels take them.

    GPUs with the same NICs near them divide these among themselves, ceil(NICs / GPUs) each: one each where there are as
    many GPUs or more. The first of a GPU is the one of its place among those that take part, with the bits in reverse
    where the NICs are a power of two. So NCCL's rings and trees use all of them, as its search finds room; its messages
    of an all-to-all go by the number of the device (`gpu.dev`), so that of some GPUs of a machine two may share a NIC.

    Parameters
    ----------
    network : Network
        Network with the machines.
    used : int[n], optional
        Nodes that take part, among which NICs are divided. Default: all that ranks can sit on.

    Returns
    -------
    int64[n_nodes, most] or None
        -1 behind the last NIC, and for nodes with only one near; None where all have one.

    References
    ----------
    NCCL 2.30.7, ``src/graph/topo.cc`` (ncclTopoGetLocalNetType: `netsPerGpu`, channel modulo `netsPerGpu`) and
    ``search.cc`` (ncclTopoSelectNets).
    """
    found = _choices(network)
    if found is None or used is None:
        return None if found is None else _own_of_all(network)
    seats, near, nics = found
    some = np.isin(seats, used)
    return _divided(network, seats[some], near[:, some], nics[:, some])


def most_own(network: Network, nodes: NDArray[np.integer[Any]]) -> int:
    """Return how many NICs a node has to itself, at most, where these nodes take part; 1 where it has one, or none."""
    own = own_nics(network, nodes)
    return 1 if own is None else max(1, int(np.count_nonzero(own[nodes] >= 0, axis=1).max()))


@fact
def _choices(network: Network) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]] | None:
    """Return seats that have several NICs equally near, whether each NIC is one of them, and the NICs; None without.

    NICs that are also near to seats with others near them, as where a NIC has no cable, cannot be divided evenly: the
    search gives these to channels as it finds room, and the routing draws them here.
    """
    machine = network.machine
    seats = network.endpoints[machine[network.endpoints] >= 0]
    some = np.zeros(int(machine.max(initial=-1)) + 1, np.bool_)
    some[machine[seats[_has_several_ways(network)[seats]]]] = True
    seats = seats[some[machine[seats]]]
    if not seats.size:
        return None
    links, nics = links_to_nics(network, seats)
    near = (links == links.min(axis=0)) & (nics >= 0)
    keys, group = np.unique(np.vstack((machine[seats], near)), axis=1, return_inverse=True)
    n_groups = np.zeros((int(machine.max()) + 1, len(near)), np.int64)  # that have each NIC of a machine near them
    np.add.at(n_groups, keys[0], keys[1:].T)
    shared = ((n_groups[keys[0]] > 1) & (keys[1:].T > 0)).any(axis=1)[group.ravel()]
    kept = (near.sum(axis=0) > 1) & ~shared
    return (seats[kept], near[:, kept], nics[:, kept]) if kept.any() else None


def _has_several_ways(network: Network) -> NDArray[np.bool_]:
    """Whether several shortest ways lead to each node from NICs of its machine, or none but NVLinks: bool[n_nodes]."""
    parts = [np.empty((2, 0), np.int32)]
    for low in range(0, network.n_links, AT_ONCE):  # of millions of links, few are kept
        src, dst, metric = (column[low : low + AT_ONCE] for column in (network.src, network.dst, network.metric))
        machine = network.machine[src]
        inside = (metric != NVLINK_METRIC) & (machine >= 0) & (machine == network.machine[dst])
        parts.append(np.stack((src[inside], dst[inside])))
    src, dst = np.concatenate(parts, axis=1)
    parts.clear()
    start = np.zeros(network.n_nodes, np.bool_)
    start[live_nics(network)] = True
    level, n_ways = levels_from(start, src, dst), start.astype(np.int64)
    onward = level[dst] == level[src] + 1
    src, dst = src[onward], dst[onward]
    for depth in range(int(level.max(initial=0))):
        some = level[src] == depth
        n_ways += np.bincount(dst[some], n_ways[src[some]], network.n_nodes).astype(np.int64)
    return np.asarray(n_ways != 1) if start.any() else np.zeros(network.n_nodes, np.bool_)


@fact
def _own_of_all(network: Network) -> NDArray[np.int64] | None:
    return None if (found := _choices(network)) is None else _divided(network, *found)


def _divided(
    network: Network, seats: NDArray[np.int64], near: NDArray[np.bool_], nics: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Divide near NICs among the seats that have the same: int64[n_nodes, most], as :func:`own_nics` returns it."""
    keys, group = np.unique(np.vstack((network.machine[seats], near)), axis=1, return_inverse=True)
    n_sharing = np.bincount(group.ravel(), minlength=keys.shape[1])[group.ravel()]
    n_near = near.sum(axis=0)
    each = -(-n_near // np.maximum(n_sharing, 1))
    own = np.full((network.n_nodes, int(each.max(initial=1))), -1, np.int64)
    place = _place_in_group(group.ravel(), _number_in_machine(network)[seats])
    for seat in range(len(seats)):
        mine = nics[near[:, seat], seat]
        first = int(place[seat])
        first = _mirrored(first, len(mine)) if len(mine).bit_count() == 1 else first
        own[seats[seat], : each[seat]] = mine[(first + np.arange(each[seat])) % len(mine)]
    return own


def _place_in_group(group: NDArray[np.intp], number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each seat among those of its group, by their numbers, int64[n_seats]."""
    order = np.lexsort((number, group))
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    return place


def _number_in_machine(network: Network) -> NDArray[np.int64]:
    """Return the number of each seat within its machine, int64[n_nodes]."""
    seats = network.endpoints
    seats = seats[np.argsort(network.machine[seats], kind="stable")]
    machine = network.machine[seats]
    number = np.zeros(network.n_nodes, np.int64)
    number[seats] = np.arange(len(seats)) - np.searchsorted(machine, machine)
    return number


def _mirrored(value: int, n: int) -> int:
    """Return the bits of a value below `n`, a power of two, in reverse; higher ones are left out."""
    bits = n.bit_length() - 1
    return sum(((value >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))


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
