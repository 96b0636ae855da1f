"""Affinity graph of jobs and shared links, and one start time per job that suits all its links."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.placement.starts.circles import QUANTUM

_MAX_OFFSETS = 10_000


class LinkDemands(Protocol):
    """A link, or several equal ones, and the demands of its jobs; `shifts` may be sought when they are read."""

    @property
    def jobs(self) -> tuple[int, ...]:
        """Numbers of the jobs, at least two."""

    @property
    def shifts(self) -> tuple[float, ...]:
        """How much later each should start, s, as far as this link is concerned."""

    @property
    def is_held(self) -> bool:
        """Whether the first job stands for those with a fixed start, so that no common offset is left to choose."""


@dataclass(frozen=True, slots=True)
class Component:
    """Jobs and links that hang together.

    Parameters
    ----------
    jobs, links : tuple of int
        Jobs and links in ascending order.
    has_loop : bool
        Whether there are two ways from a job to another: then the links' wishes may contradict each other.
    """

    jobs: tuple[int, ...]
    links: tuple[int, ...]
    has_loop: bool


def components(links: Sequence[tuple[int, ...]]) -> list[Component]:
    """Split the bipartite graph of links and their jobs.

    Parameters
    ----------
    links : sequence of tuple of int
        The jobs on each link.

    Returns
    -------
    list of Component
        In the order of their first jobs. One without a loop has one edge less than vertices.
    """
    root: dict[int, int] = {job: job for jobs in links for job in jobs}

    def find(job: int) -> int:
        while root[job] != job:
            root[job] = job = root[root[job]]
        return job

    for jobs in dict.fromkeys(links):
        a = find(jobs[0])
        for job in jobs[1:]:
            b = find(job)
            if b != a:
                a, b = (a, b) if a < b else (b, a)
                root[b] = a
    members: dict[int, list[int]] = {}
    for job in sorted(root):
        members.setdefault(find(job), []).append(job)
    links_of: dict[int, list[int]] = {first: [] for first in members}
    for number, jobs in enumerate(links):
        links_of[find(jobs[0])].append(number)
    return [
        Component(tuple(jobs), tuple(links_of[first]), sum(len(links[i]) - 1 for i in links_of[first]) > len(jobs) - 1)
        for first, jobs in members.items()
    ]


def traverse(
    links: Sequence[LinkDemands],
    periods: NDArray[np.float64],
    *,
    root: np.random.Generator | None = None,
    held: int = -1,
) -> NDArray[np.float64]:
    """Walk each component breadth first, and give every job one start time (Algorithm 1).

    A job k that a link l joins to a job j with a known time gets ``t_k = (t_j - t_j^l + t_k^l) mod period_k``.

    Parameters
    ----------
    links : sequence of LinkDemands
        The vertices; several alike must come as one, or they close loops.
    periods : float64[n_jobs], s
        Period of every job, also of those that share nothing.
    root : numpy.random.Generator, optional
        Draws the job of each component that starts at 0; by default the first one.
    held : int, optional
        Job that starts at 0 in any case.

    Returns
    -------
    float64[n_jobs], s
        0 for jobs that share nothing. Where there are loops, the link that is met first decides.

    References
    ----------
    Rajasekaran, Ghobadi and Akella, NSDI 2024, algorithm 1 and theorem 1.
    """
    shifts = np.zeros(len(periods))
    of_job: dict[int, list[int]] = {}
    for number, link in enumerate(links):
        for job in link.jobs:
            of_job.setdefault(job, []).append(number)
    for component in components([link.jobs for link in links]):
        first = component.jobs[0] if root is None else component.jobs[int(root.integers(len(component.jobs)))]
        first = held if held in component.jobs else first
        known, queue = {first}, deque([first])
        while queue:
            j = queue.popleft()
            for link in (links[number] for number in of_job[j]):
                if known.issuperset(link.jobs):
                    continue  # what it wants need not be sought
                wish = dict(zip(link.jobs, link.shifts, strict=True))
                for k in link.jobs:
                    if k not in known:
                        shifts[k] = _wrapped(shifts[j] - wish[j] + wish[k], float(periods[k]))
                        known.add(k)
                        queue.append(k)
    return shifts


def inconsistency(link: LinkDemands, shifts: NDArray[np.float64], periods: NDArray[np.float64]) -> float:
    """Largest deviation of start times from a link's best shifts, up to a common offset of its jobs.

    Since a job looks the same after its own period, all that a link needs is one offset c with ``t_k = t_k^l + c (mod
    period_k)`` for each of its jobs. (Eq. 6 of the paper compares differences modulo the perimeter instead, which the
    times of algorithm 1, taken modulo each period, do not satisfy.)

    Returns
    -------
    float, s
        The largest deviation of a job, for the offset for which it is least; 0 where the link gets what it wants.
    """
    wish, period = np.array(link.shifts), periods[list(link.jobs)]
    shifts_of_jobs = shifts[list(link.jobs)]
    offset = shifts_of_jobs[0] - wish[0] + np.arange(_n_offsets(link, _quanta(period))) * period[0]
    away = (shifts_of_jobs - wish - offset[:, None] + period / 2) % period - period / 2
    return float(np.abs(away).max(axis=1).min())


def largest_inconsistency(
    links: Sequence[LinkDemands], shifts: NDArray[np.float64], periods: NDArray[np.float64]
) -> float:
    """Return the largest :func:`inconsistency` of some links, s; shifts are not read where they cannot change it.

    A job is at most half of its period away. Of one job, offsets come as close as half of what divides its period and
    that of the first job.
    """
    bounds = []
    for link in links:
        period = periods[list(link.jobs)]
        quanta = _quanta(period)
        n_offsets = _n_offsets(link, quanta)
        *rest, bound = sorted(period[1:].tolist())
        is_whole = bool((np.abs(period - np.array(quanta) * QUANTUM) < 1e-9 * period).all())
        if is_whole and n_offsets < _MAX_OFFSETS and not link.is_held:
            bound = min(bound, max([math.gcd(quanta[0], round(bound / QUANTUM)) * QUANTUM, *rest[-1:]]))
        bounds.append(bound / 2 * (1 + 1e-6))
    largest = 0.0
    for i in np.argsort(bounds)[::-1].tolist():
        if bounds[i] <= largest:
            break
        largest = max(largest, inconsistency(links[i], shifts, periods))
    return largest


def _quanta(period: NDArray[np.float64]) -> list[int]:
    return np.maximum(np.rint(period / QUANTUM), 1).astype(np.int64).tolist()  # type: ignore[no-any-return]


def _n_offsets(link: LinkDemands, quanta: Sequence[int]) -> int:
    """Return how many common offsets of a link's jobs differ."""
    return 1 if link.is_held else min(math.lcm(*quanta) // quanta[0], _MAX_OFFSETS)


def _wrapped(time: float, period: float) -> float:
    """Bring a time into its period; what rounding leaves just below the end is 0."""
    time %= period
    return 0.0 if period - time < 1e-9 * period else time
