"""Splitting a switch off: pairs of its arcs become arcs past it, without making any cut too small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

from .max_flow_kernel import UNLIMITED, Arcs, PathSearch, add_arc, drop_arcs, max_flow, reaches_all, room_between, widen

Numbers = NDArray[np.int64]


@kernel
def replace_pair(arcs: Arcs, src: int, switch: int, dst: int, room: int) -> None:
    """Let so much of src -> switch -> dst go past the switch; what would come back to its source is dropped."""
    widen(arcs, src, switch, -room)
    widen(arcs, switch, dst, -room)
    if src != dst:
        widen(arcs, src, dst, room)


@kernel
def split_exactly(arcs: Arcs, search: PathSearch, switch: int, n_ranks: int, wanted: int, pairs: Numbers) -> int:
    """Split a switch off: for each pair of its arcs as much as keeps `wanted` flowing to every rank.

    The source is the last node. A pair needs to be looked at once, since what is safe for it only shrinks. Pairs that
    return to where they come from are last: they throw capacity away.

    Parameters
    ----------
    arcs : Arcs
        The graph.
    search : PathSearch
        Its memory.
    switch : int
        Number of the switch, which has as much in as out.
    n_ranks : int
        Nodes ``0 .. n_ranks-1`` need the flow.
    wanted : int
        How much.
    pairs : int64[n, 3]
        Gets source, destination and amount of what is split.

    Returns
    -------
    int
        Rows of `pairs`, or -1 where the switch keeps capacity, which balanced switches do not.
    """
    n_nodes = len(arcs.first) - 1
    n_found = 0
    for back in (False, True):
        for u in range(n_nodes):
            for shift in range(1, n_nodes + 1):  # beginning behind the source spreads the pairs
                t = (u + shift) % n_nodes
                if room_between(arcs, u, switch) == 0:
                    break
                most = min(room_between(arcs, u, switch), room_between(arcs, switch, t))
                if most == 0 or (u == t) != back:
                    continue
                amount = _safe_amount(arcs, search, np.array([u, switch, t]), n_ranks, wanted, most)
                if amount > 0:
                    replace_pair(arcs, u, switch, t, amount)
                    pairs[n_found] = u, t, amount
                    n_found += 1
    for u in range(n_nodes):
        if room_between(arcs, u, switch) or room_between(arcs, switch, u):
            return -1
    return n_found


@kernel
def _safe_amount(arcs: Arcs, search: PathSearch, pair: Numbers, n_ranks: int, wanted: int, most: int) -> int:
    """How much of a pair (src, switch, dst) can be replaced: all if that passes the plain test, else the least slack.

    References
    ----------
    Bang-Jensen, Frank and Jackson, "Preserving and increasing local edge-connectivity in mixed graphs", 1995. Zhao et
    al., "ForestColl", 2024, theorem 6.
    """
    u, switch, t = pair
    source = len(arcs.first) - 1
    replace_pair(arcs, u, switch, t, most)
    if reaches_all(arcs, search, source, n_ranks, wanted) < 0:
        replace_pair(arcs, u, switch, t, -most)
        return most
    replace_pair(arcs, u, switch, t, -most)
    slack = most
    count = arcs.n_arcs[0]
    for v in range(n_ranks):
        if v != u and v != t:
            add_arc(arcs, u, source, UNLIMITED)
            add_arc(arcs, u, t, UNLIMITED)
            add_arc(arcs, v, switch, UNLIMITED)
            slack = min(slack, max_flow(arcs, search, u, switch, wanted + slack) - wanted)
            drop_arcs(arcs, count)
        add_arc(arcs, switch, source, UNLIMITED)
        add_arc(arcs, u, t, UNLIMITED)
        if v != u:
            add_arc(arcs, v, t, UNLIMITED)
        slack = min(slack, max_flow(arcs, search, switch, t, wanted + slack) - wanted)
        drop_arcs(arcs, count)
        if slack <= 0:
            return 0
    return slack
