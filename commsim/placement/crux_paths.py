"""Crux's paths: the more work a job does per second on the network, the earlier it chooses among equal paths.

Each edge of a job's ring tries a number of source ports; ECMP hashes each to a path. It takes the one whose most loaded
link is least loaded by the jobs that have chosen before.

References
----------
Cao et al., Crux, SIGCOMM 2024, section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.routes.routing import find_routes
from commsim.core.value import Value, freeze


@dataclass(frozen=True, slots=True, eq=False)
class ChosenPaths(Value):
    """Which way the jobs go.

    Parameters
    ----------
    use : float64[n_jobs, n_links]
        How many times its rate each job puts on every link.
    ports : tuple of tuple of int
        The port of each edge of each job's ring.
    """

    use: NDArray[np.float64]
    ports: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "use", freeze(self.use, np.float64, name="chosen paths: use"))


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
        Where; hashes of its own ECMP are used.
    rings : sequence of sequence of (int, int)
        Nodes between which each job sends.
    rates, intensities : float64[n_jobs]
        Mean rate of each job, in bytes/s, and its GPU intensity; of equals the first chooses first.
    n_ports : int
        How many ports are tried for each edge.
    seed : int
        Of the hash.

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
