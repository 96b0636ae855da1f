"""Bounds from distances: a byte uses up some of all links together, at least those of the shortest way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.prediction.bounds.crossings import Cut
from commsim.prediction.bounds.demand import Demand, UsableLinks

Floats = NDArray[np.float64]

# Sources times links: some seconds.
MAX_STEPS = 40_000_000
# By which long sums may be off.
ROUNDING = 1e-9
# Sources that are searched from at once, so that their distances take little memory.
EACH = 64


def volume_bounds(graph: UsableLinks, demand: Demand) -> Iterator[Cut]:
    """Bounds of messages between pairs by what they take up of all links together.

    Give every link e a length l[e]. A byte from s to t, by whatever way, uses links whose lengths add up to at least
    their distance, and in time T link e carries at most T c[e] bytes. So T is at least the sum over pairs of bytes
    times distance, over the sum of c[e] l[e]. That holds for any lengths; the best ones would be the maximum concurrent
    flow's, by duality. Two are tried: all links equally long, which counts bytes times links, and each as long as a
    byte takes on it. They meet the best on rings, tori and other networks whose links are all alike, where every cut
    that one could think of is below it.

    References
    ----------
    Shahrokhi and Matula, "The maximum concurrent flow problem", JACM 1990, for the duality.
    """
    m = len(graph.link)
    sources = np.unique(demand.src) if demand.kind == "pairs" else np.arange(demand.n_ranks)
    if demand.kind not in ("pairs", "all_pairs") or not m or len(sources) * m > MAX_STEPS:
        return
    for length, what in ((np.ones(m), "bytes times links"), (1 / graph.bandwidth, "bytes times time on links")):
        taken = sum(_byte_distance(graph, demand, sources[i : i + EACH], length) for i in range(0, len(sources), EACH))
        if not np.isfinite(taken):
            raise InputError(f"{graph.network.name}: a rank cannot reach another one, so there is no bound")
        yield Cut(taken / float((graph.bandwidth * length).sum()) * (1 - ROUNDING), f"all {m} links together ({what})")


def _byte_distance(graph: UsableLinks, demand: Demand, sources: NDArray[np.intp], length: Floats) -> float:
    """Bytes times distance of all that some ranks send, per byte of the operation."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    order = np.lexsort((length, graph.dst, graph.src))
    first = np.ones(len(order), np.bool_)  # of parallel links the shortest
    first[1:] = (np.diff(graph.src[order]) != 0) | (np.diff(graph.dst[order]) != 0)
    keep = order[first]
    table = csr_array((length[keep], (graph.src[keep], graph.dst[keep])), shape=(graph.n_nodes,) * 2)
    far = dijkstra(table, indices=graph.ranks[sources])[:, graph.ranks]
    if demand.kind == "all_pairs":
        return float(far.sum()) / demand.n_ranks
    own = np.isin(demand.src, sources)
    return float((far[np.searchsorted(sources, demand.src[own]), demand.dst[own]] * demand.amount[own]).sum())
