"""Numbers that describe a network: rates, degrees, tiers, diameter, oversubscription, connectivity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import KINDS, Network
from commsim.core.network_queries import fabric_switches, tier_capacities, tiers
from commsim.core.units import count_text

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
        Worst ratio of capacity from the tier below to capacity to the tier above among the nodes of each tier. Tiers
        from which nothing leads up are left out.
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


def oversubscribed_uplinks(network: Network) -> NDArray[np.bool_]:
    """Mark the links up from switches outside machines that have less capacity upwards than from below.

    Returns
    -------
    bool[n_links]
    """
    fabric = fabric_switches(network)
    tier = np.where(fabric, tiers(network), 0)
    below, above = tier_capacities(network, tier)
    less = fabric & (above > 0) & (below > above * (1 + 1e-9))
    uplinks: NDArray[np.bool_] = less[network.src] & (tier[network.dst] > tier[network.src])
    return uplinks


def _oversubscription(network: Network, tier: NDArray[np.int32]) -> dict[int, float]:
    below, above = tier_capacities(network, tier)
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


def unusual(network: Network) -> dict[str, str]:
    """Return what is legal and rarely meant, by what it is: links one way, nodes without links."""
    n = network.n_nodes
    pairs = np.unique(network.src * np.int64(n) + network.dst)
    one_way = pairs[~np.isin(pairs, pairs % n * n + pairs // n, assume_unique=True)]
    linked = np.isin(np.arange(network.n_nodes), np.concatenate((network.src, network.dst)))
    warnings = {}
    if len(one_way):
        a, b = divmod(int(one_way[0]), n)
        links = count_text(len(one_way), "link")
        warnings["one way"] = f"{links} without a way back, such as {network.nodes[a]}:{network.nodes[b]}"
    if not linked.all() and network.n_nodes > 1:
        warnings["unused"] = (
            f"{count_text(int((~linked).sum()), 'node')} without links, such as "
            f"{network.nodes[int((~linked).argmax())]}"
        )
    return warnings
