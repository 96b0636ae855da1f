"""Estimates of iteration times of jobs that share links, without a simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.training.sharing.periodic import PeriodicJob

from .affinity import components
from .link_classes import LinkClass, Met, Scores
from .phase_edges import DemandPieces, cut_circle
from .score import scores_of

_REMEMBERED = 100_000  # classes of links, at some start times
_HELD = 1e-3  # jobs whose slow-downs differ by less stay in their positions for a thousand iterations


def alone_times(jobs: Sequence[PeriodicJob], classes: Sequence[LinkClass]) -> NDArray[np.float64]:
    """Return the iteration time of each job without the others: d times as long for what asks d times its worst link.

    Returns
    -------
    float64[n_jobs], s
    """
    part = np.zeros(len(jobs))
    for links in classes:
        part[list(links.jobs)] = np.maximum(part[list(links.jobs)], links.part)
    return np.array(
        [job.period + _loss_at(job, worst) for job, worst in zip(jobs, part.tolist(), strict=True)], np.float64
    )


def _loss_at(job: PeriodicJob, part: float) -> float:
    """Seconds that a job loses in an iteration where a rate is `part` times as many links."""
    return _loss(job, [max(0.0, part * phase.rate - 1.0) * phase.duration for phase in job.phases])


def _loss(job: PeriodicJob, delays: Sequence[float]) -> float:
    """Seconds by which an iteration is longer when its phases take longer by `delays`, which computation may hide."""
    late = (phase.duration + by - phase.length for phase, by in zip(job.phases, delays, strict=True))
    return sum(max(seconds, 0.0) for seconds in late)


def estimate(
    jobs: Sequence[PeriodicJob], classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Estimate the iteration time of each job when the jobs start at given times.

    What a job sends while a link is asked for d times its capacity takes d times as long. The job is delayed by what
    computation beside each phase does not hide, summed over an iteration on its worst link; by no less than without the
    others, and than where all of a link's jobs are slowed down until their bytes fit, unless a fair share of it is
    enough. If all jobs that share links are slowed down by the same factor, or none is, they keep their start times.
    Otherwise their iterations drift past each other, and the delay is the mean over all positions that they can have.
    Left out are delays on its other links at other times, and that a delayed phase takes longer to pass the others.

    Returns
    -------
    float64[n_jobs], s
    """
    alone = alone_times(jobs, classes)
    tight = [links for links in classes if len(links.jobs) > 1 and scores.is_tight(links)]
    times = _slowest(alone, [(links, met(links, scores, shifts).times) for links in tight])
    period = np.array([job.period for job in jobs])
    for part in components([links.jobs for links in tight]):
        own = list(part.jobs)
        if np.ptp(times[own] / period[own]) > _HELD:
            drifting = [tight[i] for i in part.links]
            times[own] = _slowest(alone, [(links, met(links, scores, None).times) for links in drifting])[own]
    return times


def _slowest(alone: NDArray[np.float64], on_links: Sequence[tuple[LinkClass, Sequence[float]]]) -> NDArray[np.float64]:
    times = alone.copy()
    for links, found in on_links:
        for j, time in zip(links.jobs, found, strict=True):
            times[j] = max(times[j], time)
    return times


def met(links: LinkClass, scores: Scores, shifts: NDArray[np.float64] | None) -> Met:
    """Return how the jobs of a class of links meet there; `scores` remembers it.

    Parameters
    ----------
    shifts : float64[n], s, optional
        How much later each of all the jobs starts; without, they are in each position for an equal part of the time.
    """
    at = None if shifts is None else shifts[list(links.jobs)]
    key = links.jobs, links.part.tobytes(), b"" if at is None else at.tobytes()
    if key not in scores.met:
        if len(scores.met) >= _REMEMBERED:
            scores.met.clear()
        pieces = scores.anywhere(links.jobs) if at is None else cut_circle(scores.circle(links.jobs), at)
        score = float(scores_of(pieces, links.part[None])[0])
        scores.met[key] = Met(score, _times_on(links, scores, pieces))
    return scores.met[key]


def _times_on(links: LinkClass, scores: Scores, pieces: DemandPieces) -> tuple[float, ...]:
    """Return the iteration times of a link's jobs, in s, with what they lose on it."""
    jobs = [scores.jobs[j] for j in links.jobs]
    load = links.part @ pieces.demand
    on = np.flatnonzero(load > 1.0 + 1e-9)
    full = float(links.part @ scores.mean[list(links.jobs)]) - 1.0  # part of an iteration by which bytes are late
    if full <= 0 and not on.size:
        return tuple(job.period for job in jobs)
    over = (load[on] - 1.0) * pieces.length[on]
    first = np.cumsum([0, *(len(job.phases) + 1 for job in jobs)])
    state = (pieces.phase[:, on] + (first[:-1, None] + 1)).ravel()  # 0 of each job is that it computes
    late = np.bincount(state, np.tile(over, len(jobs)), first[-1])
    times = []
    for i, job in enumerate(jobs):
        of_phases = late[first[i] + 1 : first[i + 1]] * job.period  # each by itself: none hides in another's time
        lost = _loss(job, of_phases.tolist())
        if full > 0:
            lost = max(lost, min(job.period * full, _loss_at(job, float(links.part[i]) * len(jobs))))
        times.append(job.period + lost)
    return tuple(times)


def mean_ratio(times: NDArray[np.float64], usual: NDArray[np.float64]) -> float:
    """Mean over the jobs of iteration times over others, s: of those alone the slowdown, of periods the stretch."""
    return float(np.mean(times / usual)) if len(times) else 1.0
