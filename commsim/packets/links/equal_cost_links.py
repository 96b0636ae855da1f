"""The links of a network as the kernels take them: for each switch, those that lead to the switch of each host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import FORWARDING, Network
from commsim.routing.merge_switches import fabric_nodes
from commsim.routing.routing import Routes

Ints = NDArray[np.int32]
_FAR = 1 << 40
_LONGER = 1 << 24  # than any way: what a link that is avoided counts as
_MOST_MEASURED = 64  # switches from which the longest path is looked for


@dataclass(frozen=True, slots=True, eq=False)
class EqualCostWays:
    """Hosts at the edge of a network of switches, and the equal-cost sets of links between these.

    Parameters
    ----------
    hosts, switches : int32[n_hosts], int32[n_switches]
        Nodes of the network.
    links : int32[n_links]
        Links of the network in the kernels' order: from hosts, to hosts, between switches. Doubles come twice.
    to : int32[n_links]
        Node that each link leads to: a host's number, or the number of hosts plus a switch's number.
    edge, edge_switch : int32[n_hosts]
        Number of a host's switch among those with hosts, and among all.
    way, ways : int32[n_switches * n_edges + 1], int32[n]
        Rows of the links from a switch that lie on a shortest path to another one that has hosts.
    n_hops : int
        Links of the longest of the shortest paths between hosts.
    n_ports : int
        Hosts that packets are sprayed to, with a link from a switch; the messages of others keep to paths.
    """

    hosts: Ints
    switches: Ints
    links: Ints
    to: Ints
    edge: Ints
    edge_switch: Ints
    way: Ints
    ways: Ints
    n_hops: int
    n_ports: int

    @property
    def first_between(self) -> int:
        """Place in `links` of the first link between switches."""
        return len(self.hosts) + self.n_ports

    @property
    def place(self) -> Ints:
        """Place in `links` of each link of the network that is there, the first one."""
        place = np.zeros(int(self.links.max(initial=-1)) + 1, np.int32)
        place[self.links[::-1]] = np.arange(len(self.links))[::-1]
        return place

    @property
    def double(self) -> Ints:
        """Place in `links` of the double of each link of the network, or of the link where it has none."""
        double = np.zeros(int(self.links.max(initial=-1)) + 1, np.int32)
        double[self.links] = np.arange(len(self.links))
        return double

    def in_order(self, values: NDArray[np.int64], n_links: int) -> NDArray[np.int64]:
        """Add up what links did, by the network's numbers: int64[n_links]."""
        of_link = np.zeros(n_links, np.int64)
        np.add.at(of_link, self.links, values[: len(self.links)])
        return of_link


def ways_of(network: Network, *, doubled: bool = False) -> EqualCostWays:
    """Find the ports of a network, which count as hosts, and the equal-cost sets between their switches.

    A host with one link has one port. Links are numbered in this order: ports out, links of endpoints inside machines,
    ports in, between switches, others.

    Parameters
    ----------
    network : Network
        Network with switches between its hosts.
    doubled : bool
        Whether links inside machines have doubles, for what keeps to its path behind a port.

    Raises
    ------
    InputError
        If there are no switches between hosts, or a port has no way back.
    """
    is_switch = fabric_nodes(network)
    if not is_switch.any():
        raise InputError(
            f"sprayed transports need switches between hosts, and {network.name} has none; use the transport `window`, "
            "`dctcp` or `dcqcn` with the balancing path"
        )
    leaves, enters = ~is_switch[network.src] & is_switch[network.dst], is_switch[network.src] & ~is_switch[network.dst]
    ups, downs = np.flatnonzero(leaves), np.flatnonzero(enters)
    ups = ups[np.lexsort((network.dst[ups], network.src[ups]))]
    downs = downs[np.lexsort((network.src[downs], network.dst[downs]))]
    if not (
        np.array_equal(network.src[ups], network.dst[downs]) and np.array_equal(network.dst[ups], network.src[downs])
    ):
        raise InputError(f"sprayed transports need links between hosts and switches in both directions: {network.name}")
    switches = np.flatnonzero(is_switch).astype(np.int32)
    number = np.zeros(network.n_nodes, np.int32)
    number[switches] = np.arange(len(switches))
    between = is_switch[network.src] & is_switch[network.dst]
    at_end = ~leaves & ~np.isin(network.kind[network.src], FORWARDING)
    of_ends, inner = np.flatnonzero(at_end), np.flatnonzero(between)
    others = np.flatnonzero(~(leaves | enters | between | at_end))
    if doubled:
        of_ends, others = np.tile(of_ends, 2), np.tile(others, 2)
    links = np.concatenate((ups, of_ends, downs, inner, others)).astype(np.int32)
    n_ports, n_hosts = len(ups), len(ups) + len(of_ends)
    to = np.full(len(links), n_hosts, np.int32)
    to[:n_ports], to[n_hosts : n_hosts + n_ports] = n_hosts + number[network.dst[ups]], np.arange(n_ports)
    to[n_hosts + n_ports : n_hosts + n_ports + len(inner)] = n_hosts + number[network.dst[inner]]
    edge_switch = number[network.dst[ups]]
    edges, edge = np.unique(edge_switch, return_inverse=True)
    way, ways, furthest = _equal_cost(
        number[network.src[inner]], number[network.dst[inner]], network.metric[inner], edges, len(switches)
    )
    more = np.zeros(n_hosts - n_ports, np.int32)  # no packet is sprayed to these
    return EqualCostWays(
        network.src[links[:n_hosts]].astype(np.int32), switches, links, to,
        np.concatenate((edge.astype(np.int32), more)), np.concatenate((edge_switch, more + edges[:1])).astype(np.int32),
        way, (ways + n_hosts + n_ports).astype(np.int32), furthest + 2, n_ports,
    )  # fmt: skip


def ways_of_paths(network: Network, *routes: Routes, ends: NDArray[np.integer] | None = None) -> EqualCostWays:
    """Give numbers to the links of a network whose messages keep to paths: links of endpoints count as those of hosts.

    Parameters
    ----------
    network : Network
        Any network.
    *routes : Routes
        Paths that messages and their answers take.
    ends : int[n], optional
        Nodes that messages go from and to, which count as hosts, also if they are switches.
    """
    is_end = ~np.isin(network.kind, FORWARDING)
    if ends is not None:
        is_end[ends] = True
    leaves, comes = is_end[network.src], is_end[network.dst]
    links = np.concatenate((np.flatnonzero(leaves), np.flatnonzero(~leaves))).astype(np.int32)
    n = int(leaves.sum())
    none, at_one = np.zeros(0, np.int32), np.zeros(n, np.int32)
    to = np.where(comes[links], 0, n).astype(np.int32)
    longest = max((int(np.diff(way.first).max(initial=1)) for way in routes), default=1)
    hosts = network.src[links[:n]].astype(np.int32)
    return EqualCostWays(hosts, none, links, to, at_one, at_one, np.zeros(1, np.int32), none, longest, 0)


def ways_around(network: Network, ways: EqualCostWays, avoided: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Find the equal-cost sets that take links which are to be avoided only as a last resort.

    Parameters
    ----------
    network : Network
        Network that `ways` belong to.
    ways : EqualCostWays
        Equal-cost sets with all links.
    avoided : bool[n_links]
        Whether to avoid each link, by the network's numbers.

    Returns
    -------
    way, ways : int32[n_switches * n_edges + 1], int32[n]
        As in :class:`EqualCostWays`.
    """
    inner = ways.links[ways.first_between :]
    inner = inner[np.isin(network.src[inner], ways.switches) & np.isin(network.dst[inner], ways.switches)]
    src, dst = (np.searchsorted(ways.switches, ends[inner]).astype(np.int32) for ends in (network.src, network.dst))
    metric = network.metric[inner].astype(np.int64) + np.where(avoided[inner], _LONGER, 0)
    edges = np.unique(ways.edge_switch)
    way, found, _ = _equal_cost(src, dst, metric, edges, len(ways.switches))
    return way, (found + ways.first_between).astype(np.int32)


def _equal_cost(
    src: Ints, dst: Ints, metric: NDArray[np.integer], edges: Ints, n_switches: int
) -> tuple[Ints, Ints, int]:
    """Find the links on shortest paths to each switch with hosts, sorted by switch and then by that one.

    Switches need no path to those of other planes.
    """
    rows, n_found, furthest = [], [], 0
    hops = np.ones(len(src), np.int64)
    for i, edge in enumerate(edges):
        distance = _distances(src, dst, metric.astype(np.int64), int(edge), n_switches)
        on_path = np.flatnonzero((distance[dst] + metric == distance[src]) & (distance[src] < _FAR))
        rows.append(src[on_path].astype(np.int64) * len(edges) + i)
        n_found.append(on_path)
        if i == 0 or len(edges) <= _MOST_MEASURED or i % (len(edges) // _MOST_MEASURED) == 0:
            away = _distances(src, dst, hops, int(edge), n_switches)[edges]
            furthest = max(furthest, int(away[away < _FAR].max()))
    row, link = np.concatenate(rows), np.concatenate(n_found)
    order = np.argsort(row, kind="stable")
    way = np.searchsorted(row[order], np.arange(n_switches * len(edges) + 1))
    return way.astype(np.int32), link[order].astype(np.int32), furthest


def _distances(src: Ints, dst: Ints, metric: NDArray[np.int64], to: int, n_switches: int) -> NDArray[np.int64]:
    """Sum the metric of the shortest path to one switch from all (Bellman and Ford)."""
    distance = np.full(n_switches, _FAR, np.int64)
    distance[to] = 0
    while True:
        nearer = distance.copy()
        np.minimum.at(nearer, src, distance[dst] + metric)
        if np.array_equal(nearer, distance):
            return distance
        distance = nearer
