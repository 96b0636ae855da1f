"""Jobs of in-network aggregation for the packet engine: workers, aggregators, losses, and the result of one job."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import SWITCH, Network
from commsim.core.result import Result
from commsim.core.units import count_text
from commsim.packets.aggregated.aggregator_seats import free_seat
from commsim.packets.aggregated.packet_job import AggregationJob, BlockRounds, check_fan_in
from commsim.packets.links.queues import Fabric
from commsim.routing.aggregation_tree import host_tree
from commsim.routing.aggregator_placement import AggregatorPlacement, able_switches, place_aggregators
from commsim.sparse.occupancy import Occupancy
from switch_model.system import COLOCATED, DEDICATED, System

__all__ = ["aggregation_job", "aggregator_hosts", "job_workers", "simulate_job", "spare_hosts", "with_loss"]


def aggregation_job(
    system: System,
    network: Network,
    workers: Sequence[int],
    n_elements: int | Sequence[int],
    *,
    floats: bool = False,
    starts: Sequence[float] = (),
    server: int | None = None,
    without: Collection[str] = (),
    occupancy: Occupancy | None = None,
    where: AggregatorPlacement | None = None,
) -> AggregationJob:
    """Choose the switches or hosts that aggregate, and the parameter server if the system has one.

    Parameters
    ----------
    system : System
        How packets look and slots are given out.
    network : Network
        Network that it runs on.
    workers : sequence of int
        Nodes of the workers.
    n_elements : int or sequence of int
        Number of elements of one tensor, or of several that are reduced one after the other.
    floats : bool
        Whether block exponents go one window ahead of the values.
    starts : sequence of float, s
        Time at which each worker begins; by default 0 for all.
    server : int, optional
        Node of the parameter server; by default the first one that is no worker's.
    without : collection of str
        Rules that are left out.
    occupancy : Occupancy, optional
        Blocks that are not all zero at each worker; only these are sent. By default all are.
    where : AggregatorPlacement, optional
        Aggregators that are chosen already.

    Raises
    ------
    InputError
        If a node does not exist or may not do its part.
    """
    workers = tuple(int(w) for w in workers)
    no_hosts = np.setdiff1d(workers, network.endpoints)
    if len(no_hosts):
        raise InputError(f"{network.name}: workers must be on hosts, got node {no_hosts[0]}")
    if system.hosts:
        hosts = aggregator_hosts(system, network, workers)
        trees = tuple(host_tree(network, workers, host, turn=i) for i, host in enumerate(hosts))
    else:
        where = where or _choose(system, network, workers, server)
        trees = where.trees
    rounds = None if occupancy is None else BlockRounds(occupancy, system.window, system.cores)
    sizes = (int(n_elements),) if isinstance(n_elements, int | np.integer) else tuple(int(n) for n in n_elements)
    to_server = trees[0].to_server
    return AggregationJob(system, workers, sizes, trees, floats, tuple(starts), to_server, frozenset(without), rounds)


def _choose(system: System, network: Network, workers: tuple[int, ...], server: int | None) -> AggregatorPlacement:
    if system.server:
        server = free_seat(system.name, network, workers) if server is None else server
        if server in workers or network.kind[server] == SWITCH:
            raise InputError(
                f"{network.name}: the parameter server must be on a host without a worker, got node {server}"
            )
    able, _ = able_switches(network, in_machines=system.in_machines)
    # Some switch has at least so many children, whatever the tree is; finding one for a million workers takes a minute.
    check_fan_in(system, -(-len(workers) // max(1, int(able.sum()))))
    return place_aggregators(network, workers, able, server=server, n_trees=system.n_trees)


def simulate_job(network: Network, job: AggregationJob, fabric: Fabric | None = None, seed: int = 0) -> Result:
    """Predict the times of one job without values: by its recurrence where it is one, else event by event.

    Parameters
    ----------
    network : Network
        Network that it runs on.
    job : AggregationJob
        Job from :func:`aggregation_job`.
    fabric : Fabric, optional
        Queues and losses; by default infinite queues and the network's own losses.
    seed : int
        Seed of losses and marks.
    """
    from commsim.packets.aggregated.tree_times import simulate_recurrence, why_not
    from commsim.packets.packet_work import expect_aggregation
    from commsim.packets.run_packets import simulate_aggregation

    whole = job.system.elements * job.system.packets_per_message
    if not why_not(network, job, fabric) and not any(n % whole for n in job.n_elements):
        return simulate_recurrence(network, job, fabric=fabric)
    expect_aggregation(network, [job], fabric or Fabric(), values=False)
    return simulate_aggregation(network, [job], fabric=fabric, seed=seed, values=False).results[0]


def aggregator_hosts(system: System, network: Network, workers: Sequence[int]) -> tuple[int, ...]:
    """Return the hosts that aggregate: the first workers' own, or the network's last ones without worker.

    Raises
    ------
    InputError
        If there are too few.
    """
    n, colocated = system.n_trees, system.hosts == COLOCATED
    choice = [int(w) for w in workers] if colocated else [h for h in network.endpoints.tolist() if h not in workers]
    if colocated and len(choice) < 2:
        raise InputError(f"{system.name}: with aggregators on their own hosts, fewer than 2 workers send nothing")
    if len(choice) < n:
        what = "of workers" if colocated else "without worker"
        raise InputError(f"{system.name}: {n} aggregators need as many hosts {what}, {network.name} has {len(choice)}")
    return tuple(choice[:n] if colocated else choice[-n:])


def spare_hosts(system: System, n_jobs: int = 1) -> int:
    """Hosts that jobs need beside their workers': of a parameter server each, or of aggregators that all jobs have."""
    return n_jobs * system.server + (system.n_trees if system.hosts == DEDICATED else 0)


def with_loss(network: Network, up: float, down: float) -> Network:
    """Return the network with packets lost on links that lead away from hosts' side, and on those that lead to it.

    Parameters
    ----------
    network : Network
        Network that it runs on.
    up, down : float
        Chance of a packet on each link from a host, and on each link to a host; links between switches lose `up` in
        the direction of the larger node number of a pair and `down` in the other.

    Raises
    ------
    InputError
        If a chance is not in [0, 1).
    """
    to_host = network.kind[network.dst] != SWITCH
    from_host = network.kind[network.src] != SWITCH
    is_up = from_host | (~to_host & (network.src < network.dst))
    return dataclasses.replace(network, loss=np.where(is_up, up, down))


def job_workers(network: Network, n_jobs: int, n_workers: int, spare: int = 0) -> list[tuple[int, ...]]:
    """Give each of several jobs hosts of its own, in turn.

    Raises
    ------
    InputError
        If there are too few hosts; `spare` are left free.
    """
    hosts = network.endpoints.tolist()
    if n_jobs < 1 or n_workers < 1 or n_jobs * n_workers + spare > len(hosts):
        free = count_text(len(hosts), "host") + (f", {spare} of them must stay free" if spare else "")
        raise InputError(
            f"{network.name} has {free}; got {count_text(n_jobs, 'job')} of {count_text(n_workers, 'worker')}"
        )
    return [tuple(hosts[j * n_workers : (j + 1) * n_workers]) for j in range(n_jobs)]
