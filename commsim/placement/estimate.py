"""A cheap estimate of iteration times under contention; the simulation is the better answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.workload.sharing.periodic import PeriodicJob

from .link_classes import LinkClass, Scores


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
