"""The best that a small network allows, by linear programs: all-to-all exactly, all-reduce over trees.

Both need SciPy, the extra ``opt``. Paths are free here: a bound, not what a routing makes of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.prediction.bounds.demand import UsableLinks

from .flow_program import FlowProgram, incidence, on_links, send, unit

MAX_VARIABLES = 60_000


def all_to_all_rate(network: Network) -> float | None:
    """Highest algorithm bandwidth of all-to-all: the maximum concurrent flow between all pairs, times their number.

    With ``f[s, e]`` the bytes from endpoint s on link e, for a vector of one byte per rank, with 1/p to each:
    minimise T such that every endpoint absorbs 1/p of what each other sends, everything else passes on what it gets,
    and no link carries more than T times its bandwidth.

    Returns
    -------
    float or None
        Bytes/s of S = the vector of one rank over T; None without SciPy or for a network too large for the program;
        infinite for one endpoint.

    Raises
    ------
    InputError
        If some endpoint cannot reach another one.

    References
    ----------
    Shahrokhi and Matula, "The maximum concurrent flow problem", JACM 1990.
    """
    p = len(network.endpoints)
    if p < 2:
        return float("inf")
    if p * network.n_links > MAX_VARIABLES or not _has_solver():
        return None
    program, graph = FlowProgram(), _graph(network)
    return _rate(program, graph, [_send_columns(program, graph, s, [], np.full(p, 1.0 / p)) for s in range(p)])


def tree_all_reduce_rate(network: Network) -> float | None:
    """Highest algorithm bandwidth of an all-reduce that reduces and broadcasts along trees, without switches that add.

    Every part of the vector is reduced along some tree of endpoints to a root and broadcast along another from it;
    ring, tree, halving-doubling and hierarchical schedules are of this kind. Let ``x[r]`` be the part with root r, and
    ``b[u, v]``, ``c[u, v]`` what is sent from endpoint u to v to broadcast and to reduce. Trees that carry all of it
    exist exactly if ``b`` (and ``c`` reversed) lets 1 flow to every v from a source that is joined to each r by x[r]
    (Edmonds' branching theorem, by max-flow min-cut). Messages are routed freely, as in all-to-all.

    Returns
    -------
    float or None
        As for :func:`all_to_all_rate`.

    Raises
    ------
    InputError
        If some endpoint cannot reach another one.

    References
    ----------
    Edmonds, "Edge-disjoint branchings", 1973. Zhao et al., "ForestColl: throughput-optimal collective communications
    on heterogeneous network fabrics", 2024, for the same idea with switches split off.
    """
    p = len(network.endpoints)
    if p < 2:
        return float("inf")
    if p * network.n_links + 2 * (p + 1) * p * (p - 1) > MAX_VARIABLES or not _has_solver():
        return None
    from scipy.sparse import coo_array

    arcs = np.array([(u, v) for u in range(p) for v in range(p) if u != v])
    program, graph = FlowProgram(), _graph(network)
    root, down, up = program.columns(p), program.columns(len(arcs)), program.columns(len(arcs))
    program.equal.append((coo_array(np.ones((1, p))), root, np.ones(1)))
    carried = []
    for s in range(p):
        of_s = np.flatnonzero(arcs[:, 0] == s)
        variable = [(v, int(way[a])) for a, v in zip(of_s, arcs[of_s, 1].tolist(), strict=True) for way in (down, up)]
        carried.append(_send_columns(program, graph, s, variable, np.zeros(p)))
    for ways, sent in ((arcs, down), (arcs[:, ::-1], up)):
        for sink in range(p):
            _from_roots(program, ways, sent, root, sink)
    return _rate(program, graph, carried)


def _has_solver() -> bool:
    try:
        import scipy.optimize  # noqa: F401 - asked before any work is done
    except ImportError:
        return False
    return True


def _graph(network: Network) -> UsableLinks:
    """Return all links, with a rank on every endpoint."""
    ranks = network.endpoints.astype(np.int32)
    return UsableLinks(network, ranks, False, network.kind == network.seat_kind, np.ones(network.n_nodes, np.bool_))


def _send_columns(
    program: FlowProgram, graph: UsableLinks, s: int, variable: list[tuple[int, int]], fixed: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Columns for what endpoint s puts on the links; nodes that do not forward pass nothing of it on."""
    from scipy.sparse import eye_array

    columns = send(program, graph, int(graph.ranks[s]), variable, fixed, s)
    closed = np.flatnonzero(~graph.network.forwards[graph.src] & (graph.src != graph.ranks[s]))
    if closed.size:
        program.equal.append((eye_array(len(closed)), columns[closed], np.zeros(len(closed))))
    return columns


def _from_roots(
    program: FlowProgram, arcs: NDArray[np.int64], capacity: NDArray[np.int64], root: NDArray[np.int64], sink: int
) -> None:
    """Require that 1 flows to the sink from the roots, of each at most its part, on arcs of these capacities."""
    from scipy.sparse import eye_array, hstack

    moved, source = program.columns(len(arcs)), program.columns(len(root))
    for part, limit in ((moved, capacity), (source, root)):
        one = eye_array(len(part))
        program.most.append((hstack([one, -one]), np.concatenate((part, limit)), np.zeros(len(part))))
    balance = hstack([incidence(arcs[:, 0], arcs[:, 1], len(root)), eye_array(len(root))])
    wanted = np.zeros(len(root))
    wanted[sink] = 1.0
    program.equal.append((balance, np.concatenate((moved, source)), wanted))


def _rate(program: FlowProgram, graph: UsableLinks, carried: list[NDArray[np.int64]]) -> float:
    """Solve it, and return 1 over the least T, in bytes/s."""
    return unit(graph) / on_links(program, graph, carried).solve(graph.network.name, rounding=0.0)
