"""Schedules for small sizes, where latency counts: greedy sending on a time-expanded network, the best of many."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.pinned_routes import PinnedRoutes
from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.prediction.bounds.demand import UsableLinks

from .greedy_kernel import RankRoutes, send_rarest
from .trees.forest import DIRECTIONS
from .trees.tree_program import TreePlan

Numbers = NDArray[np.int64]
Paths = dict[tuple[int, int], tuple[int, ...]]

# Draws of the order in which ways are asked; ways themselves are drawn anew for each of these groups.
RESTARTS, WAY_DRAWS = 20, 4
# A way that takes so many times as long as the best is refused, in turn.
PATIENCE = (1.001, 1.5, 1e9)
# Ways times chunks times ranks: a draw takes a second.
MAX_STEPS = 30_000_000
# Channels that messages get by their start, and how many times the share of the last the first has: equal shares would
# let what starts later slow down what was to go before it. The packet engine takes no larger ratio.
CLASSES, MOST_RATIO = 64, 1024.0
# Of the cost of a link when ways are drawn: links that cost the same are taken in no fixed order.
_NOISE = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Sending:
    """Chunks sent from their owners to all ranks.

    Parameters
    ----------
    time : float, s
        Time until the last one has arrived, if messages share no link; an estimate.
    src, dst, chunk : int64[n]
        Messages in the order of their starts.
    paths : dict
        Links by (src, dst).
    """

    time: float
    src: Numbers
    dst: Numbers
    chunk: Numbers
    paths: Paths

    @property
    def turned(self) -> Sending:
        """The same in the reversed network, backwards in time: what arrived last leaves first."""
        paths = {(b, a): path[::-1] for (a, b), path in self.paths.items()}
        return Sending(self.time, self.dst[::-1], self.src[::-1], self.chunk[::-1], paths)


@dataclass(frozen=True, slots=True, eq=False)
class Greedy:
    """What was found for an operation: sums, copies, or copies after sums.

    Parameters
    ----------
    operation : str
        Name of the operation.
    root : int
        Root of a rooted operation.
    n_chunks : int
        Number of chunks that the data are cut into.
    ranks : int32[n_ranks]
        Their nodes.
    sums, copies : Sending or None
        What is sent to be added, and what is copied.
    """

    operation: str
    root: int
    n_chunks: int
    ranks: NDArray[np.int32]
    sums: Sending | None
    copies: Sending | None

    @property
    def time(self) -> float:
        """Seconds until all has arrived, if messages go in the order of their starts."""
        return sum(half.time for half in (self.sums, self.copies) if half is not None)

    def plan(self, *, in_order: bool) -> TreePlan:
        """Return the schedule; `in_order` gives what starts sooner a larger share of its links."""
        halves = [(half, half is self.sums) for half in (self.sums, self.copies) if half is not None]
        n_messages = sum(len(half.src) for half, _ in halves)
        # Even, and halves have as many messages: no channel has sums and copies, whose routes differ.
        n_classes = min(CLASSES, n_messages) if in_order else 1
        program, routes, before = Program(len(self.ranks), self.n_chunks), [], 0
        for i, (half, sums) in enumerate(halves):
            order = np.arange(before, before + len(half.src))
            channel = order * n_classes // n_messages if in_order else np.full(len(order), i)
            _write(program, half, sums, channel)
            used = set(zip(half.src.tolist(), half.dst.tolist(), channel.tolist(), strict=True))
            routes += [(a, b, c, half.paths[a, b]) for a, b, c in sorted(used)]
            before += len(half.src)
        weights = MOST_RATIO ** np.linspace(1.0, 0.0, n_classes) if in_order else ()
        schedule = program.build(f"greedy_{self.operation}", self.operation, self.root, weights=weights)
        return TreePlan(schedule, Placement(self.ranks, PinnedRoutes.of(routes)))


def send_greedily(
    operation: str,
    graph: UsableLinks,
    size: float,
    per_rank: int,
    root: int = 0,
    restarts: int = RESTARTS,
    max_steps: int = MAX_STEPS,
) -> Greedy | None:
    """Return the best of some draws; None where that would take long, or no rank is reached.

    Sums take the ways of copies backwards in time, in the reversed network.

    Parameters
    ----------
    operation : str
        One of ``DIRECTIONS``.
    graph : UsableLinks
        What can be used.
    size : float, bytes
        Size of the operation.
    per_rank : int
        Chunks that the share of a rank is cut into.
    root : int
        Root of a rooted operation.
    restarts : int
        Draws.
    max_steps : int
        Ways times chunks times ranks, beyond which nothing is drawn.

    References
    ----------
    Won et al., "TACOS: topology-aware collective algorithm synthesizer for distributed machine learning", MICRO 2024,
    for the greedy matching of links and chunks.
    """
    n = len(graph.ranks)
    owner = np.full(per_rank, root) if operation in ("broadcast", "reduce") else np.repeat(np.arange(n), per_rank)
    if n * n * n * len(owner) > max_steps:
        return None
    up, down = DIRECTIONS[operation]
    n_bytes = size / len(owner)
    sums = _best(_turned(graph), owner, n_bytes, restarts) if up else None
    copies = _best(graph, owner, n_bytes, restarts) if down else None
    if (up and sums is None) or (down and copies is None):
        return None
    return Greedy(operation, root, len(owner), graph.ranks, sums.turned if sums else None, copies)


def _write(program: Program, sending: Sending, sums: bool, channel: Numbers) -> None:
    """Write messages by start; a hop ends before the first message that sends on what the hop brings."""
    src, dst, chunk = sending.src, sending.dst, sending.chunk
    begin, brought = 0, set[tuple[int, int]]()
    for i, (a, b, c) in enumerate(zip(src.tolist(), dst.tolist(), chunk.tolist(), strict=True)):
        if (a, c) in brought:
            _hop(program, src[begin:i], dst[begin:i], chunk[begin:i], sums, channel[begin:i])
            begin, brought = i, set()
        brought.add((b, c))
    _hop(program, src[begin:], dst[begin:], chunk[begin:], sums, channel[begin:])


def _hop(program: Program, src: Numbers, dst: Numbers, chunk: Numbers, sums: bool, channel: Numbers) -> None:
    (program.reduce if sums else program.copy)(chunk, src=src, dst=dst, channel=channel)


def _turned(graph: UsableLinks) -> UsableLinks:
    """Return the graph with every link turned round; it costs the sender what it cost the receiver."""
    return dataclasses.replace(graph, is_turned=not graph.is_turned)


def _best(graph: UsableLinks, owner: Numbers, n_bytes: float, restarts: int) -> Sending | None:
    """Return the soonest of some draws."""
    n, rng = len(graph.ranks), np.random.default_rng(0)
    best: Sending | None = None
    for draw in range(restarts):
        if draw % -(-restarts // WAY_DRAWS) == 0:
            ways, paths = _drawn_ways(graph, n_bytes, rng)
        # quick ways first, and equally quick ones in no fixed order
        order = np.lexsort((rng.random(len(ways.src)), ways.takes))
        have = np.full((n, len(owner)), np.inf)
        have[owner, np.arange(len(owner))] = 0.0
        sent = np.empty((n * len(owner), 4))
        free = np.zeros(len(graph.link))
        count = send_rarest(ways, order, PATIENCE[draw % len(PATIENCE)], draw, free, have, sent)
        if count < 0:
            return None
        if best is None or have.max() < best.time:
            way, chunk = sent[:count, 0].astype(np.int64), sent[:count, 1].astype(np.int64)
            src, dst = ways.src[way], ways.dst[way]
            used = set(zip(src.tolist(), dst.tolist(), strict=True))
            best = Sending(float(have.max()), src, dst, chunk, {ends: paths[ends] for ends in used})
    return best


def _drawn_ways(
    graph: UsableLinks, n_bytes: float, rng: np.random.Generator
) -> tuple[RankRoutes, dict[tuple[int, int], tuple[int, ...]]]:
    """Return the quickest way for a chunk between any two ranks with no third one on it, and its links."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    network, ranks, n, size = graph.network, graph.ranks, len(graph.ranks), graph.n_nodes
    cost = graph.latency + n_bytes / graph.bandwidth
    drawn = (cost + 1e-15) * (1 + _NOISE * rng.random(len(cost)))
    number = np.full(size, -1, np.int64)
    number[ranks] = np.arange(n)
    # What reaches a rank stays there: ranks have a copy that no link leaves.
    end = np.where(number[graph.dst] >= 0, size + number[graph.dst], graph.dst)
    by_cost = np.argsort(drawn, kind="stable")
    _, cheapest = np.unique(graph.src[by_cost].astype(np.int64) * (size + n) + end[by_cost], return_index=True)
    kept = by_cost[cheapest]  # of several links between two nodes one
    table = csr_array((drawn[kept], (graph.src[kept], end[kept])), shape=(size + n, size + n))
    far, before = dijkstra(table, indices=ranks, return_predecessors=True)
    link_of = {(int(graph.src[e]), int(end[e])): int(e) for e in kept}
    first, rows, src, dst, takes, busy = [0], list[int](), list[int](), list[int](), list[float](), list[float]()
    between, paths = np.full((n, n), np.inf), {}
    for u in range(n):
        for v in np.flatnonzero(np.isfinite(far[u, size:])).tolist():
            if v == u:
                continue
            path, at = list[int](), size + v
            while at != ranks[u]:
                path.append(link_of[int(before[u, at]), at])
                at = int(before[u, at])
            path.reverse()
            o, r = float(network.overhead[ranks[u]]), float(network.recv_overhead[ranks[v]])
            rate = float(graph.bandwidth[path].min())
            src.append(u)
            dst.append(v)
            takes.append(o + n_bytes / rate + float(graph.latency[path].sum()) + r)
            between[u, v] = takes[-1]
            busy += [n_bytes / float(graph.bandwidth[e]) + (o if i == 0 else 0.0) for i, e in enumerate(path)]
            rows += path
            first.append(len(rows))
            paths[u, v] = tuple(int(graph.link[e]) for e in path)
    whole = np.int64
    ways = RankRoutes(
        np.array(src, whole), np.array(dst, whole), np.array(first, whole), np.array(rows, whole), np.array(busy),
        np.array(takes), between,
    )  # fmt: skip
    return ways, paths
