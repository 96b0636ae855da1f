"""Packing of trees: one batch of equal trees at a time grows by arcs that leave room for all others.

References
----------
Tarjan, "A good algorithm for edge-disjoint branching", 1974. Bang-Jensen, Frank and Jackson, "Preserving and increasing
local edge-connectivity in mixed graphs", 1995. Berczi and Frank, "Packing arborescences", 2010.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

from .max_flow_kernel import UNLIMITED, Arcs, PathSearch, add_arc, drop_arcs, max_flow

Numbers = NDArray[np.int64]


@kernel
def pack_root(
    arcs: Arcs, search: PathSearch, root: int, n_ranks: int, later: int, batch: Numbers, parent: Numbers
) -> int:
    """Pack all trees of a root, in batches of equal trees; return the number of batches, or -1 where there are more.

    A batch takes an arc from a rank that it has to one that it has not, for as many of its trees as leave the others
    what they need: the flow to that rank from the roots of all others, and from the rank that sends. Where that is not
    all of them, the batch splits: the rest waits. Trees are low, since they grow level by level. Of a level the rank
    sends that has most left beyond one arc of its own trees to each rank. A pair that is refused once stays refused, so
    that a batch that waited goes on where it was left.

    Parameters
    ----------
    arcs : Arcs
        What is left of the ranks' graph; nodes from ``n_ranks`` to the last but one represent waiting batches. The last
        is the source, with an arc to every root whose turn it is now or later.
    search : PathSearch
        Its memory.
    root : int
        Root of the trees.
    n_ranks : int
        Nodes that trees span.
    later : int
        Unit trees of the roots whose turn comes later.
    batch : int64[limit, 5 + n_ranks]
        Gets units, how many ranks joined, the first and the end of the level that sends, where the search goes on, and
        the ranks in the order of joining.
    parent : int64[limit, n_ranks]
        Gets who sends to each of these; -1 for the root.
    """
    source, last = len(arcs.first) - 1, len(batch) - 1
    lasting = arcs.n_arcs[0]
    inside, refused = np.zeros(n_ranks, np.bool_), np.zeros(n_ranks, np.bool_)
    below = np.zeros(len(batch), np.int64)  # arcs that there were before those of each waiting batch
    left = np.zeros(n_ranks, np.int64)  # what each rank can still send, without what its own trees to come send first
    for x in range(n_ranks):
        for y in range(n_ranks):
            e = arcs.between[x, y]
            if e >= 0 and arcs.room[e] > 0:
                own = arcs.between[source, x]
                left[x] += arcs.room[e] - (min(arcs.room[e], arcs.room[own]) if own >= 0 and x != root else 0)
    own = arcs.between[source, root]
    batch[0, 0], batch[0, 1], batch[0, 2], batch[0, 3], batch[0, 4] = arcs.room[own], 1, 0, 1, 0
    batch[0, 5], parent[0, 0] = root, -1
    arcs.room[own] = 0
    inside[root] = True
    done, waiting, required = 0, 0, later
    while True:
        now = batch[done]
        while now[1] < n_ranks:
            if now[4] == n_ranks:  # all have been asked for by this level
                if now[3] == now[1]:
                    return -2  # no arc is left: the capacities did not let the trees fit
                now[2], now[3], now[4] = now[3], now[1], 0
            y = (root + 1 + now[4]) % n_ranks
            x = -1 if inside[y] else _fullest(arcs, left, refused, now, y)
            if x < 0:
                now[4] += 1
                refused[:] = False
                continue
            e = arcs.between[x, y]
            most = min(now[0], arcs.room[e])
            count = arcs.n_arcs[0]
            add_arc(arcs, source, x, UNLIMITED)
            fits = max_flow(arcs, search, source, y, required + most) - required
            drop_arcs(arcs, count)
            if fits <= 0:
                refused[x] = True
                continue
            if fits < now[0]:
                if done + waiting >= last or n_ranks + waiting >= source:
                    return -1
                _let_wait(arcs, batch, parent, done, waiting, fits)
                below[waiting] = count
                required += now[0] - fits
                waiting += 1
                now[0] = fits
            arcs.room[e] -= now[0]
            left[x] -= now[0]
            now[5 + now[1]], parent[done, now[1]], inside[y] = y, x, True
            now[1] += 1
        done += 1
        if waiting == 0:
            break
        waiting -= 1
        _copy_row(batch, parent, last - waiting, done)
        drop_arcs(arcs, below[waiting])
        required -= batch[done, 0]
        inside[:], refused[:] = False, False
        for i in range(batch[done, 1]):
            inside[batch[done, 5 + i]] = True
    drop_arcs(arcs, lasting)
    return done


@kernel
def _fullest(arcs: Arcs, left: Numbers, refused: NDArray[np.bool_], now: Numbers, y: int) -> int:
    """Return the rank of a batch's level that has an arc to a rank and can send most else; -1 if none has."""
    best = -1
    for i in range(now[2], now[3]):
        x = now[5 + i]
        e = arcs.between[x, y]
        if e >= 0 and arcs.room[e] > 0 and not refused[x] and (best < 0 or left[x] > left[best]):
            best = x
    return best


@kernel
def _let_wait(arcs: Arcs, batch: Numbers, parent: Numbers, now: int, waiting: int, fits: int) -> None:
    """Keep the rest of a batch, and let the source reach its ranks through a node of its own."""
    row = len(batch) - 1 - waiting
    _copy_row(batch, parent, now, row)
    batch[row, 0] -= fits
    node = parent.shape[1] + waiting
    add_arc(arcs, len(arcs.first) - 1, node, batch[row, 0])
    for i in range(batch[row, 1]):
        add_arc(arcs, node, batch[row, 5 + i], UNLIMITED)


@kernel
def _copy_row(batch: Numbers, parent: Numbers, row: int, to: int) -> None:
    """Copy a batch, item by item: Numba compiles a message about shapes where rows are copied whole."""
    for i in range(batch.shape[1]):
        batch[to, i] = batch[row, i]
    for i in range(parent.shape[1]):
        parent[to, i] = parent[row, i]


@kernel
def pack_widest(room: Numbers, root: int, units: int, batch: Numbers, parent: Numbers) -> int:
    """Pack all trees of a root by the widest arcs, without asking what others need; return the batches, or -1.

    The rank that joins next is the one with the widest arc from those that joined; of equal ones the one that is
    nearest to the root. Where that succeeds for all roots the trees are packed, and no flow has to be computed.

    Parameters
    ----------
    room : int64[n_ranks, n_ranks]
        What is left of every arc; changed in place.
    root : int
        Root of the trees.
    units : int
        Unit trees that it has.
    batch : int64[limit, 5 + n_ranks]
        Same as in :func:`pack_root`.
    parent : int64[limit, n_ranks]
        Likewise.
    """
    n = len(room)
    width, sender, depth = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    done = 0
    while units > 0:
        if done == len(batch):
            return -1
        width[:], depth[:] = 0, n
        depth[root], width[root] = 0, -1
        batch[done, 1], batch[done, 5], parent[done, 0] = n, root, -1
        last, most = root, units
        for joined in range(1, n):
            best = -1
            for shift in range(1, n):
                y = (root + shift) % n
                if width[y] < 0:
                    continue
                wide = room[last, y]
                if wide > width[y] or (wide == width[y] and wide > 0 and depth[last] + 1 < depth[y]):
                    width[y], sender[y], depth[y] = wide, last, depth[last] + 1
                if width[y] > 0 and (
                    best < 0 or width[y] > width[best] or (width[y] == width[best] and depth[y] < depth[best])
                ):
                    best = y
            if best < 0:
                return -1
            most = min(most, width[best])
            width[best] = -1
            batch[done, 5 + joined], parent[done, joined] = best, sender[best]
            last = best
        batch[done, 0] = most
        for joined in range(1, n):
            room[parent[done, joined], batch[done, 5 + joined]] -= most
        units -= most
        done += 1
    return done
