"""An upper bound on the bisection bandwidth: what half of the endpoints can send to the others, for the worst tried.

The halves are orders of the endpoints, random ones, and where every switch has hosts those of a partitioner.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network

HALVES = "the worst of halves by order, by chance and by Kernighan and Lin"
# Starts of the partitioner, units that it takes, and the best of its halves that are measured.
STARTS, MAX_UNITS, MEASURED = 16, 1500, 2
_MAX_CAPACITY = 2**30  # the solver counts in 32 bits


def bisection_bandwidth(network: Network, seed: int = 0) -> float | None:
    """Smallest max-flow between two halves of the endpoints, in bytes/s, one direction.

    Only some halves are tried, so this is an upper bound on the true minimum over all halves, which is NP-hard to
    find: the first against the second half, even against odd endpoints, three random halves, and those of a
    partitioner, if networkx is installed, each rack or host is a unit with equally many endpoints, and there are at
    most ``MAX_UNITS``.

    Parameters
    ----------
    network : Network
        Network to cut; with an odd number of endpoints one half is one larger.
    seed : int
        Seed of the random halves.

    Returns
    -------
    float or None
        None without SciPy, the extra ``opt``; infinite when there is only one endpoint.

    References
    ----------
    Leiserson, "Fat-trees: universal networks for hardware-efficient supercomputing", IEEE ToC 1985, for the measure.
    Garey and Johnson, "Computers and Intractability", 1979, problem ND17, for its hardness. Kernighan and Lin, "An
    efficient heuristic procedure for partitioning graphs", BSTJ 1970, as networkx has it.
    """
    try:
        import scipy.sparse.csgraph  # noqa: F401 - asks before any work is done
    except ImportError:
        return None
    if len(network.endpoints) < 2:
        return float("inf")
    return min(_max_flow(network, half) for half in _halves(network, seed))


def _halves(network: Network, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Masks of the sending endpoints; each half sends once, since links need not be alike in both directions."""
    n_endpoints = len(network.endpoints)
    index = np.arange(n_endpoints)
    rng = np.random.default_rng(seed)
    orders = [index, np.concatenate((index[::2], index[1::2])), *(rng.permutation(n_endpoints) for _ in range(3))]
    for order in (*orders, *_partitioned(network, seed)):
        sends = np.zeros(n_endpoints, np.bool_)
        sends[order[: n_endpoints // 2]] = True
        yield sends
        yield ~sends


def _partitioned(network: Network, seed: int) -> list[NDArray[np.intp]]:
    """Return orders of the endpoints whose first half has few cables to the second, by Kernighan and Lin."""
    unit = _units(network)
    of_seats = unit[network.endpoints]
    names, sizes = np.unique(of_seats, return_counts=True)
    is_plain = len(names) == len(np.unique(unit)) and (sizes == sizes[0]).all()
    if not is_plain or not 4 <= len(names) <= MAX_UNITS:
        return []
    try:
        from networkx import Graph
        from networkx.algorithms.community import kernighan_lin_bisection
    except ImportError:
        return []
    graph = Graph()
    graph.add_nodes_from(names.tolist())
    for a, b, rate in zip(unit[network.src].tolist(), unit[network.dst].tolist(), network.bandwidth, strict=True):
        if a != b:
            graph.add_edge(a, b, weight=float(rate) + (graph[a][b]["weight"] if graph.has_edge(a, b) else 0.0))
    found = []
    for start in range(seed, seed + max(1, min(STARTS, STARTS * 100 // len(names)))):
        half = kernighan_lin_bisection(graph, weight="weight", seed=start)[0]
        is_second = ~np.isin(of_seats, list(half))
        cut = network.bandwidth[np.isin(unit[network.src], list(half)) != np.isin(unit[network.dst], list(half))].sum()
        found.append((float(cut), np.argsort(is_second, kind="stable")))
    return [order for _, order in sorted(found, key=lambda pair: pair[0])[:MEASURED]]


def _units(network: Network) -> NDArray[np.intp]:
    """Return what each node is moved with: a node with one neighbour goes with it, such as a host with its switch."""
    least, most = np.full(network.n_nodes, network.n_nodes), np.full(network.n_nodes, -1)
    for here, there in ((network.src, network.dst), (network.dst, network.src)):
        np.minimum.at(least, here, there)
        np.maximum.at(most, here, there)
    unit = np.arange(network.n_nodes)
    is_leaf = (least == most) & (network.kind == network.seat_kind)
    unit[is_leaf] = least[is_leaf]
    return unit


def _max_flow(network: Network, sends: NDArray[np.bool_]) -> float:
    """Max-flow from the sending endpoints to the others, each half drawn together into one node."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    source, sink = network.n_nodes, network.n_nodes + 1
    node = np.arange(network.n_nodes, dtype=np.int32)
    node[network.endpoints] = np.where(sends, source, sink)
    passes = (network.kind == network.seat_kind) | network.forwards
    used = (node[network.src] != node[network.dst]) & passes[network.src] & passes[network.dst]
    src, dst = node[network.src[used]], node[network.dst[used]]
    if not (src == source).any():
        return 0.0
    rate = network.bandwidth[used]
    # No more can flow than leaves one half and enters the other: a faster link would only make the unit coarse.
    most = float(min(rate[src == source].sum(), rate[dst == sink].sum()))
    if not most:
        return 0.0
    unit = _unit(np.minimum(np.unique(rate), most), most)
    del used, passes  # of millions of links, and the solver needs as much again
    rate /= unit
    np.minimum(np.rint(rate, out=rate), _MAX_CAPACITY, out=rate)  # before the cast, which would wrap
    units = rate.astype(np.int64)
    del rate
    graph = coo_array((units, (src, dst)), shape=(sink + 1, sink + 1)).tocsr()
    del units, src, dst
    graph.data = np.minimum(graph.data, _MAX_CAPACITY).astype(np.int32)
    return float(maximum_flow(graph, source, sink).flow_value) * unit


def _unit(rate: NDArray[np.float64], total: float) -> float:
    """Bytes per second that the solver counts as 1: exact when all rates are multiples of something not too small."""
    rates = np.unique(rate)
    candidates = [float(rates[0]) / n for n in range(1, 65)]
    if (rates == np.rint(rates)).all() and rates[-1] < 2**62:
        candidates.append(float(np.gcd.reduce(rates.astype(np.int64))))
    for unit in candidates:
        if total / unit <= _MAX_CAPACITY and np.allclose(rates / unit, np.rint(rates / unit), rtol=1e-12, atol=0):
            return unit
    return total / _MAX_CAPACITY  # each link is then rounded to a billionth of all that is sent
