"""Bounds from cuts: bytes that must cross, over the capacity of links; the tightest is the floor under every answer."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, PhysicsError
from commsim.core.network import SWITCH, Network
from commsim.core.network_queries import levels_from, locality_levels, tiers
from commsim.core.result import Result
from commsim.core.units import format_size, format_time

from .crossings import WAYS, Crossing
from .demand import Demand, UsableLinks, demand_of, usable

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan

SLACK = 1e-9
# Engines that take paths one by one: a cut that they did not see is a limit of the engine, and no bug.
ON_PAPER = ("closed-form", "alpha-beta")
# Links from which on one pass of a kernel pays the loading of it.
MANY = 1 << 20


@dataclass(frozen=True, slots=True)
class Floor:
    """The cut that limits an operation on placed ranks.

    Parameters
    ----------
    per_byte : float, s/byte
        Time for each byte of the operation's size.
    crossing : Crossing, optional
        The cut.
    """

    per_byte: float = 0.0
    crossing: Crossing | None = None

    def check(self, result: Result) -> None:
        """Raise if a result is faster than its bytes can cross the cut.

        Raises
        ------
        InputError
            If the engine follows single paths, and does not see the cut.
        PhysicsError
            If a simulation is too fast. This is a bug in commsim.
        """
        least = self.per_byte * result.size
        if result.time >= least * (1 - SLACK) or self.crossing is None:
            return
        text = (
            f"{result.collective}, {format_size(int(result.size))}: engine {result.engine} gives "
            f"{format_time(result.time)}, but {self.crossing.cut().why} takes at least {format_time(least)}"
        )
        if result.engine in ON_PAPER:
            raise InputError(f"{text}; use engine flow")
        raise PhysicsError(text)


def floor_of(plan: Plan, anywhere: bool | None = None) -> Floor:
    """Return the cut that limits what a plan does; none where bytes depend on data, or costs were measured.

    Parameters
    ----------
    plan : Plan
        A collective on a network.
    anywhere : bool, optional
        Whether nodes without ranks may store, add and send on. Default: whether the plan has helpers there.
    """
    schedule, network = plan.schedule, plan.network
    if schedule.n_ranks < 2 or schedule.operation == "custom" or plan.data is not None or network.curves is not None:
        return Floor()
    demand = demand_of(schedule.operation, schedule.n_ranks, schedule.root, schedule.layout)
    if demand.kind == "signals":
        return Floor()
    if anywhere is None:
        anywhere = schedule.n_helpers > 0 and uses_more_than_ranks(plan)
    cuts = partition_cuts(usable(network, plan.ranks, anywhere), demand)
    tightest = max(cuts, key=operator.attrgetter("per_byte"), default=None)
    if tightest is None or not np.isfinite(tightest.per_byte):
        return Floor()
    return Floor(tightest.per_byte, tightest)


def uses_more_than_ranks(plan: Plan) -> bool:
    """Whether a collective has helpers where no rank is: switches that aggregate, or servers on hosts of their own."""
    n = plan.schedule.n_ranks
    return not np.isin(plan.placement.nodes[n:], plan.placement.nodes[:n]).all()


def partition_cuts(graph: UsableLinks, demand: Demand) -> Iterator[Crossing]:
    """Bounds from groups of ranks that locality makes: single ranks, machines, racks and so on, and slabs of a grid.

    Around each group a set of nodes is drawn, and what must leave or enter it is divided by the capacity of the links
    that do. First the set is the nodes of the ranks; then, tier by tier, it takes in those nodes below which
    no other group is left. Where only ranks send on, all groups together give another bound: what messages between
    them must carry, over the capacity out of all sets, or into them.
    """
    partitions, above = [*_partitions(graph)], _links_up(graph)  # in this order: either needs columns of links
    for name, group in partitions:
        k = int(group.max()) + 1
        for of_node in _surroundings(graph, group, above):
            yield from cuts_around(graph, demand, of_node, k, name)
    for d in range(graph.network.coordinates.shape[1]):
        for half in _slabs(graph, d):
            yield from cuts_around(graph, demand, half, 2, f"half along dimension {d},")


def cuts_around(
    graph: UsableLinks, demand: Demand, of_node: NDArray[np.integer[Any]], k: int, name: str
) -> Iterator[Crossing]:
    """Bounds from k disjoint sets of nodes: of the weakest, and of all together.

    Parameters
    ----------
    graph : UsableLinks
        Graph of the network.
    demand : Demand
        What must cross.
    of_node : int[n_nodes]
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
    small = of_node.astype(np.int32, copy=False)
    capacities, counts, lasts = np.zeros((2, k)), np.zeros((2, k), np.int64), np.zeros((2, k), np.int64)
    network = graph.network
    columns: UsableLinks | Network = network if network.n_links >= MANY else graph
    if network.n_links >= MANY:
        from .crossing_kernel import add_crossing

        add_crossing(network.src, network.dst, network.bandwidth, graph.passes, small, capacities, counts, lasts)
    else:
        ends = small[graph.src], small[graph.dst]
        crosses = np.flatnonzero(ends[0] != ends[1])
        for row, of_end in enumerate(ends):
            link, of_link = crosses[of_end[crosses] >= 0], of_end[crosses[of_end[crosses] >= 0]]
            capacities[row] = np.bincount(of_link, graph.bandwidth[link], k)
            counts[row], lasts[row, of_link] = np.bincount(of_link, minlength=k), link
    for way, bytes_across, capacity, n_links, last, inner in zip(
        WAYS, (leaving, entering), capacities, counts, lasts, (columns.src, columns.dst), strict=True
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(bytes_across > 0, bytes_across / capacity, 0.0)
        worst = int(each.argmax())
        port = int(inner[last[worst]]) if n_links[worst] == 1 else -1
        yield Crossing(float(each[worst]), way, name, network, graph.ranks, of_node, worst, port)
        if between and capacity.sum():
            all_sets = f"all {k} {name}s together"
            yield Crossing(between / float(capacity.sum()), way, all_sets, network, graph.ranks, of_node)


def _with_helpers(
    graph: UsableLinks, demand: Demand, of_node: NDArray[np.integer[Any]], helpers: NDArray[np.int32], k: int, name: str
) -> Iterator[Crossing]:
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
    yield Crossing(2 * demand.between(k) / capacity, " and ".join(WAYS), both, graph.network, graph.ranks, of_node)


def _links_up(graph: UsableLinks) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Return the links that join each tier, counted from the nearest rank, to those below: upper ends, lower ends."""
    network, passes, on_ranks = graph.network, graph.passes, graph.on_ranks
    is_known = np.array_equal(on_ranks, network.kind == network.seat_kind)
    if is_known and not passes.all():  # whether no shortest path leads through what passes nothing on
        beyond, known = np.flatnonzero(~passes[network.src]), tiers(network)
        is_known = not (known[network.dst[beyond]] > known[network.src[beyond]]).any()
    tier = np.where(passes, tiers(network), -1) if is_known else levels_from(on_ranks, graph.src, graph.dst)
    if network.n_links >= MANY:
        from .crossing_kernel import links_by_tier

        half, src, dst = network.n_links // 2, network.src, network.dst
        if np.array_equal(src[:half], dst[half:]) and np.array_equal(dst[:half], src[half:]):
            src, dst = src[:half], dst[:half]  # ways back join the same nodes
        first, *ends = links_by_tier(src, dst, tier.astype(np.int32), int(tier.max()))
        return list(zip(*(np.split(end, first[1:-1]) for end in ends), strict=True))
    a, b = tier[graph.src], tier[graph.dst]
    falls, rises = np.flatnonzero((b >= 0) & (b < a)), np.flatnonzero((a >= 0) & (a < b))
    upper = np.concatenate((graph.src[falls], graph.dst[rises]))
    lower = np.concatenate((graph.dst[falls], graph.src[rises]))
    at = np.concatenate((a[falls], b[rises]))
    return [(upper[at == level], lower[at == level]) for level in range(1, int(tier.max()) + 1)]


def _surroundings(
    graph: UsableLinks, group: NDArray[np.int64], above: list[tuple[NDArray[np.int32], NDArray[np.int32]]]
) -> Iterator[NDArray[np.int32]]:
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
    of_node = np.full(graph.network.n_nodes, -1, np.int32)
    of_node[graph.ranks] = group
    yield of_node
    low, high = np.empty_like(of_node), np.empty_like(of_node)
    for upper, lower in above:
        low[:], high[:] = np.iinfo(np.int32).max, -1
        if graph.network.n_links >= MANY:
            from .crossing_kernel import spread_up

            spread_up(upper, lower, of_node, low, high)
        else:
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
    if network.machine.max(initial=-1) < 0 and np.count_nonzero(network.kind == SWITCH) < 2:
        return  # nothing between a rank and all of them
    before = p
    for level in locality_levels(network):
        of_node = np.full(network.n_nodes, -1, np.int32)
        of_node[network.endpoints] = level.group
        of_rank = of_node[graph.ranks]
        if (of_rank < 0).any():
            return
        group = np.unique(of_rank, return_inverse=True)[1].reshape(-1)
        k = int(group.max()) + 1
        if 1 < k < before:
            yield level.name, group
        before = k


def _slabs(graph: UsableLinks, d: int) -> Iterator[NDArray[np.int64]]:
    """Halves of a grid along a dimension, each with some ranks."""
    at = graph.network.coordinates[:, d]
    side = int(at.max()) + 1
    for half in {side // 2, (side + 1) // 2} - {0, side}:
        of_node = (at >= half).astype(np.int64)
        if 0 < of_node[graph.ranks].sum() < len(graph.ranks):
            yield of_node
