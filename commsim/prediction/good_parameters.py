"""Parameters that network and placement decide where the user gives none: rings for rails, servers and their hosts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import NEEDS
from commsim.core.machines.local_nics import links_to_nics, own_nics
from commsim.core.network import Network
from commsim.core.network_queries import live_nics
from commsim.core.placement import Placement, count_places, is_strategy, place
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.prediction.locality import Groups

MAX_RAILS = 64
# Needs of collectives whose servers or aggregators are hosts beside the ranks.
SERVING = ("servers", "aggregators")


def count_rails(network: Network, placement: Placement, groups: Groups) -> int | None:
    """Return how many rings leave a machine by NICs of their own; None where ranks are not in machines with NICs.

    Parameters
    ----------
    network, placement
        Network and placement of the ranks.
    groups : tuple of tuple of int
        Ranks of each machine. A ring needs a rank of its own in each, to leave from.
    """
    machines = np.unique(network.machine[placement.nodes[[group[0] for group in groups]]])
    if machines[0] < 0 or len(machines) < len(groups):
        return None
    nics = np.bincount(network.machine[live_nics(network)], minlength=int(machines.max()) + 1)[machines]
    rails = min(int(nics.min()), min(len(group) for group in groups), MAX_RAILS)
    return rails or None


def by_rails(network: Network, placement: Placement, groups: Groups) -> Groups:
    """Order the ranks of each machine by their nearest NIC, and of those with the same one the nearest to it first.

    Ranks that are not in machines with NICs stay as they are; parameters as in :func:`count_rails`.
    """
    n_rails = count_rails(network, placement, groups)
    if n_rails is None:
        return groups
    key = nearest_rails(network, placement.nodes)
    return tuple(in_rails(group, key, n_rails) for group in groups)


def in_rails(
    members: Sequence[int], key: Mapping[int, tuple[int, int]] | Sequence[tuple[int, int]], n_rails: int
) -> tuple[int, ...]:
    """Order the members of a machine so that each rail has a run of as many, with its nearest in front.

    Parameters
    ----------
    members : sequence of int
        Members.
    key : mapping or sequence of (int, int)
        NIC that is nearest to each member, and the links between them.
    n_rails : int
        Rails of the machine, at most as many as members. Where a NIC has more members near it than others, those that
        are left over come last: channels leave by the first of each run.
    """
    order = sorted(members, key=key.__getitem__)
    share, rails = len(order) // n_rails, sorted({key[one][0] for one in order})
    runs = [[one for one in order if key[one][0] == rail] for rail in rails]
    if len(runs) < n_rails or any(len(run) < share for run in runs):
        return tuple(order)
    return tuple(itertools.chain(*(run[:share] for run in runs), *(run[share:] for run in runs)))


def nearest_rails(network: Network, nodes: NDArray[np.integer[Any]]) -> list[tuple[int, int]]:
    """Return which NIC of its machine is nearest to each node, and how many links lie between them.

    Of equally near ones it is the first that NCCL takes, where these divide evenly. Only where there is no other way
    are NVLinks among them: what comes in by a NIC does not go through another GPU.

    Parameters
    ----------
    nodes : int[n]
        Nodes of machines with NICs.
    """
    links, nics = links_to_nics(network, nodes)
    rail, own = _evenly_nearest(links, network.machine[nodes]), own_nics(network, nodes)
    if own is not None:
        first = own[nodes, 0]
        rail = np.where(first >= 0, (nics == first).argmax(axis=0), rail).tolist()
    return list(zip(rail, links.min(axis=0).tolist(), strict=True))


def _evenly_nearest(links: NDArray[np.int64], machine: NDArray[np.integer[Any]]) -> list[int]:
    """Return the nearest NIC of each node; of equally near ones, that of the fewest nodes of its machine so far.

    Nodes that have only one nearest NIC take theirs first.
    """
    near = links == links.min(axis=0)
    taken: dict[int, NDArray[np.int64]] = {}
    found = links.argmin(axis=0)
    for node in np.argsort(near.sum(axis=0), kind="stable").tolist():
        used = taken.setdefault(int(machine[node]), np.zeros(len(links), np.int64))
        found[node] = min(np.flatnonzero(near[:, node]).tolist(), key=lambda rail: used[rail])
        used[found[node]] += 1
    return [int(rail) for rail in found]


def servers_that_fit(
    entry: Entry[Schedule],
    parameters: Mapping[str, Any],
    network: Network,
    placement: str | Placement,
    n_ranks: int,
    seed: int,
) -> dict[str, Any]:
    """Return the number of servers of a collective: one for each rank, or as many as there are hosts beside the ranks.

    Where no host is left beside the ranks, servers share theirs, one at each. Nothing is returned where the user gives
    a number or says where they sit, or where a placement does: then the collective's own default says what it needs.

    Parameters
    ----------
    entry : Entry
        The collective.
    parameters : mapping
        Its parameters so far.
    network, placement, n_ranks, seed
        Network, placement, number of ranks, and seed of a random placement.
    """
    key = next((NEEDS[need] for need in SERVING if need in entry.metadata["needs"]), None)
    if key is None or parameters.get(key) is not None or parameters.get("colocated"):
        return {}
    if isinstance(placement, str):
        if not (is_strategy(placement) and 1 <= n_ranks <= len(network.endpoints)):
            return {}  # placing the ranks says what is wrong
        placement = place(network, n_ranks, placement, seed)
    elif len(placement.nodes) != n_ranks:
        return {}
    free = count_places(network, placement.nodes)
    if not free and n_ranks > 1 and "colocated" in entry.parameters and "colocated" not in parameters:
        return {"colocated": True}
    return {key: min(n_ranks, free)} if free > 1 else {}


def partitions_that_fit(size: float, n_messages: int, network: Network, nodes: NDArray[np.integer[Any]]) -> float:
    """Return into how many partitions a server's part is best cut; infinity where only bytes cost something.

    With k partitions, of M messages each at the busiest port, which carries V bytes, all takes (k + 1) (M o + V/(kB)):
    least with k = sqrt(V / (M o B)).

    Parameters
    ----------
    size : float, bytes
        V.
    n_messages : int
        M.
    network : Network
        Network with o and B, the rate of a worker's port.
    nodes : int[n_ranks]
        Node of each worker.
    """
    overhead = float((network.overhead + network.recv_overhead)[nodes].max(initial=0.0))
    port = float(network.bandwidth[np.isin(network.src, nodes)].max(initial=0.0))
    if not port:  # no link is left; whoever finds the routes says so
        return 1.0
    return math.sqrt(size / (n_messages * overhead * port)) if overhead else math.inf
