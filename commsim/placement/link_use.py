"""Link use of placed jobs, and classes of links on which the same jobs demand the same shares.

Which links a placed job uses, and how many times its rate each of them carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.routing.routing import find_routes
from commsim.workload.sharing.periodic import PeriodicJob

from .circles import Circle, unify
from .cluster import Cluster
from .score import search


@dataclass(frozen=True, slots=True)
class Settings:
    """How scores are found.

    Parameters
    ----------
    angles, step, quantum, longest
        As in :func:`commsim.placement.circles.unify`; but since there are many links, circles are at most 2.4 s long,
        which hold a dozen iterations of most jobs.
    seed : int
        Of the hash in routing, and of candidates that are drawn.
    """

    angles: int = 72
    step: float | None = None
    quantum: float = 1e-3
    longest: float = 2.4
    seed: int = 0


@dataclass(frozen=True, slots=True)
class LinkClass:
    """Links on which the same jobs demand the same parts of the capacity.

    Parameters
    ----------
    jobs : tuple of int
        Those that pass.
    part : float64[n_jobs], s/byte
        Of these jobs: times which, a rate is a part of the capacity.
    links : int64[n_links]
        Which.
    """

    jobs: tuple[int, ...]
    part: NDArray[np.float64]
    links: NDArray[np.int64]


def link_classes(network: Network, use: NDArray[np.float64]) -> list[LinkClass]:
    """Group the links that carry anything.

    Parameters
    ----------
    use : float64[n_jobs, n_links]
        How many times its rate each job sends over each link.
    """
    used = np.flatnonzero(use.any(axis=0))
    if not used.size:
        return []
    part = (np.round(use[:, used], 9) / network.bandwidth[used]).T
    rows, first, inverse = np.unique(part, axis=0, return_index=True, return_inverse=True)
    of_class = np.split(np.argsort(inverse.ravel(), kind="stable"), np.cumsum(np.bincount(inverse.ravel()))[:-1])
    order = np.argsort(first)  # the order of the links, which does not depend on sizes of floats
    jobs = [np.flatnonzero(rows[i]) for i in order]
    return [
        LinkClass(tuple(sharing.tolist()), rows[i][sharing], used[of_class[i]])
        for i, sharing in zip(order, jobs, strict=True)
    ]


class Scores:
    """Circles and best rotations that were found before, for candidates that differ in little.

    Parameters
    ----------
    jobs : sequence of PeriodicJob
        To whose numbers classes refer.
    settings : Settings
        How to look.
    """

    def __init__(self, jobs: Sequence[PeriodicJob], settings: Settings) -> None:
        self._jobs, self._settings = jobs, settings
        self._circles: dict[tuple[int, ...], Circle] = {}
        self._shifts: dict[tuple[tuple[int, ...], bytes], NDArray[np.float64]] = {}
        self.peak = np.array([job.peak_rate for job in jobs])

    def circle(self, jobs: tuple[int, ...]) -> Circle:
        """Circle of some of the jobs."""
        if jobs not in self._circles:
            given, s = [self._jobs[j] for j in jobs], self._settings
            self._circles[jobs] = unify(given, angles=s.angles, step=s.step, quantum=s.quantum, longest=s.longest)
        return self._circles[jobs]

    def shifts(self, links: LinkClass) -> NDArray[np.float64]:
        """Best shifts on a class of links by itself, float64[n_jobs], s."""
        key = (links.jobs, links.part.tobytes())
        if key not in self._shifts:
            circle = self.circle(links.jobs)
            self._shifts[key] = circle.seconds(search(circle, links.part)[0])
        return self._shifts[key]

    def is_tight(self, links: LinkClass) -> bool:
        """Whether several jobs pass, and their peaks together exceed the capacity: else every shift suits it."""
        return len(links.jobs) > 1 and float(links.part @ self.peak[list(links.jobs)]) > 1 + 1e-9


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


def link_use(cluster: Cluster, placement: Sequence[str], seed: int = 0) -> NDArray[np.float64]:
    """How many times the job's rate each directed link carries.

    Returns
    -------
    float64[n_links]
        1 where one edge of the ring passes, k where k do; fractions where the network's routing sprays.

    Raises
    ------
    InputError
        If the network has no such node, or no path.
    """
    use: NDArray[np.float64] = link_uses(cluster, [placement], seed)[0]
    return use


def link_uses(cluster: Cluster, placements: Sequence[Sequence[str]], seed: int = 0) -> NDArray[np.float64]:
    """:func:`link_use` of many placements, found together, which is much faster.

    Returns
    -------
    float64[n_placements, n_links]
    """
    network = cluster.network
    edges = [ring_edges(placement) for placement in placements]
    ends = sorted({edge for ring in edges for edge in ring})
    use = np.zeros((len(placements), network.n_links))
    if not ends:
        return use
    node = _indices(cluster, placements)
    routes = find_routes(network, [node[a] for a, _ in ends], [node[b] for _, b in ends], seed=seed)
    number = {edge: i for i, edge in enumerate(ends)}
    for row, ring in zip(use, edges, strict=True):
        for edge in ring:
            route = slice(routes.first[number[edge]], routes.first[number[edge] + 1])
            np.add.at(row, routes.link[route], routes.share[route])
    return use


def _indices(cluster: Cluster, placements: Sequence[Sequence[str]]) -> dict[str, int]:
    index = {name: i for i, name in enumerate(cluster.network.nodes)}
    for name in {name for placement in placements for name in placement}:
        if name not in index:
            raise InputError(f"a job is placed on {name!r}, which is not a node of {cluster.network.name}")
    return index
