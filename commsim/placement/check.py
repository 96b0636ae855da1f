"""Simulate the jobs of a candidate, and say where scores and simulated iteration times tell different stories."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from commsim.workload.sharing.periodic import PeriodicJob

from .candidate import Candidate
from .cluster import Cluster
from .link_use import link_uses

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
