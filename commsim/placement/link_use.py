"""Link use: which links a placed job uses, and how many times its rate each of them carries.

With hosts that are machines of GPUs and NICs, a job's rate is that of one NIC: its rings leave each machine by a NIC
each.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from collectives.dense.multi_ring import leaving
from commsim.core.errors import InputError
from commsim.core.network import NIC, Network
from commsim.prediction.good_parameters import in_rails, nearest_rails
from commsim.routing.routes import Routes
from commsim.routing.routing import find_routes

from .cluster import Cluster

# Networks with the numbers of their nodes: a service asks about one all the time, and to hash one takes milliseconds.
_RECENT: deque[tuple[Network, Mapping[str, int]]] = deque(maxlen=4)
# Endpoints up to which the paths from one to all others are kept, of some 50 bytes each.
MOST_KEPT = 1024


def ring_edges(placement: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of nodes that send to each other when a job runs a ring over its hosts in rank order.

    Ranks that follow each other on one host are one stop of the ring. A job inside of one host has no edge; on two
    hosts it has one each way.

    Parameters
    ----------
    placement : sequence of str
        The node of each rank.
    """
    stops = [name for i, name in enumerate(placement) if i == 0 or name != placement[i - 1]]
    if len(stops) > 1 and stops[0] == stops[-1]:
        stops.pop()
    return list(zip(stops, stops[1:] + stops[:1], strict=True)) if len(stops) > 1 else []


def job_edges(network: Network, placements: Sequence[Sequence[str]]) -> list[list[tuple[int, int]]]:
    """Pairs of nodes that send to each other at the rate of each job, numbers of nodes.

    Those of a ring over its hosts. Between two machines with NICs there is a pair for each ring of the job: as many as
    the job has GPUs on each of its machines, but at most one for each NIC. A ring leaves and enters by the GPU that is
    next to its NIC, as those of :func:`collectives.dense.multi_ring.multi_ring_all_reduce` do.

    Raises
    ------
    InputError
        If the network has no such node.
    """
    node = node_numbers(network, placements)
    edges = [[(node[a], node[b]) for a, b in ring_edges(placement)] for placement in placements]
    nics = nics_of(network)
    if not nics.any():
        return edges
    used = sorted(set(node.values()))
    rail = dict(zip(used, nearest_rails(network, np.array(used, np.int64)), strict=True))
    machine = dict(zip(used, network.machine[used].tolist(), strict=True))
    found = []
    for placement, ring in zip(placements, edges, strict=True):
        members: dict[int, list[int]] = {}
        for at in sorted({node[name] for name in placement}):
            members.setdefault(machine[at], []).append(at)
        n_rings = min((min(len(of), nics[at]) if 0 <= at < len(nics) else 0 for at, of in members.items()), default=0)
        rows = {at: in_rails(of, rail, n_rings) if n_rings else of for at, of in members.items()}
        ends = {at: [of[leaving(len(of), c, n_rings)] for c in range(n_rings)] for at, of in rows.items()}
        pairs: list[tuple[int, int]] = []
        for a, b in ring:
            crosses = n_rings and machine[a] != machine[b]
            pairs += zip(ends[machine[a]], ends[machine[b]], strict=True) if crosses else [(a, b)]
        found.append(pairs)
    return found


def nics_of(network: Network) -> NDArray[np.int64]:
    """Return the number of NICs of each machine, int64[n_machines]; empty where no machine has any."""
    return np.bincount(network.machine[(network.kind == NIC) & (network.machine >= 0)])


class KeptPaths:
    """Paths between nodes with one seed, kept from one call of :func:`link_uses` to the next.

    To find one takes nearly as long as to find all of its source: a replay asks for others in each placement.
    """

    def __init__(self) -> None:
        self._from: dict[int, Routes] = {}

    def routes(self, network: Network, ends: Sequence[tuple[int, int]], seed: int) -> Routes:
        """Return the paths of pairs of endpoints, without their latencies."""
        for a in {a for a, _ in ends} - self._from.keys():
            self._from[a] = find_routes(network, np.full(len(network.endpoints), a), network.endpoints, seed=seed)
        at = np.searchsorted(network.endpoints, [b for _, b in ends]).tolist()
        of = [self._from[a] for a, _ in ends]
        spans = [slice(one.first[i], one.first[i + 1]) for one, i in zip(of, at, strict=True)]
        links = [one.link[span] for one, span in zip(of, spans, strict=True)]
        shares = [one.share[span] for one, span in zip(of, spans, strict=True)]
        first = np.zeros(len(ends) + 1, np.int64)
        np.cumsum([len(one) for one in links], out=first[1:])
        return Routes(first, np.concatenate(links), np.concatenate(shares), np.empty(0))


def link_uses(
    cluster: Cluster, placements: Sequence[Sequence[str]], seed: int = 0, kept: KeptPaths | None = None
) -> NDArray[np.float64]:
    """How many times the job's rate each directed link carries, in each of several placements.

    Parameters
    ----------
    cluster : Cluster
        Cluster with the links.
    placements : sequence of sequence of str
        The node of each rank, of each placement.
    seed : int
        Seed of the routes' hash.
    kept : KeptPaths, optional
        Paths that earlier calls with the same network and seed found.

    Returns
    -------
    float64[n_placements, n_links]
        1 where one edge of the ring passes, k where k do; fractions where the network's routing sprays.

    Raises
    ------
    InputError
        If the network has no such node, or no path.
    """
    network = cluster.network
    edges = job_edges(network, placements)
    ends = sorted({edge for ring in edges for edge in ring})
    use = np.zeros((len(placements), network.n_links))
    if not ends:
        return use
    if kept is None or len(network.endpoints) > MOST_KEPT:
        routes = find_routes(network, [a for a, _ in ends], [b for _, b in ends], seed=seed)
    else:
        routes = kept.routes(network, ends, seed)
    number = {edge: i for i, edge in enumerate(ends)}
    ring = np.repeat(np.arange(len(edges)), [len(edge) for edge in edges])
    edge = np.array([number[one] for one in itertools.chain(*edges)])
    length = np.diff(routes.first)[edge]
    hop = np.repeat(routes.first[edge] - (np.cumsum(length) - length), length) + np.arange(length.sum())
    np.add.at(use, (np.repeat(ring, length), routes.link[hop]), routes.share[hop])
    return use


def numbers_of(network: Network) -> Mapping[str, int]:
    """Return the number of each node of a network by its name; kept of the last networks that were asked for."""
    for known, numbers in tuple(_RECENT):
        if known is network:
            return numbers
    numbers = MappingProxyType({name: i for i, name in enumerate(network.nodes)})
    _RECENT.append((network, numbers))
    return numbers


def node_numbers(network: Network, placements: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the numbers of the nodes that jobs are on."""
    index = numbers_of(network)
    names = {name for placement in placements for name in placement}
    for name in names:
        if name not in index:
            raise InputError(f"a job is placed on {name!r}, which is not a node of {network.name}")
    return {name: index[name] for name in names}
