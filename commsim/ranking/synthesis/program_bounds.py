"""Bounds from linear programs, for small networks; needs SciPy, the extra ``opt``.

What a schedule sends over the network, all its messages together, is a solution of the program with T its time per
byte of the operation; so the least T is a bound. Paths are free, data may be cut as finely as one likes, and it does
not matter when things are sent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.prediction.bounds.crossings import Cut
from commsim.prediction.bounds.demand import BY_PAIR, Demand, UsableLinks

from .flow_program import FlowProgram, flow, on_links, send, unit

# Up to this, SciPy's solver took at most 4 s of one core.
MAX_VARIABLES = 25_000


def program_bound(graph: UsableLinks, demand: Demand) -> Cut | None:
    """Return the bound of the linear program; None where it is too large, or says no more than cuts do.

    *Messages between pairs*: the maximum concurrent flow. ``f[s, e]`` is what rank s sends over link e; everything
    arrives, nothing is lost, and no link carries more than T times its bandwidth.

    *Data that all need*, where switches only forward: let ``a[u, v]`` be what rank u sends to rank v, routed as above.
    Each sink must be able to get all data over the arcs ``a``, since each part of it came to the sink along a chain of
    messages. (Backwards for sums.) By Edmonds' theorem trees exist that reach this.

    *All-reduce*, where switches only forward: all ranks need something of all others, so the arcs let 1 flow from rank
    0 to each and from each to rank 0, hence over every cut both ways. And between any k groups of ranks at least 2(k-1)
    is sent (:meth:`Demand.between`). By the theorem of Nash-Williams and Tutte this says that ``a``, directions
    forgotten, holds two spanning trees; and that is so exactly if directions can be chosen such that 2 flow from rank 0
    to each rank. So it is a program of flows too.

    Raises
    ------
    InputError
        If some rank cannot reach another one.

    References
    ----------
    Shahrokhi and Matula, "The maximum concurrent flow problem", JACM 1990. Edmonds, "Edge-disjoint branchings", 1973.
    Nash-Williams, "Edge-disjoint spanning trees of finite graphs", J. London Math. Soc. 1961.
    """
    size = n_variables(graph, demand)
    if not size or size > MAX_VARIABLES:
        return None
    if demand.kind in ("pairs", "all_pairs"):
        return Cut(_messages(graph, demand), "all links together (linear program, maximum concurrent flow)")
    if demand.kind == "all_reduce":
        return Cut(_all_reduce(graph), "all links together (linear program, two spanning trees and every cut)")
    return Cut(_spread(graph, demand), "all links together (linear program, trees)")


def n_variables(graph: UsableLinks, demand: Demand) -> int:
    """Return the size of the program; 0 where cuts say all that there is to say."""
    p, m = demand.n_ranks, len(graph.link)
    if p < 2 or demand.kind in ("signals", *BY_PAIR[1:]):
        return 0
    if demand.kind in ("pairs", "all_pairs"):
        return 1 + (len(np.unique(demand.src)) if demand.kind == "pairs" else p) * m
    if graph.anywhere or len(graph.helpers):
        return 0
    blocks = 3 * (p - 1) + 2 if demand.kind == "all_reduce" else p + 1
    return 1 + p * m + blocks * p * (p - 1)


def _messages(graph: UsableLinks, demand: Demand) -> float:
    program, p = FlowProgram(), demand.n_ranks
    wanted = np.full((p, p), 1.0 / p)
    if demand.kind == "pairs":
        wanted = np.zeros((p, p))
        wanted[demand.src, demand.dst] = demand.amount
    flows = [
        (send(program, graph, graph.ranks[s], [], wanted[s], s), s) for s in range(p) if wanted[s].sum() > wanted[s, s]
    ]
    return on_links(program, graph, [columns for columns, _ in flows]).solve(graph.network.name) / unit(graph)


def _spread(graph: UsableLinks, demand: Demand) -> float:
    back = demand.kind == "collect"
    program, sent, arcs, carried = _messages_between_ranks(graph, back)
    total = demand.amount
    for sink in range(demand.n_ranks):
        flow(program, arcs, sent, total, sink)
    return on_links(program, graph, carried).solve(graph.network.name) / unit(graph)


def _all_reduce(graph: UsableLinks) -> float:
    from scipy.sparse import eye_array, hstack

    program, sent, arcs, carried = _messages_between_ranks(graph, back=False)
    p = len(graph.ranks)
    turned = program.columns(len(sent))
    reverse = np.lexsort((arcs[:, 0], arcs[:, 1]))  # arcs are sorted by source and then sink
    half = np.flatnonzero(arcs[:, 0] < arcs[:, 1])
    one = eye_array(len(half))
    program.most.append((
        hstack([one, one, -one, -one]),
        np.concatenate((turned[half], turned[reverse][half], sent[half], sent[reverse][half])),
        np.zeros(len(half)),
    ))  # fmt: skip
    at_first = np.zeros(p)
    at_first[0] = 1.0
    for other in range(1, p):
        flow(program, arcs, sent, at_first, other)
        flow(program, arcs[:, ::-1], sent, at_first, other)
        flow(program, arcs, turned, 2 * at_first, other)
    return on_links(program, graph, carried).solve(graph.network.name) / unit(graph)


def _messages_between_ranks(
    graph: UsableLinks, back: bool
) -> tuple[FlowProgram, NDArray[np.int64], NDArray[np.int64], list[NDArray[np.int64]]]:
    """Columns for what each rank sends to each other and what that puts on links, which `back` turns round."""
    program, p = FlowProgram(), len(graph.ranks)
    arcs = np.array([(u, v) for u in range(p) for v in range(p) if u != v])
    sent = program.columns(len(arcs))
    carried = []
    for u in range(p):
        of_u = np.flatnonzero(arcs[:, 0] == u)
        variable = list(zip(arcs[of_u, 1].tolist(), sent[of_u].tolist(), strict=True))
        carried.append(send(program, graph, graph.ranks[u], variable, np.zeros(p), u, back))
    return program, sent, arcs, carried
