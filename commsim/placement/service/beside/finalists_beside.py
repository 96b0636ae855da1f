"""Finalists beside running jobs: the new jobs, and those that full links join to them, simulated as by ``place``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from commsim.training.sharing.periodic import PeriodicJob
from commsim.training.sharing.shared_links import fair_times
from commsim.training.sharing.shared_run import MEASURED, PER_USE

from .beside_kernel import JobTimes, Uses
from .kept_jobs import KeptJobs

# Seconds that the simulations of one request may take.
LONGEST = 0.15
_LESS = 1e-9  # part of an iteration by which a job must be slowed down


@dataclass(frozen=True, slots=True)
class SimulatedBeside:
    """Iteration times of all jobs, s, without the new ones and with them, where those that are joined are simulated.

    Parameters
    ----------
    before : float64[n_kept]
        Of the jobs that run.
    after : float64[n_kept + n_new]
        Of all.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JoinedJobs:
    """Running jobs that new ones meet on full links under one hash, with those that full links join to them.

    Parameters
    ----------
    running : list of int
        Numbers of the running jobs.
    links : set of int
        Links that they or the new jobs can exceed together.
    jobs : list of PeriodicJob
        The running and the new jobs, with the phases that they achieve.
    cost : float, s
        Time that it takes to simulate them.
    """

    running: list[int]
    links: set[int]
    jobs: list[PeriodicJob]
    cost: float


def joined_beside(
    kept: KeptJobs, h: int, new: Sequence[PeriodicJob], more: Uses, score: NDArray[np.float64], times: JobTimes
) -> JoinedJobs | None:
    """Find the jobs to simulate for new ones under one hash.

    Parameters
    ----------
    kept : KeptJobs
        Jobs that run.
    h : int
        Number of the hash.
    new : sequence of PeriodicJob
        New jobs with their starts, and the phases that they achieve.
    more : Uses
        Their links.
    score : float64[n_links]
        Scores of these links.
    times : JobTimes
        Times of all jobs by the formula.

    Returns
    -------
    JoinedJobs or None
        None where nobody loses anything, so that the formula is exact.
    """
    uses, found, _ = kept.of(h)
    n_kept = len(kept.jobs)
    joined, links = _joined(uses, found.group, more, _tight_links(more, score))
    own = [*joined, *range(n_kept, n_kept + len(new))]
    if len(own) < 2 or not (times.final[own] > times.alone[own] * (1 + _LESS)).any():
        return None
    links |= _held_links(kept, h, joined)
    jobs = [*(kept.achieved(h)[j] for j in joined), *new]
    n_uses = sum(_n_uses(of, sorted(links)) for of in (uses, more))
    return JoinedJobs(joined, links, jobs, PER_USE * n_uses * sum(len(job.phases) for job in jobs))


def simulated_beside(kept: KeptJobs, h: int, joined: JoinedJobs, more: Uses, times: JobTimes) -> SimulatedBeside:
    """Simulate new jobs at their starts, with the running ones that full links join to them, under one hash."""
    uses, found, usual = kept.of(h)
    n_kept, running = len(kept.jobs), joined.running
    own = [*running, *range(n_kept, n_kept + len(joined.jobs) - len(running))]
    after = times.final.copy()
    after[own] = _simulated(uses, more, joined.links, own, joined.jobs)
    before = usual.final.copy()
    for group in {int(found.group[j]) for j in running}:
        members = np.flatnonzero(found.group == group).tolist()
        before[members] = kept.simulated(h, group, lambda members=members: _alone(kept, h, members))  # type: ignore[misc]
    return SimulatedBeside(before, after)


def _tight_links(more: Uses, score: NDArray[np.float64]) -> list[int]:
    """Return positions of the links of new jobs whose jobs can exceed them together."""
    several = np.diff(more.first) > 0
    return np.flatnonzero((score < 1.5) & several).tolist()


def _joined(uses: Uses, group: NDArray[np.int64], more: Uses, tight: Sequence[int]) -> tuple[list[int], set[int]]:
    """Return the running jobs that new ones meet on full links, with those that are joined to them, and these links."""
    links = more.link[list(tight)].tolist()
    groups = set[int]()
    for link in links:
        groups |= {int(group[j]) for j in _jobs_on(uses, link)[0].tolist()}
    joined = np.flatnonzero(np.isin(group, list(groups))).tolist() if groups else []
    return joined, set(links)


def _jobs_on(uses: Uses, link: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    at = int(np.searchsorted(uses.link, link))
    if at >= len(uses.link) or uses.link[at] != link:
        return uses.job[:0], uses.part[:0]
    span = slice(int(uses.first[at]), int(uses.first[at + 1]))
    return uses.job[span], uses.part[span]


def _n_uses(uses: Uses, links: Sequence[int]) -> int:
    """Count the jobs on some links, added up."""
    at = np.flatnonzero(np.isin(uses.link, links))
    return int((uses.first[at + 1] - uses.first[at]).sum())


def _held_links(kept: KeptJobs, h: int, jobs: Sequence[int]) -> set[int]:
    """Return the links that running jobs can exceed together."""
    uses, found, _ = kept.of(h)
    entries = np.concatenate(
        [found.entry_of[:0], *(found.entry_of[found.first_of[j] : found.first_of[j + 1]] for j in jobs)]
    )
    full = entries[found.held[entries] > 0]
    return set(uses.link[np.searchsorted(uses.first, full, "right") - 1].tolist())


def _simulated(
    uses: Uses, more: Uses | None, links: set[int], own: Sequence[int], jobs: Sequence[PeriodicJob]
) -> NDArray[np.float64]:
    """Simulate jobs on some links, float64[n], s."""
    place = {j: i for i, j in enumerate(own)}
    parts = np.zeros((len(own), len(links)))
    for k, link in enumerate(sorted(links)):
        for of in (uses, more) if more is not None else (uses,):
            for j, part in zip(*(one.tolist() for one in _jobs_on(of, link)), strict=True):
                parts[place[j], k] = part
    parts = parts[:, (parts > 0).sum(axis=0) > 1]  # alone a job sends at what its links take
    parts = parts[:, np.sort(np.unique(parts, axis=1, return_index=True)[1])]  # both ways of a cable are alike
    starts = np.array([job.start or 0.0 for job in jobs])
    return fair_times(jobs, parts, starts, MEASURED)


def _alone(kept: KeptJobs, h: int, members: Sequence[int]) -> NDArray[np.float64]:
    """Return the times of running jobs that full links join, without new ones, float64[n], s."""
    uses, _, times = kept.of(h)
    if len(members) < 2 or not (times.final[members] > times.alone[members] * (1 + _LESS)).any():
        return times.final[members]
    jobs = [kept.achieved(h)[j] for j in members]
    return _simulated(uses, None, _held_links(kept, h, members), members, jobs)


def started(jobs: Sequence[PeriodicJob], shift: NDArray[np.float64]) -> list[PeriodicJob]:
    """Return jobs with the starts that were found for them, s; those that have one keep it."""
    return [replace(job, start=float(at)) if job.start is None else job for job, at in zip(jobs, shift, strict=True)]
