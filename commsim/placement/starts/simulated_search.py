"""Start times by simulation, where phases cannot be kept apart or drift: the one of many that costs least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.placement.iteration_times import estimate
from commsim.placement.link_classes import LinkClass
from commsim.placement.scores import Scores
from commsim.placement.starts.affinity import components

# Jobs of a component whose start times are tried one by one, and start times of each job.
MOST_JOBS, STEPS = 4, 240
# Seconds between start times, where a period has fewer steps.
STEP = 1e-3
# Over all jobs, and the part of the iteration times by which another start time must be better.
_ROUNDS, _GAIN = 2, 1e-4


def searched(
    classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64], tight: Sequence[LinkClass]
) -> NDArray[np.float64]:
    """Move one job after the other to the start time with the least simulated slow-down.

    Demand above a link's capacity says how much is late, not what this makes of later iterations: jobs that collide
    may push each other to where they do not, and jobs whose periods differ drift apart or together.

    Parameters
    ----------
    classes : sequence of LinkClass
        Links of a placement.
    scores : Scores
        Scores with the phases that jobs achieve on these links.
    shifts : float64[n_jobs], s
        Start times as found by scores.
    tight : sequence of LinkClass
        Those whose excess depends on start times (:func:`commsim.placement.evaluation.contended`).

    Returns
    -------
    float64[n_jobs], s
        Changed only for components of at most ``MOST_JOBS`` jobs that are slower than alone.
    """
    shifts = shifts.copy()
    for component in components([links.jobs for links in tight]):
        jobs = sorted(component.jobs, key=lambda job: (not scores.is_held[job], job))
        links = [one for one in classes if component.jobs and set(one.jobs) & set(jobs)]
        free = [job for i, job in enumerate(jobs) if i and not scores.is_held[job]]
        best = _slowdown(links, scores, shifts, jobs)
        for _ in range(_ROUNDS if len(jobs) <= MOST_JOBS else 0):
            before = best
            for job in free:
                best, shifts[job] = _best_of(links, scores, shifts, job, jobs, best)
            if best > before - _GAIN:
                break
    return shifts


def _best_of(
    links: Sequence[LinkClass],
    scores: Scores,
    shifts: NDArray[np.float64],
    job: int,
    jobs: Sequence[int],
    best: float,
) -> tuple[float, float]:
    """Return the least slow-down over the start times of one job, and the start time, s."""
    chosen, at = float(shifts[job]), shifts.copy()
    period = float(scores.period[job])
    for start in np.arange(0.0, period, max(STEP, period / STEPS)).tolist() if best > 1 + _GAIN else ():
        at[job] = start
        found = _slowdown(links, scores, at, jobs)
        if found < best - _GAIN:
            best, chosen = found, start
    return best, chosen


def _slowdown(links: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64], jobs: Sequence[int]) -> float:
    return float((estimate(links, scores, shifts) / scores.period)[list(jobs)].mean())
