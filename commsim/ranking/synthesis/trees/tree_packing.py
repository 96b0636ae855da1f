"""Trees that carry the optimum: packed among ranks, and put back on the network's links."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import PhysicsError

from .max_flow_kernel import Arcs, PathSearch, new_graph, widen
from .packing_kernel import pack_root, pack_widest
from .splitting import Path, RankGraph

# Batches of a root that are packed by the widest arcs: as many as there are, or another way is better.
_WIDE = 64


@dataclass(frozen=True, slots=True)
class SpanningTrees:
    """Equal spanning trees of one root.

    Parameters
    ----------
    root : int
        Rank that has the data.
    units : int
        How many unit trees these are.
    src, dst : tuple of int
        Arcs, those nearer to the root first.
    paths : tuple of tuple of int
        Links of each arc.
    """

    root: int
    units: int
    src: tuple[int, ...]
    dst: tuple[int, ...]
    paths: tuple[Path, ...]

    @property
    def depths(self) -> tuple[int, ...]:
        """Arcs from the root to the end of each arc."""
        depth = {self.root: 0}
        for a, b in zip(self.src, self.dst, strict=True):
            depth[b] = depth[a] + 1
        return tuple(depth[b] for b in self.dst)

    @property
    def height(self) -> int:
        """Arcs from the root to the farthest rank."""
        return max(self.depths, default=0)

    def backwards(self) -> SpanningTrees:
        """Return the same with its links reversed in order, for a tree that was found in a reversed network."""
        return SpanningTrees(self.root, self.units, self.src, self.dst, tuple(path[::-1] for path in self.paths))


def pack(graph: RankGraph, report: Callable[[int, int], None] | None = None) -> list[SpanningTrees]:
    """Pack the trees of all roots, and put their arcs on links.

    Parameters
    ----------
    graph : RankGraph
        Capacities among ranks that let all trees fit; used up.
    report : callable, optional
        Called with how many roots are done, of how many.

    Raises
    ------
    PhysicsError
        If they do not fit, which would contradict Edmonds' theorem.
    """
    n, trees = graph.n_ranks, list[SpanningTrees]()
    roots = np.flatnonzero(graph.roots)
    later = int(graph.roots.sum())
    limit = 256
    arcs, search = _without_switches(graph, limit)
    for number, root in enumerate(roots.tolist()):
        later -= int(graph.roots[root])
        batch, parent = np.zeros((limit, 5 + n), np.int64), np.zeros((limit, n), np.int64)
        found = pack_root(arcs, search, root, n, later, batch, parent)
        if found < 0:
            raise PhysicsError(f"the trees of rank {root} do not fit ({found})")
        for row in range(found):
            order = batch[row, 5:]
            trees += _on_links(graph, root, int(batch[row, 0]), order[1:].tolist(), parent[row, 1:].tolist())
        if report is not None:
            report(number + 1, len(roots))
    return trees


def pack_widely(graph: RankGraph, report: Callable[[int, int], None] | None = None) -> list[SpanningTrees] | None:
    """Pack the trees of all roots by their widest arcs; None where that does not succeed.

    Parameters
    ----------
    graph : RankGraph
        Capacities among ranks; its units are used up only on success.
    report : callable, optional
        Same as in :func:`pack`.
    """
    n = graph.n_ranks
    between = graph.arcs.between[:n, :n]
    room = np.where(between >= 0, graph.arcs.room[np.maximum(between, 0)], 0)
    trees = []
    roots = np.flatnonzero(graph.roots)
    for number, root in enumerate(roots.tolist()):
        batch, parent = np.zeros((_WIDE, 5 + n), np.int64), np.zeros((_WIDE, n), np.int64)
        count = pack_widest(room, root, int(graph.roots[root]), batch, parent)
        if count < 0:
            return None
        trees.append((root, batch[:count], parent[:count]))
        if report is not None:
            report(number + 1, len(roots))
    return [
        tree
        for root, batch, parent in trees
        for row, senders in zip(batch, parent, strict=True)
        for tree in _on_links(graph, root, int(row[0]), row[6:].tolist(), senders[1:].tolist())
    ]


def _without_switches(graph: RankGraph, limit: int) -> tuple[Arcs, PathSearch]:
    """Return only the ranks' graph, with nodes for waiting batches, and the source last."""
    n = graph.n_ranks
    between = graph.arcs.between[:n, :n]
    src, dst = np.nonzero(between >= 0)
    room = graph.arcs.room[between[src, dst]]
    arcs, search = new_graph(n + limit + 1, 2 * (len(src) + n + limit * (n + 2)))
    for a, b, units in zip(src[room > 0].tolist(), dst[room > 0].tolist(), room[room > 0].tolist(), strict=True):
        widen(arcs, a, b, units)
    for rank, units in enumerate(graph.roots.tolist()):
        widen(arcs, n + limit, rank, units)
    return arcs, search


def _on_links(graph: RankGraph, root: int, units: int, dst: list[int], src: list[int]) -> Iterator[SpanningTrees]:
    """Give each arc of some equal trees links; the trees split where arcs go over links in different amounts."""
    parts = graph.take(src, dst, units)
    if all(len(part) == 1 for part in parts):  # nearly always, and a tree has as many arcs as there are ranks
        yield SpanningTrees(root, units, tuple(src), tuple(dst), tuple(part[0][1] for part in parts))
        return
    cuts = sorted({int(cut) for part in parts for cut in np.cumsum([have for have, _ in part])})
    at, before = [0] * len(parts), 0
    behind = [part[0][0] for part in parts]
    for cut in cuts:
        paths = tuple(part[i][1] for part, i in zip(parts, at, strict=True))
        yield SpanningTrees(root, cut - before, tuple(src), tuple(dst), paths)
        before = cut
        for i, part in enumerate(parts):
            if behind[i] == cut and cut < units:
                at[i] += 1
                behind[i] += part[at[i]][0]
