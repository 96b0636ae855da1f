"""Machines that differ only in the numbers of their nodes and links: what is found in one of them holds in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import expected_work
from commsim.core.network import Network
from commsim.core.network_queries import fact
from commsim.core.pinned_routes import gathered
from commsim.routing.link_rows import PART, links_in_rows, only_sends
from commsim.routing.merge_switches import fabric_nodes

if TYPE_CHECKING:
    from commsim.routing.ports_kernel import Ports
    from commsim.routing.routes import Routes

    Walk = Callable[[Network, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], str], tuple[Routes, int]]

# Machines from which on comparing them pays; nodes of each up to which all pairs of them may be routed.
LEAST, MAX_NODES = 64, 1024
# Machines that are compared at once.
AT_ONCE = 1024
# Routes up to which those inside of machines are kept, which no hash changes; and for how many sets.
MAX_KEPT, SETS = 1 << 20, 2
Inside = tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]
_latest: list[tuple[Network, NDArray[np.int64], NDArray[np.int64], Inside]] = []


@dataclass(frozen=True, slots=True, eq=False)
class AlikeMachines:
    """Machines of one form: the nodes of each, and its links, stand in the same order.

    Parameters
    ----------
    first : int32[n]
        Nodes of the first machine, rising.
    place : int16[n_nodes]
        Place of each node among those of its machine; -1 outside of machines.
    link : int32[m, n_machines]
        Links with an end in each machine, rising.
    ends : int32[m, 2]
        Places of both ends of these links; n for a switch of the fabric, n + 1 for another node outside.
    """

    first: NDArray[np.int32]
    place: NDArray[np.int16]
    link: NDArray[np.int32]
    ends: NDArray[np.int32]

    def links(self, row: NDArray[np.int32], machine: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return links of machines, int32[k], by their row in the first machine's."""
        found = np.empty(len(row), np.int32)
        for low in range(0, len(row), PART):
            some = slice(low, low + PART)
            found[some] = self.link[row[some], machine[some]]
        return found


@fact
def alike_machines(network: Network) -> AlikeMachines | None:
    """Compare the machines of a network; None where one differs from the first, two are joined directly, or few are."""
    machine = network.machine
    n_machines = int(machine.max(initial=-1)) + 1
    if n_machines < LEAST:
        return None
    node = _by_machine(machine + np.int32(1), n_machines)
    link = _by_machine(_owners(network), n_machines)
    if node is None or link is None or len(node) > MAX_NODES:
        return None
    of_nodes = network.kind, network.forwards, only_sends(network)
    if any((column[at] != column[at[0]]).any() for column in of_nodes for at in node):
        return None
    n, place = len(node), np.full(network.n_nodes, -1, np.int16)
    place[fabric_nodes(network)] = n
    place[node] = np.arange(n, dtype=np.int16)[:, np.newaxis]
    of_first = [place[column[link[:, 0]]] for column in (network.src, network.dst)]
    for low in range(0, n_machines, AT_ONCE):  # a part of the machines, whose links are near to each other
        at = link[:, low : low + AT_ONCE]
        if (network.metric[at] != network.metric[link[:, :1]]).any():
            return None
        own = np.arange(low, low + at.shape[1], dtype=np.int32)
        for places, column in zip(of_first, (network.src, network.dst), strict=True):
            of = column[at]
            if (place[of] != places[:, np.newaxis]).any() or ((machine[of] != own) & (machine[of] >= 0)).any():
                return None
    ends = np.stack(of_first, axis=1).astype(np.int32)
    ends[ends < 0] = n + 1
    place[place == n] = -1
    return AlikeMachines(node[:, 0].copy(), place, link, ends)


def routes_inside(
    network: Network,
    machines: AlikeMachines,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    walk: Walk,
    is_hashed: bool = True,
) -> Inside:
    """Find the routes that stay inside of their machines, where only one is shortest.

    A way through the fabric costs a link out of the machine and one back at least. Where each is dearer than the way
    inside, a search in the whole network finds what one in the first machine does.

    Parameters
    ----------
    network, machines : Network, AlikeMachines
        Network, and its machines.
    src, dst : int64[n_routes]
        Nodes.
    walk : callable
        :func:`commsim.routing.walk.walk`, which searches in one machine.
    is_hashed : bool
        Whether the same routes may be asked for with another hash.

    Returns
    -------
    which, first, link, latency
        Numbers of the routes found, rising, and their columns of Routes. The last hashed ones are kept.
    """
    for known, begin, end, found in _latest:
        if known is network and np.array_equal(begin, src) and np.array_equal(end, dst):
            return found
    found = _found_inside(network, machines, src, dst, walk)
    if is_hashed and len(src) <= MAX_KEPT:
        _latest[:] = [(network, src, dst, found), *_latest[: SETS - 1]]
    return found


def _found_inside(
    network: Network, machines: AlikeMachines, src: NDArray[np.int64], dst: NDArray[np.int64], walk: Walk
) -> Inside:
    n, machine, ends = len(machines.first), network.machine, machines.ends
    which = np.flatnonzero((machine[src] >= 0) & (machine[src] == machine[dst]))
    pair = machines.place[src[which]].astype(np.int64) * n + machines.place[dst[which]]
    asked = np.flatnonzero(np.bincount(pair, minlength=n * n))
    inside = np.flatnonzero((ends < n).all(axis=1))
    first, link, is_known = _shortest_inside(network, machines, asked, inside, walk)
    row = np.full(n * n, -1, np.int64)
    row[asked[is_known]] = np.flatnonzero(is_known)
    found = row[pair]
    which, found = which[found >= 0], found[found >= 0]
    first, at = gathered(first, inside[link].astype(np.int32), found)
    length = np.diff(first)
    links = machines.links(at, np.repeat(machine[src[which]], length))
    latency = np.zeros(len(which))
    for hop in range(int(length.max(initial=0))):  # hop by hop: sums then round as those of a walk do
        further = np.flatnonzero(length > hop)
        latency[further] += network.latency[links[first[further] + hop]]
    return which, first, links, latency


def _shortest_inside(
    network: Network, machines: AlikeMachines, pairs: NDArray[np.intp], inside: NDArray[np.intp], walk: Walk
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """Route pairs of nodes in the first machine alone.

    Returns
    -------
    first, link, is_known : int64[n_pairs + 1], int32[m], bool[n_pairs]
        Rows of links among those inside; and whether each is the only shortest way, through the fabric or not.
    """
    node, ends = machines.first, machines.ends
    metric = network.metric[machines.link[:, 0]].astype(np.float64)
    src, dst = np.divmod(pairs, len(node))
    alone = Network(
        "machine",
        [f"n{i}" for i in range(len(node))],
        network.kind[node],
        ends[inside, 0],
        ends[inside, 1],
        1.0,
        0.0,
        forwards=network.forwards[node],
        machine=0,
        metric=metric[inside],
    )
    routes, lost = walk(alone, src, dst, np.zeros(len(src), np.int64), "spray")
    if lost >= 0:
        return np.zeros(len(src) + 1, np.int64), np.empty(0, np.int32), np.zeros(len(src), np.bool_)
    of = np.repeat(np.arange(len(src)), np.diff(routes.first))
    cost = np.bincount(of, metric[inside][routes.link], len(src))
    n_shared = np.bincount(of[routes.share < 1], minlength=len(src))
    out, back = (metric[ends[:, end] >= len(node)].min(initial=np.inf) for end in (1, 0))
    return routes.first, routes.link, (n_shared == 0) & (cost < out + back)


def ports_inside(
    network: Network, machines: AlikeMachines, nodes: NDArray[np.int64], forwards: NDArray[np.bool_], *, inward: bool
) -> Ports:
    """Do what :func:`commsim.routing.ports_kernel.find_ports` does, once for each place in a machine.

    Parameters
    ----------
    network, machines : Network, AlikeMachines
        Network, and its machines.
    nodes : int64[n]
        Endpoints, all in machines.
    forwards : bool[n_nodes]
        Nodes that pass messages on, of every machine alike.
    inward : bool
        Whether messages enter the machines, and ports are counted from the destinations.
    """
    from commsim.routing.ports_kernel import find_ports

    n, at = len(machines.first), machines.first
    own, other = (machines.ends[:, end] for end in ((1, 0) if inward else (0, 1)))
    is_inside = np.arange(n + 2) < n
    passes, metric = np.append(forwards[at], (False, False)), network.metric[machines.link[:, 0]]
    machine = np.where(is_inside, 0, -1).astype(np.int32)
    for one in (machine, passes, metric):  # as those of a network: a kernel is compiled for each kind
        one.setflags(write=False)
    with expected_work(len(at) * len(own)):
        first, link, cost, single, begin, path = find_ports(
            np.arange(n), links_in_rows(own, other, n + 2), links_in_rows(other, own, n + 2),
            machine, np.arange(n + 2) == n, passes, metric,
        )  # fmt: skip
    of_node, port = gathered(first, np.arange(len(link), dtype=np.int32), machines.place[nodes])
    row = np.repeat(network.machine[nodes], np.diff(of_node))
    of_port, link_on_path = gathered(begin, path, port)
    return (
        of_node,
        machines.links(link[port], row),
        cost[port],
        single[port],
        of_port,
        machines.links(link_on_path, np.repeat(row, np.diff(of_port))),
    )


def _owners(network: Network) -> NDArray[np.int32]:
    """Return the machine, plus 1, that each link has an end in; 0 outside."""
    owner = network.machine[network.src]
    for low in range(0, len(owner), PART):
        some = slice(low, low + PART)
        np.maximum(owner[some], network.machine[network.dst[some]], out=owner[some])
    owner += 1
    return owner


def _by_machine(machine: NDArray[np.int32], n_machines: int) -> NDArray[np.int32] | None:
    """Return the things of each machine in a column, rising; None where machines have different numbers, or none.

    Machines are numbered from 1, and 0 is none: these things come first, and are left out.
    """
    first, order, _ = links_in_rows(machine, None, n_machines + 1)
    del machine  # of nobody else
    counts = np.diff(first[1:])
    if not counts[0] or (counts != counts[0]).any():
        return None
    return np.ascontiguousarray(order[first[1] :].reshape(n_machines, -1).T)
