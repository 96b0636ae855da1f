"""Crux for placed jobs: paths, priorities, and priority levels of the network.

The more work a job does per second on the network, the earlier it chooses among equal paths. Each edge of a job's ring
tries a number of source ports; ECMP hashes each to a path. It takes the one whose most loaded link is least loaded by
the jobs that have chosen before.

References
----------
Cao et al., Crux, SIGCOMM 2024, section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.value import Value, freeze
from commsim.routing.routing import find_routes
from commsim.training.sharing.periodic import PeriodicJob

from .cluster import Cluster
from .crux import compress, contention, crux_job, priorities
from .link_use import job_edges
from .starts.demand import delivered
from .starts.job_uses import job_uses


class ChosenPaths(NamedTuple):
    """Paths of the jobs' rings.

    Parameters
    ----------
    use : float64[n_jobs, n_links]
        How many times its rate each job puts on every link.
    ports : tuple of tuple of int
        The port of each edge of each job's ring.
    """

    use: NDArray[np.float64]
    ports: tuple[tuple[int, ...], ...]


def choose_paths(
    network: Network,
    rings: Sequence[Sequence[tuple[int, int]]],
    rates: ArrayLike,
    intensities: ArrayLike,
    *,
    n_ports: int = 32,
    seed: int = 0,
) -> ChosenPaths:
    """Let jobs choose their paths in falling order of intensity.

    Parameters
    ----------
    network : Network
        Network whose ECMP hashes are used.
    rings : sequence of sequence of (int, int)
        Nodes between which each job sends.
    rates, intensities : float64[n_jobs]
        Mean rate of each job, in bytes/s, and its GPU intensity; of equals the first chooses first.
    n_ports : int
        How many ports are tried for each edge.
    seed : int
        Seed of the hash.

    Raises
    ------
    InputError
        If no port may be tried, or two nodes have no path.
    """
    if n_ports < 1:
        raise InputError(f"at least 1 port must be tried, got {n_ports}")
    rates = np.asarray(rates, np.float64)
    load, use = np.zeros(network.n_links), np.zeros((len(rings), network.n_links))
    ports: list[tuple[int, ...]] = [()] * len(rings)
    tried = np.arange(n_ports)
    for j in np.argsort(-np.asarray(intensities, np.float64), kind="stable").tolist():
        chosen = []
        for src, dst in rings[j]:
            routes = find_routes(network, np.full(n_ports, src), np.full(n_ports, dst), tried, seed=seed)
            added = np.zeros((n_ports, network.n_links))
            np.add.at(added, (np.repeat(tried, np.diff(routes.first)), routes.link), routes.share)
            loaded = np.where(added > 0, (load + added * rates[j]) / network.bandwidth, 0.0)
            port = int(np.lexsort((loaded.sum(axis=1), loaded.max(axis=1)))[0])
            chosen.append(port)
            use[j] += added[port]
            load += added[port] * rates[j]
        ports[j] = tuple(chosen)
    return ChosenPaths(use, tuple(ports))


@dataclass(frozen=True, slots=True, eq=False)
class CruxPlan(Value):
    """What Crux decides.

    Parameters
    ----------
    use : float64[n_jobs, n_links]
        How many times its rate each job puts on every link, on the paths that it was given.
    ports : tuple of tuple of int
        The port of each edge of each job's ring.
    intensity, priority : float64[n_jobs]
        Seconds of GPUs per second on the network, and the corrected priority: the larger goes first.
    level : int64[n_jobs]
        Priority in the network, 0 first: what ``priority`` sharing takes.
    """

    use: NDArray[np.float64]
    ports: tuple[tuple[int, ...], ...]
    intensity: NDArray[np.float64]
    priority: NDArray[np.float64]
    level: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("use", "intensity", "priority"):
            object.__setattr__(self, name, freeze(getattr(self, name), np.float64, name=f"Crux: {name}"))
        object.__setattr__(self, "level", freeze(self.level, np.int64, name="Crux: level"))

    def rows(self, jobs: Sequence[PeriodicJob]) -> dict[str, dict[str, Any]]:
        """Return each job's settings by name: the ports of its ring's edges, and its priority in the network."""
        columns = zip(self.ports, self.intensity.tolist(), self.priority.tolist(), self.level.tolist(), strict=True)
        return {
            job.name: {"ports": list(ports), "intensity": intensity, "priority": priority, "level": level}
            for job, (ports, intensity, priority, level) in zip(jobs, columns, strict=True)
        }


def plan_crux(
    cluster: Cluster, jobs: Sequence[PeriodicJob], *, n_levels: int = 8, n_ports: int = 32, seed: int = 0
) -> CruxPlan:
    """Choose paths, then priorities for these paths, then levels.

    Parameters
    ----------
    cluster : Cluster
        Cluster of the jobs.
    jobs : sequence of PeriodicJob
        All placed. Each is a ring over its hosts; its work is counted in seconds of GPUs.
    n_levels : int
        Priorities of the network.
    n_ports, seed : int
        Same as in :func:`.crux_paths.choose_paths`; the seed also draws the orders of the compression.

    Raises
    ------
    InputError
        If a job has no placement, or a number is not at least 1.
    """
    for job in jobs:
        if job.placement is None:
            raise InputError(f"{job.name}: Crux needs a placement, got none")
    placements = [job.placement or () for job in jobs]
    network = cluster.network
    usual = job_uses(cluster, jobs, seed)
    jobs = delivered(cluster, jobs, usual, seed)
    first = [crux_job(job, network.bandwidth, row).intensity for job, row in zip(jobs, usual, strict=True)]
    rings = job_edges(network, placements)
    rates = [job.n_bytes / job.period for job in jobs]
    paths = choose_paths(network, rings, rates, first, n_ports=n_ports, seed=seed)
    known = [crux_job(job, network.bandwidth, row) for job, row in zip(jobs, paths.use, strict=True)]
    intensity = np.array([job.intensity for job in known])
    priority = priorities(known)
    level = compress(contention(intensity, priority, paths.use), n_levels, seed=seed)
    alone = ~np.isfinite(intensity)
    intensity[alone] = priority[alone] = 0.0  # a job that uses no link needs no priority
    return CruxPlan(paths.use, paths.ports, intensity, priority, level)
