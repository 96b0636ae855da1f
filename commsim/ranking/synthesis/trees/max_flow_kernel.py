"""Maximum flow in integers: a graph of arcs that can be changed, and Dinic's algorithm with an early end.

An arc and its reverse are neighbours in the tables (numbers ``e`` and ``e ^ 1``), so that a cable is one pair. Arcs of
a node form a list, newest first: what is added last is dropped first, which is what questions of the form "and if this
arc were infinite?" need.

References
----------
Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", 1970.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

Numbers = NDArray[np.int64]

# More than any flow that is asked for; sums of a few of them do not overflow.
UNLIMITED = 2**59


class Arcs(NamedTuple):
    """A graph; changed in place."""

    first: Numbers  # [n_nodes], newest arc of each node, or -1
    older: Numbers  # [limit], the next arc of the same node
    head: Numbers  # [limit], where it ends
    room: Numbers  # [limit], capacity
    between: Numbers  # [n_nodes, n_nodes], the lasting arc from one node to another, or -1
    n_arcs: Numbers  # [1], arcs that there are


class PathSearch(NamedTuple):
    """Memory of a search; `left` and `level` say afterwards what it found."""

    left: Numbers  # [limit], capacity that the flow leaves
    level: Numbers  # [n_nodes], hops from the source, or -1 on the sink's side of a minimum cut
    queue: Numbers  # [n_nodes]
    current: Numbers  # [n_nodes], arc that is tried next
    path: Numbers  # [n_nodes], arcs from the source to where the search is


def new_graph(n_nodes: int, limit: int) -> tuple[Arcs, PathSearch]:
    """Return a graph without arcs, and memory to search it.

    Parameters
    ----------
    n_nodes : int
        Nodes.
    limit : int
        Arcs, both directions counted, that it may come to have.
    """
    limit += limit % 2
    arcs = Arcs(
        np.full(n_nodes, -1, np.int64),
        np.zeros(limit, np.int64),
        np.zeros(limit, np.int64),
        np.zeros(limit, np.int64),
        np.full((n_nodes, n_nodes), -1, np.int64),
        np.zeros(1, np.int64),
    )
    return arcs, PathSearch(np.zeros(limit, np.int64), *(np.zeros(n_nodes, np.int64) for _ in range(4)))


@kernel
def add_arc(arcs: Arcs, src: int, dst: int, room: int) -> int:
    """Add an arc, and its reverse without capacity; return its number."""
    e = int(arcs.n_arcs[0])
    arcs.n_arcs[0] = e + 2
    arcs.head[e], arcs.head[e + 1] = dst, src
    arcs.room[e], arcs.room[e + 1] = room, 0
    arcs.older[e], arcs.first[src] = arcs.first[src], e
    arcs.older[e + 1], arcs.first[dst] = arcs.first[dst], e + 1
    return e


@kernel
def drop_arcs(arcs: Arcs, count: int) -> None:
    """Drop the newest arcs until there are `count` left; none of them may be a lasting one."""
    while arcs.n_arcs[0] > count:
        e = arcs.n_arcs[0] - 2
        arcs.first[arcs.head[e]] = arcs.older[e + 1]
        arcs.first[arcs.head[e + 1]] = arcs.older[e]
        arcs.n_arcs[0] = e


@kernel
def widen(arcs: Arcs, src: int, dst: int, room: int) -> None:
    """Add capacity (or take it, if negative) to the lasting arc between two nodes, which is made if missing."""
    e = arcs.between[src, dst]
    if e < 0:
        e = add_arc(arcs, src, dst, 0)
        arcs.between[src, dst], arcs.between[dst, src] = e, e ^ 1
    arcs.room[e] += room


@kernel
def room_between(arcs: Arcs, src: int, dst: int) -> int:
    """Return the capacity of the lasting arc between two nodes; 0 without one."""
    e = arcs.between[src, dst]
    return int(arcs.room[e]) if e >= 0 else 0


@kernel
def max_flow(arcs: Arcs, search: PathSearch, source: int, sink: int, limit: int) -> int:
    """Return the maximum flow, or `limit` as soon as it is known to be that much.

    If less than `limit`, nodes with a level are the source's side of a minimum cut.
    """
    left, level, current, path = search.left, search.level, search.current, search.path
    head, older = arcs.head, arcs.older
    m = arcs.n_arcs[0]
    for e in range(m):
        left[e] = arcs.room[e]
    flow = 0
    while flow < limit and _find_levels(arcs, search, source, sink):
        for v in range(current.shape[0]):
            current[v] = arcs.first[v]
        depth, node = 0, source
        while flow < limit:
            if node == sink:
                pushed = limit - flow
                for i in range(depth):
                    pushed = min(pushed, left[path[i]])
                flow += pushed
                back = 0
                for i in range(depth - 1, -1, -1):
                    left[path[i]] -= pushed
                    left[path[i] ^ 1] += pushed
                    if left[path[i]] == 0:
                        back = i
                depth = back  # go on where the first arc of the path became full
                node = head[path[depth] ^ 1]
                continue
            e = current[node]
            while e >= 0 and (left[e] == 0 or level[head[e]] != level[node] + 1):
                e = older[e]
            current[node] = e
            if e >= 0:
                path[depth] = e
                depth += 1
                node = head[e]
            elif depth == 0:
                break
            else:  # a dead end: its level is of no use any more
                level[node] = -2
                depth -= 1
                node = head[path[depth] ^ 1]
    return flow


@kernel
def _find_levels(arcs: Arcs, search: PathSearch, source: int, sink: int) -> bool:
    """Find the distances of nodes from the source; whether the sink is reached."""
    level, queue = search.level, search.queue
    level[:] = -1
    level[source] = 0
    queue[0] = source
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        if node == sink:  # nodes that are as far as the sink are of no use
            return True
        e = arcs.first[node]
        while e >= 0:
            at = arcs.head[e]
            if level[at] < 0 and search.left[e] > 0:
                level[at] = level[node] + 1
                queue[last] = at
                last += 1
            e = arcs.older[e]
    return False


@kernel
def reaches_all(arcs: Arcs, search: PathSearch, source: int, n_sinks: int, wanted: int) -> int:
    """Return the first of the nodes ``0 .. n_sinks-1`` to which less than `wanted` flows from the source, or -1."""
    for sink in range(n_sinks):
        if max_flow(arcs, search, source, sink, wanted) < wanted:
            return sink
    return -1
