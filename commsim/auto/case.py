"""What of a prediction decides how far off it is: the conditions of every comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collectives import FOUND
from commsim.core.network import Network
from commsim.core.placement import place
from commsim.prediction.locality import rank_groups
from commsim.routing.network_metrics import most_oversubscribed
from commsim.routing.routing import find_routes

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan

# Ranks that hang on one switch by one link each are a star, whatever else the network has.
ONE_SWITCH = "star"
# Family of networks that no topology made as they are.
OWN = "own"


@dataclass(frozen=True, slots=True)
class PredictionCase:
    """What decides how far off a prediction is, as far as it is looked at.

    Parameters
    ----------
    operation, collective : str
        What runs; the algorithm with those of its parameters that were given, such as
        ``double_tree_all_reduce:n_chunks=4``.
    network : str
        Family of the network, such as ``leaf_spine``; ``own`` for a network that no topology made as it is.
    routing, placement : str
        How paths were chosen, and where ranks sit.
    oversubscription : float
        Most of any tier: capacity from below over capacity upwards; 1 where no tier has less.
    unevenness : float
        Rate of the fastest link over that of the slowest.
    near : float
        Ranks in the innermost group of locality, such as a rack or a machine.
    ranks : float
        How many.
    size : float, bytes
        Size of the operation.
    rate : float, bytes/s
        Rate of the slowest link on the way from the first rank to the last.
    product : float, bytes
        Product of that rate and the mean latency of the links on this way: what a link holds.
    overhead : float, bytes
        Product of that rate and the time that a message costs its sender: what the link would carry meanwhile.
    costs : float
        What messages cost their sender, over the time of the smallest on that link.
    others : float
        What receiving and reducing cost, over the same.
    """

    operation: str
    collective: str
    network: str
    routing: str
    placement: str
    oversubscription: float
    unevenness: float
    near: float
    ranks: float
    size: float
    rate: float
    product: float
    overhead: float = 0.0
    costs: float = 0.0
    others: float = 0.0


def labels_of(prepared: Plan) -> tuple[str, str, str]:
    """Operation, algorithm and family of the network: what is known at once, however large the network is."""
    schedule = prepared.schedule
    return schedule.operation, _spec(prepared), family(prepared)


def case_of(prepared: Plan, size: float) -> PredictionCase:
    """Return the conditions of a prediction.

    Parameters
    ----------
    prepared : Plan
        A collective on a network.
    size : float, bytes
        Size of the operation.
    """
    network, schedule = prepared.network, prepared.schedule
    operation, collective, kind = labels_of(prepared)
    nodes = prepared.placement.nodes[: schedule.n_ranks]
    rate, product = _way(prepared, nodes)
    star = kind == ONE_SWITCH
    used = np.isin(network.src, nodes) | np.isin(network.dst, nodes) if star else np.ones(network.n_links, np.bool_)
    rates = network.bandwidth[used]
    n_chunks = prepared.in_pieces(size).schedule.n_chunks
    smallest = size / n_chunks / rate
    overhead, receiving, gamma = (
        float(cost[nodes].max(initial=0.0)) for cost in (network.overhead, network.recv_overhead, network.gamma)
    )
    return PredictionCase(
        operation,
        collective,
        kind,
        prepared.paths.routing or network.routing,
        _strategy(network, nodes),
        oversubscription=1.0 if star else most_oversubscribed(network),
        unevenness=float(rates.max() / rates.min()) if rates.size else 1.0,
        near=float(len(rank_groups(network, prepared.placement, schedule.n_ranks)[0])),
        ranks=float(schedule.n_ranks),
        size=float(size),
        rate=rate,
        product=product,
        overhead=overhead * rate,
        costs=overhead / smallest if overhead else 0.0,
        others=(receiving / smallest if receiving else 0.0) + gamma * rate,
    )


def family(prepared: Plan) -> str:
    """Family of the network: a star where ranks see one, else the topology that made it, if nobody changed it."""
    network, nodes = prepared.network, prepared.placement.nodes[: prepared.schedule.n_ranks]
    out, into = np.isin(network.src, nodes), np.isin(network.dst, nodes)
    if out.sum() == into.sum() == len(nodes) and np.unique((*network.dst[out], *network.src[into])).size == 1:
        return ONE_SWITCH
    return network.family or OWN


def _spec(prepared: Plan) -> str:
    if prepared.data is not None:
        return f"{prepared.schedule.name} of sparse data"
    parameters: Mapping[str, Any] = {k: v for k, v in prepared.parameters.items() if k not in FOUND}
    words = ",".join(
        f"{k}={'x'.join(map(str, v)) if isinstance(v, tuple) else v}" for k, v in sorted(parameters.items())
    )
    return f"{prepared.schedule.name}:{words}" if words else prepared.schedule.name


def _way(prepared: Plan, nodes: NDArray[np.int32]) -> tuple[float, float]:
    """Rate of the slowest link from the first rank to the last, and what each of its links holds at that rate."""
    network = prepared.network
    routes = find_routes(network, nodes[:1], nodes[-1:], routing=prepared.paths.routing, seed=prepared.paths.seed)
    if not routes.link.size:
        return float(network.bandwidth.min(initial=1.0)), 0.0
    rate = float(network.bandwidth[routes.link].min())
    return rate, rate * float(network.latency[routes.link].mean())


def _strategy(network: Network, nodes: NDArray[np.int32]) -> str:
    """Name of the strategy that puts ranks there."""
    for name in ("packed", "spread"):
        if np.array_equal(place(network, len(nodes), name).nodes, nodes):
            return name
    return "other"
