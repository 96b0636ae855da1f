"""Bounds that do not depend on the size: how long news takes, and how many can hear it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import NIC
from commsim.prediction.bounds.crossings import Cut
from commsim.prediction.bounds.demand import BY_PAIR, Demand, UsableLinks
from commsim.routing.message_engines import engines_of_nodes

MAX_SEARCHES = 64
# Searches times links: some seconds. With fewer searches than ranks the bound holds, and may be lower.
MAX_STEPS = 4_000_000
_FROM_ONE = ("signals", "all_pairs", "spread", "all_reduce")
_TO_ONE = ("signals", "all_pairs", "collect", "all_reduce")

Floats = NDArray[np.float64]
Rows = list[list[tuple[int, float]]]


def latency_bounds(graph: UsableLinks, demand: Demand) -> Iterator[Cut]:
    """Bounds for messages of no bytes.

    *Distance*: what rank v needs of rank u has crossed links whose latencies add up to at least the shortest way's,
    after one overhead to send and before one to receive.

    *Fan-out*: a rank that has heard the news at time t has sent it to at most n others by ``t + n g``, where g is its
    overhead over the number of its message engines, at most that of links that leave it, and each of them has heard it
    no sooner than l later, the least that any message takes after it was sent. So the number that have heard by
    time t is at most that of the tree in which every rank tells all others as soon as it can, and t is not over
    before p have. Without overheads, every rank can tell all others at once, and this says only l.

    Fan-in is the same backwards in time, with the overhead to receive.

    References
    ----------
    Karp, Sahay, Santos and Schauser, "Optimal broadcast and summation in the LogP model", SPAA 1993, for the tree.
    """
    if demand.n_ranks < 2:
        return
    o, r = _least(graph, graph.network.overhead), _least(graph, graph.network.recv_overhead)
    yield Cut(0.0, *_distance(graph, demand, o + r))
    nearest = nearest_ranks(graph)
    p = _reached(demand)
    if demand.kind in _FROM_ONE or _is_star(demand.src):
        gap = _per_port(graph, graph.network.overhead, graph.src)
        yield Cut(0.0, f"telling {p - 1} others, each after its sender's overhead", tree_time(p, gap, nearest + r))
    if demand.kind in _TO_ONE or _is_star(demand.dst):
        gap = _per_port(graph, graph.network.recv_overhead, graph.dst)
        yield Cut(0.0, f"hearing of {p - 1} others, each with its overhead", tree_time(p, gap, nearest + o))


def nearest_ranks(graph: UsableLinks) -> float:
    """Least latency of a message between any two participants: no message takes less after it was sent."""
    if not len(graph.link):
        return 0.0
    if graph.anywhere:
        return float(graph.latency.min())
    rows = _rows(graph.n_nodes, graph.src, graph.dst, graph.latency)
    back = _rows(graph.n_nodes, graph.dst, graph.src, graph.latency)
    participants = np.flatnonzero(graph.computes).tolist()
    out, into = shortest(rows, participants), shortest(back, participants)
    return float((out[graph.src] + graph.latency + into[graph.dst]).min())


def tree_time(n: int, gap: float, delay: float) -> float:
    """Time until n have heard, when each tells one more every `gap`, which has heard it `delay` later.

    Parameters
    ----------
    n : int
        Participants; the first knows from the start.
    gap : float, s
        Time between two messages of one participant.
    delay : float, s
        Time between the sending of a message and its arrival.
    """
    if n < 2:
        return 0.0
    if gap <= 0:
        return delay
    heard, next_one = 1, [gap + delay]
    time = 0.0
    while heard < n:  # the next to hear; it and its teller go on
        time = heapq.heappop(next_one)
        same = 1
        while next_one and next_one[0] <= time * (1 + 1e-12):
            heapq.heappop(next_one)
            same += 1
        heard += same
        if heard < n:
            for at in [time + gap, time + gap + delay] * same:
                heapq.heappush(next_one, at)
    return time


def shortest(rows: Rows, sources: list[int]) -> Floats:
    """Least latency from the nearest of some nodes to each node; infinite without a path."""
    distance = np.full(len(rows), np.inf)
    distance[sources] = 0.0
    queue = [(0.0, node) for node in sources]
    while queue:
        far, node = heapq.heappop(queue)
        if far > distance[node]:
            continue
        for other, latency in rows[node]:
            if far + latency < distance[other]:
                distance[other] = far + latency
                heapq.heappush(queue, (far + latency, other))
    return distance


def _distance(graph: UsableLinks, demand: Demand, overheads: float) -> tuple[str, float]:
    """Longest of the shortest ways between ranks where one needs something of the other."""
    rows = _rows(graph.n_nodes, graph.src, graph.dst, graph.latency)
    back = _rows(graph.n_nodes, graph.dst, graph.src, graph.latency)
    budget = max(1, min(MAX_SEARCHES, MAX_STEPS // max(1, len(graph.link))))
    why, longest = "nothing to send", 0.0
    for rank, others, way in _needs(demand, budget):
        far = shortest(rows if way == "to" else back, [int(graph.ranks[rank])])[graph.ranks[others]]
        most = int(far.argmax())
        if far[most] + overheads > longest:
            a, b = (graph.network.nodes[int(graph.ranks[r])] for r in (rank, int(others[most])))
            why, longest = f"the way from {a if way == 'to' else b} to {b if way == 'to' else a}", far[most] + overheads
    return why, float(longest)


def _needs(demand: Demand, budget: int) -> Iterator[tuple[int, NDArray[np.intp], str]]:
    """Return some ranks, and for each the ranks that it has something for ("to") or needs something of ("from")."""
    p = demand.n_ranks
    if demand.kind in BY_PAIR:
        for rank in _spaced(np.unique(demand.src), budget):
            yield rank, np.unique(demand.dst[demand.src == rank]), "to"
        return
    some = np.flatnonzero(demand.amount > 0) if demand.kind in ("spread", "collect") else np.arange(p)
    for rank in _spaced(some, budget):
        yield rank, np.flatnonzero(np.arange(p) != rank), "from" if demand.kind == "collect" else "to"


def _spaced(some: NDArray[np.intp], budget: int) -> list[int]:
    return some[:: -(-len(some) // budget)].tolist() if len(some) else []


def _reached(demand: Demand) -> int:
    return demand.n_ranks if demand.kind not in BY_PAIR else len(np.unique(np.concatenate((demand.src, demand.dst))))


def _is_star(ends: NDArray[np.intp]) -> bool:
    return len(ends) > 0 and bool((ends == ends[0]).all())


def _rows(n_nodes: int, src: NDArray[np.int32], dst: NDArray[np.int32], latency: Floats) -> Rows:
    rows: Rows = [[] for _ in range(n_nodes)]
    for a, b, far in zip(src.tolist(), dst.tolist(), latency.tolist(), strict=True):
        rows[a].append((b, far))
    return rows


def _least(graph: UsableLinks, costs: Floats) -> float:
    return float(costs[graph.computes].min())


def _per_port(graph: UsableLinks, costs: Floats, ends: NDArray[np.int32]) -> float:
    """Least time between two messages of one participant: its cost, shared by its engines, each with a link."""
    network, n_ports = graph.network, np.maximum(1, np.bincount(ends, minlength=graph.n_nodes))
    nics = np.where((network.kind == NIC) & (network.machine >= 0), network.message_engines, 0)
    of_machine = np.bincount(network.machine + 1, nics, minlength=1).astype(np.int64)
    n_engines = engines_of_nodes(network) + of_machine[network.machine + 1]  # its own ones, and those of its machine
    return float((costs / np.minimum(n_ports, n_engines))[graph.computes].min())
