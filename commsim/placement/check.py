"""Simulate the jobs of a candidate, and say where scores and simulated iteration times tell different stories.

Jobs on one link, simulated: the check of a link's score.

A cheap estimate of iteration times under contention; the simulation is the better answer.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import HOST, Network
from commsim.workload.sharing.periodic import PeriodicJob

from .candidate import Candidate
from .cluster import Cluster
from .link_use import LinkClass, Scores, link_uses

ITERATIONS = 60
_SAME = 1e-3


def simulated(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    candidate: Candidate,
    *,
    iterations: int = ITERATIONS,
    seed: int = 0,
) -> Candidate:
    """Run the jobs together, with max-min fair sharing and the candidate's shifts, and predict from that.

    Parameters
    ----------
    jobs : sequence of PeriodicJob
        Whose placements are the candidate's.
    iterations : int
        Of each job; the second half is averaged, when what there is at the start has died away.
    seed : int
        Of the routes' hash, as when the candidate was scored.

    Returns
    -------
    Candidate
        With the mean iteration time of each job.
    """
    from commsim.workload.sharing.shared_links import simulate_jobs

    placements = [candidate.placement[job.name] for job in jobs]
    use = link_uses(cluster, placements, seed)
    shifts = [candidate.shifts[job.name] for job in jobs]
    run = simulate_jobs(cluster.network, jobs, list(use), shifts=shifts, iterations=iterations)
    times = {
        job.name: float(mine[iterations // 2 :].mean()) for job, mine in zip(jobs, run.iteration_times, strict=True)
    }
    return dataclasses.replace(candidate, predicted=times, prediction="simulation")


def slowdown(jobs: Sequence[PeriodicJob], candidate: Candidate) -> float:
    """Mean over the jobs of the predicted iteration time over that alone."""
    return float(np.mean([candidate.predicted[job.name] / job.period for job in jobs]))


def disagreements(jobs: Sequence[PeriodicJob], ranked: Sequence[Candidate], key: str = "score_mean") -> list[str]:
    """Say which candidates are ranked one way by score and the other by predicted slow-down.

    Returns
    -------
    list of str
        One line per pair, candidates numbered from 1; empty when the orders agree. Slow-downs within 0.1 % are equal.
    """
    slow = [slowdown(jobs, candidate) for candidate in ranked]
    score = [getattr(candidate, key) for candidate in ranked]
    return [
        f"candidate {a + 1} scores {score[a]:.4g} and candidate {b + 1} {score[b]:.4g}, "
        f"but the simulated slow-downs are {slow[a]:.4g} and {slow[b]:.4g}"
        for a, b in itertools.combinations(range(len(ranked)), 2)
        if score[a] > score[b] + 1e-9 and slow[a] > slow[b] * (1 + _SAME)
    ]


def simulated_times(
    jobs: Sequence[PeriodicJob], capacity: float, shifts: NDArray[np.float64], iterations: int = ITERATIONS
) -> dict[str, float]:
    """Mean iteration time of each job, in seconds, when all send over one link with max-min fair sharing.

    Parameters
    ----------
    capacity : float, bytes/s
        Of the link.
    shifts : float64[n_jobs], s
        When each job starts.
    iterations : int
        Of each job; the second half is averaged.
    """
    from commsim.workload.sharing.shared_links import simulate_jobs

    link = Network("one link", ("from", "to"), [HOST, HOST], [0], [1], capacity, 0.0)
    run = simulate_jobs(link, jobs, [np.ones(1)] * len(jobs), shifts=shifts, iterations=iterations)
    return {
        job.name: float(times[iterations // 2 :].mean()) for job, times in zip(jobs, run.iteration_times, strict=True)
    }


def estimate(
    jobs: Sequence[PeriodicJob], classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Estimate the iteration time of each job when the jobs start at given times.

    What a job sends while a link is asked for d times its capacity takes d times as long; the job is delayed by the sum
    over an iteration on its worst link. That delays do not make jobs drift into, or out of, each other's way is
    assumed, which only a simulation can tell.

    Returns
    -------
    float64[n_jobs], s
    """
    delay = np.zeros(len(jobs))
    for links in classes:
        if len(links.jobs) == 1:
            job = jobs[links.jobs[0]]
            alone = sum(max(0.0, float(links.part[0]) * phase.rate - 1.0) * phase.duration for phase in job.phases)
            delay[links.jobs[0]] = max(delay[links.jobs[0]], alone)
        elif scores.is_tight(links):
            mine = list(links.jobs)
            circle = scores.circle(links.jobs)
            demand = circle.turned(shifts[mine])
            over = np.maximum(links.part @ demand - 1.0, 0.0)
            sending = demand / np.maximum(scores.peak[mine], 1e-300)[:, None]  # part of the angle, for one height
            per_iteration = circle.period / circle.n_angles
            delay[mine] = np.maximum(delay[mine], np.where(over > 1e-9, over, 0.0) @ sending.T * per_iteration)
    return np.array([job.period for job in jobs]) + delay
