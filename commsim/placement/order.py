"""Order of ranks inside a job whose nodes are given: the ring crosses machines, racks and pods as rarely as possible.

Ranks whose groups lie side by side in the order are near each other also in trees and in halving-doubling, whose
partners differ by powers of two. So there is one order to propose; whether it is better is asked of a prediction, and
the order that was given stays where it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import locality_levels
from commsim.core.placement import Placement
from commsim.core.result import OverHashes
from commsim.prediction.build import prepare
from commsim.prediction.plans.draws import HASHES, alike, hash_seeds
from commsim.routing.routing import find_routes

from .strategies.fabric_groups import nearness

# Ranks up to which any collective is simulated; a larger ring is estimated by its most loaded link.
MAX_SIMULATED = 256
RING = "ring_all_reduce"
# Times that differ by less are equal.
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class RankOrder:
    """The proposed order of a job's nodes, and what it is worth.

    Parameters
    ----------
    order : tuple of str
        Node of each rank.
    ranks : tuple of int
        Rank of the given order that each one was.
    crossings_before, crossings_after : dict of str to int
        Neighbours on the ring that are in different groups, by level, from machines outwards.
    time_before, time_after : float, s
        Time of one collective.
    how : str
        ``flow``: simulated; ``ring``: rounds of a ring by their most loaded link.
    hashes_before, hashes_after : OverHashes, optional
        Hashes of routes of which the times are medians, where their times differ.
    """

    order: tuple[str, ...]
    ranks: tuple[int, ...]
    crossings_before: dict[str, int]
    crossings_after: dict[str, int]
    time_before: float
    time_after: float
    how: str
    hashes_before: OverHashes | None = None
    hashes_after: OverHashes | None = None

    @property
    def gain(self) -> float:
        """How many times faster the collective is in the order found."""
        return self.time_before / self.time_after if self.time_after else 1.0

    @property
    def level(self) -> str:
        """The level that is reported first: racks, or without racks machines."""
        return "rack" if "rack" in self.crossings_before else next(iter(self.crossings_before))

    def row(self) -> dict[str, object]:
        """Return the JSON row."""
        return {
            "order": list(self.order),
            "ranks": list(self.ranks),
            "crossings_before": self.crossings_before[self.level],
            "crossings_after": self.crossings_after[self.level],
            "crossings_by_level": {
                name: {"before": n, "after": self.crossings_after[name]} for name, n in self.crossings_before.items()
            },
            "time_before_s": self.time_before,
            "time_after_s": self.time_after,
            "time_by": self.how,
            **{
                f"{end}_{when}_s": float(getattr(hashes, end))
                for when, hashes in (("before", self.hashes_before), ("after", self.hashes_after))
                if hashes is not None
                for end in ("fastest", "slowest")
            },
        }


def order_ranks(
    network: Network,
    nodes: Sequence[str],
    size: float,
    *,
    collective: str = RING,
    seed: int = 0,
    hashes: int = HASHES,
) -> RankOrder:
    """Order the ranks of a job, on the nodes that it has.

    Parameters
    ----------
    network : Network
        Network that the job runs on.
    nodes : sequence of str
        Node of each rank, in the order given; one may come several times, once for each of its GPUs.
    size : float, bytes
        Size of the collective by which orders are compared.
    collective : str
        Its name.
    seed : int
        Seed of hashes in routing.
    hashes : int
        Number of hashes that are drawn where their times differ; a time is their median.

    Raises
    ------
    InputError
        Without a node, or if one is unknown or takes no ranks, or a collective other than a ring cannot be simulated.
    """
    given = _numbers(network, nodes)
    is_simulated = len(given) <= MAX_SIMULATED and len(set(nodes)) == len(nodes)
    if not is_simulated and collective != RING:
        raise InputError(
            f"{collective} is simulated for at most {MAX_SIMULATED} ranks on different nodes; others are of {RING} only"
        )
    path = nearness(network)[given]
    # Groups keep the order in which they come first, so that an order that is good already does not change.
    first = np.stack([_by_first(path[:, column]) for column in range(path.shape[1])])
    proposals = [np.arange(len(given)), np.lexsort(first[::-1]), np.lexsort(path.T[::-1])]

    def time_of(order: NDArray[np.intp]) -> tuple[float, OverHashes | None]:
        if not is_simulated:
            each = [_ring_time(network, given[order], size, one) for one in (seed, *hash_seeds(seed, hashes))]
            drawn = None if alike(np.array(each)[:, None]) else OverHashes(len(each), min(each), max(each))
            return sorted(each)[(len(each) - 1) // 2], drawn
        placement = Placement(given[order].astype(np.int32))
        ready = prepare(collective, network, placement=placement, seed=seed)
        result = ready.predict(size, seed=seed, hashes=hashes)
        return result.time, result.hashes

    found = [time_of(order) for order in proposals]
    times = [time for time, _ in found]
    crossings = [_crossings(network, given[order]) for order in proposals]
    least = min(times)
    # Never worse than what was given: of orders that are equally fast, the one that crosses the wide groups least.
    best = min(
        (i for i, time in enumerate(times) if time <= least * (1 + TIE)),
        key=lambda i: (*reversed(crossings[i].values()), i),
    )
    if len(given) < 2:
        best = 0
    chosen = proposals[best]
    return RankOrder(
        tuple(nodes[i] for i in chosen),
        tuple(chosen.tolist()),
        crossings[0],
        crossings[best],
        times[0],
        times[best],
        "flow" if is_simulated else "ring",
        found[0][1],
        found[best][1],
    )


def _numbers(network: Network, nodes: Sequence[str]) -> NDArray[np.intp]:
    index = {name: i for i, name in enumerate(network.nodes)}
    ends = set(network.endpoints.tolist())
    for name in nodes:
        if index.get(name) not in ends:
            example = network.nodes[int(network.endpoints[0])]
            raise InputError(f"{network.name} has no place for ranks that is named {name!r}; the first is {example!r}")
    if not nodes:
        raise InputError("no nodes to order")
    return np.array([index[name] for name in nodes], np.intp)


def _by_first(group: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the groups' numbers by where they come first."""
    _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse])


def _crossings(network: Network, order: NDArray[np.intp]) -> dict[str, int]:
    """Count neighbours on the ring in different groups, by level; levels of one node per group are left out."""
    position = np.full(network.n_nodes, -1)
    position[network.endpoints] = np.arange(len(network.endpoints))
    counts = {}
    for level in locality_levels(network):
        group = level.group[position[order]]
        counts[level.name] = int((group != np.roll(group, -1)).sum())
    return counts


def _ring_time(network: Network, order: NDArray[np.intp], size: float, seed: int) -> float:
    """Estimate a ring all-reduce in rounds: each takes as long as the most loaded link, and the longest way.

    Neighbours on one node send nothing.
    """
    n = len(order)
    src, dst = order, np.roll(order, -1)
    apart = src != dst
    if not apart.any():
        return 0.0
    routes = find_routes(network, src[apart], dst[apart], seed=seed)
    load = np.bincount(routes.link, weights=routes.share, minlength=network.n_links)
    way = np.repeat(np.arange(int(apart.sum())), np.diff(routes.first))
    latency = np.bincount(way, weights=network.latency[routes.link] * routes.share)
    return float(2 * (n - 1) * ((load / network.bandwidth).max() * size / n + latency.max()))
