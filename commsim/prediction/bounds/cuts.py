"""Bounds from cuts: bytes that must cross, over the capacity of the links that schedules can use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import SWITCH, Network
from commsim.core.network_queries import levels_from, locality_levels, tiers

from .demand import Demand

# How bytes cross the border of a set of nodes.
WAYS = ("out of", "into")
# Links from which on one pass of a kernel pays the loading of it.
MANY = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class UsableLinks:
    """Links that can carry something, and where ranks sit.

    Parameters
    ----------
    network : Network
        Network that the operation runs on.
    ranks : int32[n_ranks]
        Node of each rank.
    anywhere : bool
        Whether any node may store, add up and send on: parameter servers on spare hosts, and switches that aggregate.
        If not, only ranks do, and what lies between them only forwards.
    link : intp[m]
        Links of the network, both of whose ends pass traffic on, or hold a rank.
    src, dst : int32[m]
        Their ends.
    bandwidth, latency : float64[m], bytes/s and s
        Bandwidth and latency of each link.
    helpers : int32[n_helpers]
        Nodes without ranks that store, add and send on as well, where not any node does.
    """

    network: Network
    ranks: NDArray[np.int32]
    anywhere: bool
    link: NDArray[np.intp]
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    bandwidth: NDArray[np.float64]
    latency: NDArray[np.float64]
    helpers: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def n_nodes(self) -> int:
        """Nodes of the network, used or not."""
        return self.network.n_nodes

    @property
    def computes(self) -> NDArray[np.bool_]:
        """Which nodes store, add and send on."""
        if self.anywhere:
            return np.ones(self.n_nodes, np.bool_)
        computes = self.on_ranks
        computes[self.helpers] = True
        return computes

    @property
    def on_ranks(self) -> NDArray[np.bool_]:
        """Which nodes hold a rank."""
        holds = np.zeros(self.n_nodes, np.bool_)
        holds[self.ranks] = True
        return holds


def usable(
    network: Network, ranks: NDArray[np.int32], anywhere: bool, helpers: NDArray[np.int32] | None = None
) -> UsableLinks:
    """Return the graph that schedules of one kind can use.

    Routing is left out: any path is allowed, also over the nodes of other ranks, since these may send on what they
    received. So what holds here holds for every routing.

    Parameters
    ----------
    network : Network
        Network that the operation runs on.
    ranks : int32[n_ranks]
        Node of each rank.
    anywhere : bool
        Whether nodes without ranks may store, add and send on.
    helpers : int32[n_helpers], optional
        Nodes without ranks that may do so, where not any node may.
    """
    helpers = np.empty(0, np.int32) if helpers is None else helpers
    computes = np.zeros(network.n_nodes, np.bool_)
    computes[ranks] = computes[helpers] = True
    passes = computes | network.forwards | anywhere
    columns = network.src, network.dst, network.bandwidth, network.latency
    if passes.all():  # then they are the network's own, not copies of hundreds of megabytes
        return UsableLinks(network, ranks, anywhere, np.arange(network.n_links), *columns, helpers)
    link = np.flatnonzero(passes[network.src] & passes[network.dst])
    if len(link) < network.n_links:
        columns = network.src[link], network.dst[link], network.bandwidth[link], network.latency[link]
    return UsableLinks(network, ranks, anywhere, link, *columns, helpers)


@dataclass(frozen=True, slots=True)
class Cut:
    """A bound ``T >= per_byte * S + fixed``, from what must cross some links, or from a linear program.

    Parameters
    ----------
    per_byte : float, s/byte
        Time per byte of the operation's size.
    why : str
        What limits it.
    fixed : float, s
        What its last message takes besides bytes.
    """

    per_byte: float
    why: str
    fixed: float = 0.0


def partition_cuts(graph: UsableLinks, demand: Demand) -> Iterator[Cut]:
    """Bounds from groups of ranks that locality makes: single ranks, machines, racks and so on, and slabs of a grid.

    Around each group a set of nodes is drawn, and what must leave or enter it is divided by the capacity of the links
    that do. First the set is the nodes of the ranks; then, tier by tier, it takes in those nodes below which
    no other group is left. Where only ranks send on, all groups together give another bound: what messages between
    them must carry, over the capacity out of all sets, or into them.
    """
    above = _links_up(graph)
    for name, group in _partitions(graph):
        k = int(group.max()) + 1
        for of_node in _surroundings(graph, group, above):
            yield from cuts_around(graph, demand, of_node, k, name)
    for of_node, name in _slabs(graph):
        yield from cuts_around(graph, demand, of_node, 2, name)


def cuts_around(graph: UsableLinks, demand: Demand, of_node: NDArray[np.int64], k: int, name: str) -> Iterator[Cut]:
    """Bounds from k disjoint sets of nodes: of the weakest, and of all together.

    Parameters
    ----------
    graph : UsableLinks
        Graph of the network.
    demand : Demand
        What must cross.
    of_node : int64[n_nodes]
        Set of each node, or -1.
    k : int
        Sets; each holds a rank, and none holds all.
    name : str
        What one of them is.
    """
    of_rank = of_node[graph.ranks]
    leaving, entering = demand.crossing(of_rank, k)
    outside = graph.helpers[of_node[graph.helpers] < 0]
    between = 0.0 if graph.anywhere or (of_rank < 0).any() else demand.between(k)
    if between and len(outside):
        yield from _with_helpers(graph, demand, of_node, outside, k, name)
        between = 0.0
    small = of_node.astype(np.int32)
    capacities, counts, lasts = np.zeros((2, k)), np.zeros((2, k), np.int64), np.zeros((2, k), np.int64)
    if len(graph.src) >= MANY:
        from .crossing_kernel import add_crossing

        add_crossing(graph.src, graph.dst, graph.bandwidth, small, capacities, counts, lasts)
    else:
        ends = small[graph.src], small[graph.dst]
        crosses = np.flatnonzero(ends[0] != ends[1])
        for row, of_end in enumerate(ends):
            link, of_link = crosses[of_end[crosses] >= 0], of_end[crosses[of_end[crosses] >= 0]]
            capacities[row] = np.bincount(of_link, graph.bandwidth[link], k)
            counts[row], lasts[row, of_link] = np.bincount(of_link, minlength=k), link
    for way, bytes_across, capacity, n_links, last in zip(
        WAYS, (leaving, entering), capacities, counts, lasts, strict=True
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(bytes_across > 0, bytes_across / capacity, 0.0)
        worst = int(each.argmax())
        whose = f"{name} {_set_name(graph, of_node, worst)}"
        fixed = _handling(graph, of_rank, worst, int(last[worst]), way) if n_links[worst] == 1 else 0.0
        yield Cut(float(each[worst]), f"the capacity {way} {whose}", fixed)
        if between and capacity.sum():
            yield Cut(between / float(capacity.sum()), f"the capacity {way} all {k} {name}s together")


def _with_helpers(
    graph: UsableLinks, demand: Demand, of_node: NDArray[np.int64], helpers: NDArray[np.int32], k: int, name: str
) -> Iterator[Cut]:
    """Bound of an all-reduce from k sets and nodes in none that add and copy too: all that they send and receive.

    Let what a helper sends and receives count (k-2)/k of what a set does. Then each byte of the sum takes 4(k-1).
    Without helpers it does: 2(k-1) messages are sent and received by sets. With some, take all as one, which leaves out
    messages between them, and let each set in turn do its part: a message to another set then counts 2/k more, one of
    the k times none is sent, which counts (2k-2)/k less, and over all k this is nothing. So the best of these
    all-reduces, which are without helpers, counts no more.

    References
    ----------
    Jiang et al., "A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU clusters"
    (BytePS), OSDI 2020, theorem 1, whose time this is where all links are equal.
    """
    if demand.kind != "all_reduce":
        return
    count = np.where(of_node >= 0, 1.0, 0.0)
    count[helpers] = (k - 2) / k
    crosses = (of_node[graph.src] != of_node[graph.dst]) | (of_node[graph.src] < 0)
    capacity = float((graph.bandwidth * (count[graph.src] + count[graph.dst]))[crosses].sum())
    both = f"all {k} {name}s and {len(helpers)} {'other' if len(helpers) == 1 else 'others'} together"
    yield Cut(2 * demand.between(k) / capacity, f"the capacity out of and into {both}")


def _links_up(graph: UsableLinks) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Return the links that join each tier to those below it, from the first tier on: upper ends, lower ends."""
    network, on_ranks = graph.network, graph.on_ranks
    if graph.src is network.src and np.array_equal(on_ranks, network.kind == network.seat_kind):
        tier = tiers(network)
    else:
        tier = levels_from(on_ranks, graph.src, graph.dst)  # from the nearest rank that reaches each node
    small = tier.astype(np.min_scalar_type(-1 - int(tier.max())))  # of millions of links
    a, b = small[graph.src], small[graph.dst]
    falls, rises = np.flatnonzero((b >= 0) & (b < a)), np.flatnonzero((a >= 0) & (a < b))
    upper = np.concatenate((graph.src[falls], graph.dst[rises]))
    lower = np.concatenate((graph.dst[falls], graph.src[rises]))
    at = np.concatenate((a[falls], b[rises]))
    return [(upper[at == level], lower[at == level]) for level in range(1, int(tier.max()) + 1)]


def _surroundings(
    graph: UsableLinks, group: NDArray[np.int64], above: list[tuple[NDArray[np.int32], NDArray[np.int32]]]
) -> Iterator[NDArray[np.int64]]:
    """Disjoint sets of nodes around groups of ranks: which group's each node is in, or -1.

    Parameters
    ----------
    graph : UsableLinks
        Graph of the network.
    group : int64[n_ranks]
        0..k-1.
    above : list of (int32[m], int32[m])
        Links that join each tier to those below it.
    """
    of_node = np.full(graph.n_nodes, -1, np.int64)
    of_node[graph.ranks] = group
    yield of_node
    for upper, lower in above:
        low, high = np.full(graph.n_nodes, np.iinfo(np.int64).max), np.full(graph.n_nodes, -1, np.int64)
        of_lower = of_node[lower]
        np.minimum.at(low, upper, of_lower)
        np.maximum.at(high, upper, of_lower)
        before, of_node = of_node, np.where(low == high, low, of_node)
        if np.array_equal(before, of_node):
            return
        yield of_node


def _partitions(graph: UsableLinks) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Ways to group all ranks, by name of a group, each with at least two groups."""
    p, network = len(graph.ranks), graph.network
    yield "rank", np.arange(p)
    before = p
    for level in locality_levels(network):
        of_node = np.full(network.n_nodes, -1, np.int64)
        of_node[network.endpoints] = level.group
        of_rank = of_node[graph.ranks]
        if (of_rank < 0).any():
            return
        group = np.unique(of_rank, return_inverse=True)[1].reshape(-1)
        k = int(group.max()) + 1
        if 1 < k < before:
            yield level.name, group
        before = k


def _slabs(graph: UsableLinks) -> Iterator[tuple[NDArray[np.int64], str]]:
    """Halves of a grid, along each of its dimensions."""
    at = graph.network.coordinates
    for d in range(at.shape[1]):
        side = int(at[:, d].max()) + 1
        for half in {side // 2, (side + 1) // 2} - {0, side}:
            of_node = (at[:, d] >= half).astype(np.int64)
            if 0 < of_node[graph.ranks].sum() < len(graph.ranks):
                yield of_node, f"half along dimension {d},"


def _handling(graph: UsableLinks, of_rank: NDArray[np.int64], group: int, link: int, way: str) -> float:
    """Overhead that a single rank with a single link cannot avoid: its link is its port, which is busy for it."""
    inside = np.flatnonzero(of_rank == group)
    if len(inside) != 1:
        return 0.0
    ends = graph.src if way == WAYS[0] else graph.dst
    node = int(graph.ranks[inside[0]])
    if ends[link] != node:
        return 0.0
    costs = graph.network.overhead if way == "out of" else graph.network.recv_overhead
    return float(costs[node])


def _set_name(graph: UsableLinks, of_node: NDArray[np.int64], group: int) -> str:
    """Name of a set: its only rank, or its switches and how many ranks."""
    inside = np.flatnonzero(of_node == group)
    nodes = graph.network.nodes
    ranks = inside[graph.on_ranks[inside]]
    if len(ranks) == 1:
        return nodes[int(ranks[0])]
    switches = inside[graph.network.kind[inside] == SWITCH]
    if 0 < len(switches) <= 2:
        return " and ".join(nodes[int(s)] for s in switches)
    return f"of {nodes[int(ranks[0])]} and {len(ranks) - 1} others"
