"""Numbers that describe a network: rates, degrees, tiers, diameter, oversubscription, connectivity.

The bisection bandwidth: what half of the endpoints can send to the others, for the worst of some halves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.network import KINDS, Network
from ..core.network_queries import tiers
from .link_rows import links_in_rows

MAX_SOURCES = 4096
_MAX_STEPS = 2**30  # sources times links: a few seconds


@dataclass(frozen=True, slots=True)
class NetworkMetrics:
    """What ``commsim topo show`` prints, except for the bisection bandwidth.

    Parameters
    ----------
    counts : mapping of str to int
        Nodes of each kind that there are.
    link_rates : mapping of float to int
        How many directed links have each bandwidth, bytes/s, in ascending order.
    degrees : mapping of str to (int, int)
        Fewest and most links that leave a node of each kind.
    tier_sizes : tuple of int
        How many nodes are 0, 1, … links away from the nearest endpoint; those that no endpoint reaches are in none.
    oversubscription : mapping of int to float
        By tier, the worst ratio among its nodes of capacity from the tier below to capacity to the tier above.
        Tiers from which nothing leads up are left out.
    diameter : int
        Most links on a shortest path between two endpoints that have one, whatever the metric of the links.
    is_exact : bool
        Whether all endpoints were looked at; if not, `diameter` is a lower bound and `no_path` may miss a pair.
    no_path : (str, str) or None
        Two endpoints such that the first has no path to the second.
    """

    counts: Mapping[str, int]
    link_rates: Mapping[float, int]
    degrees: Mapping[str, tuple[int, int]]
    tier_sizes: tuple[int, ...]
    oversubscription: Mapping[int, float]
    diameter: int
    is_exact: bool
    no_path: tuple[str, str] | None


def measure(network: Network) -> NetworkMetrics:
    """Measure a network.

    Endpoints with the same neighbours are looked at once, so the cost is O(distinct attachments x links), with at
    most ``MAX_SOURCES`` attachments, and fewer when there are many links, evenly spaced over the endpoints.
    """
    rates, how_many = np.unique(network.bandwidth, return_counts=True)
    degree = np.bincount(network.src, minlength=network.n_nodes)
    present = {name: degree[network.kind == kind] for kind, name in enumerate(KINDS) if (network.kind == kind).any()}
    tier = tiers(network)
    diameter, is_exact, no_path = _distances(network)
    return NetworkMetrics(
        counts={name: int(np.count_nonzero(network.kind == KINDS.index(name))) for name in present},
        link_rates=dict(zip(rates.tolist(), how_many.tolist(), strict=True)),
        degrees={name: (int(d.min()), int(d.max())) for name, d in present.items()},
        tier_sizes=tuple(np.bincount(tier[tier >= 0]).tolist()),
        oversubscription=_oversubscription(network, tier),
        diameter=diameter,
        is_exact=is_exact,
        no_path=no_path,
    )


def most_oversubscribed(network: Network) -> float:
    """Return the largest oversubscription of any tier; 1 where none has less upwards than it has from below."""
    return max([1.0, *_oversubscription(network, tiers(network)).values()])


def _oversubscription(network: Network, tier: NDArray[np.int64]) -> dict[int, float]:
    src, dst = tier[network.src], tier[network.dst]
    n = network.n_nodes
    below = np.bincount(network.dst, np.where((src >= 0) & (src < dst), network.bandwidth, 0.0), n)
    above = np.bincount(network.src, np.where((src >= 0) & (dst > src), network.bandwidth, 0.0), n)
    rising = np.flatnonzero((network.kind != network.seat_kind) & (above > 0))
    worst: dict[int, float] = {}
    for level in np.unique(tier[rising]).tolist():
        at = rising[tier[rising] == level]
        worst[level] = float((below[at] / above[at]).max())
    return worst


def _distances(network: Network) -> tuple[int, bool, tuple[str, str] | None]:
    """Diameter, whether it is exact, and two endpoints without a path."""
    from .search_kernel import farthest

    representatives, remaining = _attachments(network)
    most = max(1, min(MAX_SOURCES, _MAX_STEPS // max(1, network.n_links)))
    step = -(-len(representatives) // most)
    # The other endpoints cannot be passed through and are as far away as their representatives: leave them out.
    links = np.flatnonzero(remaining[network.src] & remaining[network.dst])
    incoming = links_in_rows(network.dst[links], network.src[links], network.n_nodes)
    endpoints = np.flatnonzero(remaining & (network.kind == network.seat_kind)).astype(np.int32)
    diameter, lost, target = farthest(representatives[::step], endpoints, incoming, network.forwards)
    no_path = None if lost < 0 else (network.nodes[lost], network.nodes[target])
    return int(diameter), step == 1, no_path


def _attachments(network: Network) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """One endpoint per distinct set of neighbours, and which nodes stay: of such endpoints two, and all the rest."""
    rows = [links_in_rows(*ends, network.n_nodes) for ends in ((network.src, network.dst), (network.dst, network.src))]
    remaining = np.ones(network.n_nodes, np.bool_)
    seen: dict[object, int] = {}
    representatives = []
    for endpoint in network.endpoints.tolist():
        key: object = endpoint
        if not network.forwards[endpoint]:
            key = tuple(np.unique(end[first[endpoint] : first[endpoint + 1]]).tobytes() for first, _, end in rows)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 1:
            representatives.append(endpoint)
        remaining[endpoint] = seen[key] <= 2
    return np.array(representatives, np.int32), remaining


HALVES = "first against second half, even against odd ones, and 3 random halves"
_MAX_CAPACITY = 2**30  # the solver counts in 32 bits


def bisection_bandwidth(network: Network, seed: int = 0) -> float | None:
    """Smallest max-flow between two halves of the endpoints, in bytes/s, one direction.

    Only the halves that ``HALVES`` names are tried, so this is an upper bound on the true minimum over all halves,
    which is NP-hard to find.

    Parameters
    ----------
    network : Network
        With an odd number of endpoints one half is one larger.
    seed : int
        Of the random halves.

    Returns
    -------
    float or None
        None without SciPy, the extra ``opt``; infinite when there is only one endpoint.

    References
    ----------
    Leiserson, "Fat-trees: universal networks for hardware-efficient supercomputing", IEEE ToC 1985, for the measure.
    Garey and Johnson, "Computers and Intractability", 1979, problem ND17, for its hardness.
    """
    try:
        import scipy.sparse.csgraph  # noqa: F401 - asks before any work is done
    except ImportError:
        return None
    if len(network.endpoints) < 2:
        return float("inf")
    return min(_max_flow(network, half) for half in _halves(len(network.endpoints), seed))


def _halves(n_endpoints: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Masks of the sending endpoints; each half sends once, since links need not be alike in both directions."""
    index = np.arange(n_endpoints)
    rng = np.random.default_rng(seed)
    orders = [index, np.concatenate((index[::2], index[1::2])), *(rng.permutation(n_endpoints) for _ in range(3))]
    for order in orders:
        sends = np.zeros(n_endpoints, np.bool_)
        sends[order[: n_endpoints // 2]] = True
        yield sends
        yield ~sends


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
    unit = _unit(np.minimum(rate, most), most)
    units = np.minimum(np.rint(rate / unit), _MAX_CAPACITY).astype(np.int64)  # cut before the cast, which would wrap
    graph = coo_array((units, (src, dst)), shape=(sink + 1, sink + 1)).tocsr()
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
