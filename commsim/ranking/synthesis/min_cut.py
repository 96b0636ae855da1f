"""Bounds from minimum cuts, found by maximum flows; needs SciPy, the extra ``opt``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.prediction.bounds.crossings import INTO, OUT, Cut
from commsim.prediction.bounds.cuts import cuts_around
from commsim.prediction.bounds.demand import BY_PAIR, Demand, UsableLinks

# Of a graph that is searched: one maximum flow then takes some tens of milliseconds.
MAX_LINKS = 30_000
# Sinks that are tried, evenly spaced over the ranks.
MAX_FLOWS = 48
_UNITS = 2**29  # that all data is; the solver counts in 32 bits

Floats = NDArray[np.float64]


def min_cuts(graph: UsableLinks, demand: Demand) -> Iterator[Cut]:
    """Bounds from the worst cuts that maximum flows find, beyond those that locality suggests.

    For data that all ranks need, and sums backwards, the worst cut of all is found for every rank that is tried: let x
    be the seconds per byte that are known to be needed. Give every rank that has data an arc of as many bytes from one
    source, and every link x times its bandwidth. If less than everything flows to rank v, the minimum cut separates
    ranks whose data do not get to v in time, and says how much longer it takes; with that, go on (Newton's method,
    which ends at the maximum of bytes over capacity). Where every node may send on, this is Edmonds' bound, and trees
    reach it; where switches only forward it is a bound all the same. All-reduce is at least as slow as one rank's data
    to all, and as one rank's sum of all. For messages between pairs, halves of the ranks are separated.

    References
    ----------
    Edmonds, "Edge-disjoint branchings", 1973. Ford and Fulkerson, "Maximal flow through a network", 1956. Dinkelbach,
    "On nonlinear fractional programming", Management Science 1967, for the iteration.
    """
    if demand.kind == "signals" or len(graph.link) > MAX_LINKS or not len(graph.link):
        return
    p = demand.n_ranks
    if demand.kind in (*BY_PAIR, "all_pairs"):
        for sends in _halves(p):
            yield from _cut_between(graph, demand, sends)
        return
    ones = np.zeros(p)
    ones[0] = 1.0
    own = ones if demand.kind == "all_reduce" else demand.amount
    if demand.kind != "collect":
        yield from _worst(graph, own, backwards=False)
    if demand.kind != "spread":
        yield from _worst(graph, own, backwards=True)


def _worst(graph: UsableLinks, own: Floats, backwards: bool) -> Iterator[Cut]:
    """Worst cut over what ranks have for all others (or need of them, backwards)."""
    src, dst = (graph.dst, graph.src) if backwards else (graph.src, graph.dst)
    p = len(own)
    per_byte = float(own.max()) / float(graph.bandwidth.sum())
    best: NDArray[np.bool_] | None = None
    for sink in range(0, p, -(-p // MAX_FLOWS)):
        while True:
            wanted = float(own.sum() - own[sink])
            side = _source_side(graph, src, dst, graph.bandwidth * per_byte, own, sink)
            amount, capacity = float(own[side[graph.ranks]].sum()), float(graph.bandwidth[side[src] & ~side[dst]].sum())
            if not wanted or amount <= capacity * per_byte * (1 + 1e-6):
                break
            if not capacity:
                raise InputError(f"{graph.network.name}: a rank cannot reach another one, so no bound exists")
            per_byte, best = amount / capacity, side
    if best is not None:
        yield Cut(per_byte, f"the capacity {'into' if backwards else 'out of'} {_side_name(graph, best)} (minimum cut)")


def _cut_between(graph: UsableLinks, demand: Demand, sends: NDArray[np.bool_]) -> Iterator[Cut]:
    """Bounds from the minimum cut between some ranks and all others."""
    most = 2 * np.bincount(graph.src, graph.bandwidth, graph.n_nodes)[graph.ranks]  # more than a rank's links carry
    side = _source_side(graph, graph.src, graph.dst, graph.bandwidth, np.where(sends, most, 0.0), -1, ~sends)
    if not side[graph.ranks].any():
        return
    for crossing in cuts_around(graph, demand, np.where(side, 0, -1), 1, ""):
        if crossing.way != INTO:
            why = f"the capacity {OUT} {_side_name(graph, side)} (minimum cut)"
            yield Cut(crossing.per_byte, why, crossing.cut().fixed)


def _source_side(
    graph: UsableLinks,
    src: NDArray[np.int32],
    dst: NDArray[np.int32],
    capacity: Floats,
    own: Floats,
    sink: int,
    sinks: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Nodes on the source's side of a minimum cut between what ranks own and one rank, or several.

    Capacities are rounded for the solver: the cut found may not be quite minimal, but it is a cut.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    n = graph.n_nodes
    ends = np.flatnonzero(sinks) if sinks is not None else np.array([sink])
    has = np.flatnonzero(own > 0)
    a = np.concatenate((src, np.full(len(has), n), graph.ranks[ends]))
    b = np.concatenate((dst, graph.ranks[has], np.full(len(ends), n + 1)))
    rate = np.concatenate((capacity, own[has], np.full(len(ends), np.inf)))
    unit = float(own.sum()) / _UNITS
    whole = np.rint(np.minimum(rate / unit, 2 * _UNITS)).astype(np.int64)  # twice what is sent is as good as infinite
    table = coo_array((whole, (a, b)), shape=(n + 2, n + 2)).tocsr()
    table.data = np.minimum(table.data, 2 * _UNITS).astype(np.int32)
    flow = maximum_flow(table, n, n + 1).flow
    left = table - flow
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    reached = breadth_first_order(left, n, return_predecessors=False)
    side = np.zeros(n + 2, np.bool_)
    side[reached] = True
    return side[:n]


def _halves(p: int) -> Iterator[NDArray[np.bool_]]:
    """First against second half, even against odd ranks, and back."""
    index = np.arange(p)
    for sends in (index < p // 2, index % 2 == 0):
        if 0 < sends.sum() < p:
            yield sends
            yield ~sends


def _side_name(graph: UsableLinks, side: NDArray[np.bool_]) -> str:
    inside = graph.ranks[side[graph.ranks]]
    names = [graph.network.nodes[int(node)] for node in inside[:3]]
    more = f" and {len(inside) - 3} others" if len(inside) > 3 else ""
    return f"{', '.join(names)}{more}"
