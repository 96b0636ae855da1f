"""Uses of links by jobs: rings of all their ranks, or what the groups of each phase of demand exchange."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.placement.cluster import Cluster
from commsim.placement.link_use import job_edges, link_uses, nics_of, node_numbers
from commsim.routing.routing import find_routes
from commsim.training.sharing.periodic import ALL_TO_ALL, SEND, JobPhase, PeriodicJob

# What decides which links a phase uses: the pattern, and the ranks of each group.
Exchange: TypeAlias = tuple[str, tuple[tuple[int, ...], ...]]
# Seconds per byte and rate (bytes/s) of each phase of a job; a rate of 0 where nothing leaves a machine.
OwnPath: TypeAlias = tuple[tuple[float, float], ...]


def job_uses(cluster: Cluster, jobs: Sequence[PeriodicJob], seed: int = 0) -> NDArray[np.float64]:
    """How many times its rate each placed job puts on each link, float64[n_jobs, n_links].

    Phases of demand have the bytes of one ring, which the rings of a job share among them (one for each NIC that it
    uses), in each of their groups; or those of messages. A job whose phases have different groups puts on each link the
    mean of those that leave a machine, weighted by bytes.
    """
    # jobs that stay in several candidates are looked at once: demand has routes of its own for each
    number: dict[tuple[object, ...], int] = {}
    at = [number.setdefault((job.placement, *((job.phases, job.n_gpus) if job.is_demand else ())), len(number))
          for job in jobs]  # fmt: skip
    first = dict(zip(reversed(at), reversed(jobs), strict=True))
    once = [first[i] for i in range(len(number))]
    use = link_uses(cluster, [() if job.is_demand else job.placement or () for job in once], seed)
    for row, job in zip(use, once, strict=True):
        if job.is_demand:
            row[:] = _mean_use(cluster.network, job, exchange_uses(cluster, job, seed))
    return use if len(once) == len(jobs) else use[at]


def own_paths(cluster: Cluster, jobs: Sequence[PeriodicJob], seed: int = 0) -> dict[int, OwnPath]:
    """Return what the phases of jobs need on their own paths, of each placed job whose phases have different groups.

    A phase takes its bytes over the fullest link that its groups use. Its rate is such that it puts its own bytes on
    the links out of machines, all together, and no more on one than that has.

    Returns
    -------
    dict of int to OwnPath
        By number of the job.
    """
    found = {}
    for j, job in enumerate(jobs):
        if len({exchange_of(phase, job.n_gpus) for phase in job.phases if phase.is_demand}) > 1:
            found[j] = _own_path(cluster.network, job, exchange_uses(cluster, job, seed))
    return found


def exchange_of(phase: JobPhase, n_ranks: int) -> Exchange:
    """Return what decides which links a phase uses."""
    return phase.pattern, phase.groups or (tuple(range(n_ranks)),)


def exchange_uses(cluster: Cluster, job: PeriodicJob, seed: int = 0) -> dict[Exchange, NDArray[np.float64]]:
    """How many times the bytes of a phase each link carries, float64[n_links], by what the job's phases exchange."""
    kinds = dict.fromkeys(exchange_of(phase, job.n_gpus) for phase in job.phases)
    return {kind: use_of_groups(cluster.network, job.placement or (), kind, seed) for kind in kinds}


def use_of_groups(network: Network, placement: Sequence[str], kind: Exchange, seed: int = 0) -> NDArray[np.float64]:
    """How many times the bytes of a phase each link carries, float64[n_links].

    Parameters
    ----------
    placement : sequence of str
        Node of each rank, of those that have one.
    kind : Exchange
        What the groups of these ranks do.
    """
    pattern, groups = kind
    places = [[placement[rank] for rank in group if rank < len(placement)] for group in groups]
    places = [place for place in places if place]
    if pattern in (SEND, ALL_TO_ALL):
        weight = _pairs(network, places, sends=pattern == SEND)
    else:
        weight, machine = {}, network.machine
        for place, edges in zip(places, job_edges(network, places), strict=True):
            share = 1.0 / _n_rings(network, place)
            for a, b in edges:  # inside of a machine all rings pass each GPU
                part = 1.0 if machine[a] == machine[b] >= 0 else share
                weight[a, b] = weight.get((a, b), 0.0) + part
    use = np.zeros(network.n_links)
    if weight:
        routes = find_routes(network, [a for a, _ in weight], [b for _, b in weight], seed=seed)
        times = np.repeat(list(weight.values()), np.diff(routes.first))
        np.add.at(use, routes.link, times * routes.share)
    return use


def leaves_machine(network: Network) -> NDArray[np.bool_]:
    """Tell which links are not inside one machine, bool[n_links]."""
    inside: NDArray[np.bool_] = network.machine[network.src] == network.machine[network.dst]
    return ~(inside & (network.machine[network.src] >= 0))


def _pairs(network: Network, places: Sequence[Sequence[str]], *, sends: bool) -> dict[tuple[int, int], float]:
    """Return pairs of nodes with the part of a rank's bytes that goes from one to the other."""
    node, weight = node_numbers(network, places), dict[tuple[int, int], float]()
    for place in places:
        at = [node[name] for name in place]
        if sends:
            pairs = [(a, b, 1.0) for a, b in itertools.pairwise(at)]
        else:
            nodes, n = (one.tolist() for one in np.unique(at, return_counts=True))
            each = max(1, len(at) - 1)
            pairs = [(a, b, m * k / each) for a, m in zip(nodes, n, strict=True) for b, k in zip(nodes, n, strict=True)]
        for a, b, share in pairs:
            if a != b:
                weight[a, b] = weight.get((a, b), 0.0) + share
    return weight


def _mean_use(network: Network, job: PeriodicJob, uses: Mapping[Exchange, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean of the uses of the phases that leave a machine, by bytes; of all phases, where none does."""
    if len(uses) == 1:
        return next(iter(uses.values()))
    outer = leaves_machine(network)
    n_bytes: dict[Exchange, float] = {}
    for phase in job.phases:
        kind = exchange_of(phase, job.n_gpus)
        n_bytes[kind] = n_bytes.get(kind, 0.0) + phase.n_bytes
    leaving = {kind: amount for kind, amount in n_bytes.items() if uses[kind][outer].any()} or n_bytes
    total = sum(leaving.values())
    use = np.zeros(network.n_links)
    for kind, amount in leaving.items():
        use += amount / total * uses[kind]
    return use


def _own_path(network: Network, job: PeriodicJob, uses: Mapping[Exchange, NDArray[np.float64]]) -> OwnPath:
    outer = leaves_machine(network)
    mean = _mean_use(network, job, uses)
    most, all_links = float((mean / network.bandwidth).max(initial=0.0)), float(mean[outer].sum())
    path = []
    for phase in job.phases:
        use = uses[exchange_of(phase, job.n_gpus)]
        part, own = float((use / network.bandwidth).max(initial=0.0)), float(use[outer].sum())
        path.append((part, min(1 / most, own / all_links / part) if own else 0.0))
    return tuple(path)


def _n_rings(network: Network, placement: Sequence[str]) -> int:
    """Return the number of rings of a job: as many as it has NICs to leave each of its machines by."""
    nics, index = nics_of(network), node_numbers(network, [placement])
    if not nics.any():
        return 1
    gpus: dict[int, int] = {}
    for name in set(placement):
        machine = int(network.machine[index[name]])
        gpus[machine] = gpus.get(machine, 0) + 1
    return max(1, min(min(n, int(nics[at])) if 0 <= at < len(nics) else 0 for at, n in gpus.items()))
