"""Estimates of iteration times of jobs that share links, without a simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import expected_work
from commsim.training.sharing.shared_links import fair_times
from commsim.training.sharing.shared_run import MEASURED

from .link_classes import LinkClass, Met, TightLinks
from .scores import Scores
from .starts.meeting_kernel import MAX_STATES, meet_at

_REMEMBERED = 100_000  # classes of links, at some start times
_HELD = 1e-3  # jobs whose slow-downs differ by less stay in their positions for a thousand iterations


def estimate(classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimate the iteration time of each job when the jobs start at given times.

    Jobs whose links never have more demand than capacity take what they take alone. Few jobs that contend are
    simulated on these links only (:attr:`.ScoreSettings.simulated`). Of more, what a job sends while a link is asked
    for d times its capacity takes d times as long. The job is delayed by what computation beside each phase does not
    hide, summed over an iteration on its worst link; by no less than where all of a link's jobs are slowed down until
    their bytes fit, unless a fair share of it is enough. If all jobs that share links are slowed down by the same
    factor, or none is, they keep their start times. Otherwise their iterations drift past each other, and the delay is
    the mean over all positions that they can have. Left out are delays on its other links at other times, and that a
    delayed phase takes longer to pass the others.

    Parameters
    ----------
    scores : Scores
        Scores of the jobs with the phases that they achieve on these links (:meth:`.Scores.on`).
    shifts : float64[n_jobs], s
        How much later each job starts.

    Returns
    -------
    float64[n_jobs], s
    """
    times = scores.period.copy()
    for tight in scores.tight(classes):
        times[tight.jobs] = _of_component(tight, scores, shifts)
    return times


def _of_component(tight: TightLinks, scores: Scores, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimate the iteration times of jobs that tight links join, float64[n], s."""
    own, times = tight.jobs, scores.period
    is_kept = _keep_positions(times[own], scores.settings.quantum)
    if is_kept:
        found = met(tight, scores, shifts)
        if (found.score == 1.0).all() and all(scores.size(links.jobs).is_common for links in tight.links):
            return np.asarray(times[own])
        times = _slowest(times, tight, found)
    if len(own) * sum(len(scores.jobs[j].phases) for j in own) <= scores.settings.simulated:
        return _simulated(tight.links, own, scores, shifts)
    if not is_kept or np.ptp(times[own] / scores.period[own]) > _HELD:
        times = _slowest(scores.period, tight, met(tight, scores, None))
    return np.asarray(times[own])


def _simulated(
    tight: Sequence[LinkClass], own: Sequence[int], scores: Scores, shifts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Simulate jobs on one link of each class; `scores` remembers the times."""
    key = tuple(map(scores.key, tight)), shifts[own].tobytes()
    if key not in scores.simulated:
        if len(scores.simulated) >= _REMEMBERED:
            scores.simulated.clear()
        place = {job: i for i, job in enumerate(own)}
        parts = np.zeros((len(own), len(tight)))
        for k, links in enumerate(tight):
            parts[[place[job] for job in links.jobs], k] = links.part
        starts = shifts[own] + scores.start[own]  # a job with a start begins its first iteration then, and not before
        scores.simulated[key] = fair_times([scores.started[j] for j in own], parts, starts, MEASURED)
    return scores.simulated[key]


def _keep_positions(period: NDArray[np.float64], quantum: float) -> bool:
    """Whether periods are to each other as the rounded ones, for which start times were sought."""
    rounded = np.maximum(np.rint(period / quantum), 1.0) * quantum
    return bool(np.ptp(period / rounded) <= _HELD)


def _slowest(alone: NDArray[np.float64], tight: TightLinks, found: Met) -> NDArray[np.float64]:
    times = alone.copy()
    np.maximum.at(times, tight.on.member, found.times)
    return times


def met(tight: TightLinks, scores: Scores, shifts: NDArray[np.float64] | None) -> Met:
    """Return how jobs meet on tight links, which remember it.

    Parameters
    ----------
    shifts : float64[n], s, optional
        How much later each of all the jobs starts; without, they are in each position for an equal part of the time.
    """
    key = b"" if shifts is None else shifts[tight.jobs].tobytes()
    if key not in tight.met:
        for other in [*tight.met] if key else ():
            if other:
                del tight.met[other]
        on, times = tight.on, np.empty(len(tight.on.member))
        jobs = scores.met_jobs if shifts is None else scores.met_jobs._replace(shift=np.array(shifts, np.float64))
        with expected_work(len(times) * MAX_STATES, first=True):
            score = meet_at(jobs, on.first, on.member, on.part, shifts is None, times)
        tight.met[key] = Met(score, times)
    return tight.met[key]


def mean_ratio(times: NDArray[np.float64], usual: NDArray[np.float64]) -> float:
    """Mean over the jobs of iteration times over others, s: of those alone the slowdown, of periods the stretch."""
    return float(np.mean(times / usual)) if len(times) else 1.0
