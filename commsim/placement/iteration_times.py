"""Estimates of iteration times of jobs that share links, without a simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import expected_work
from commsim.training.sharing.shared_links import fair_times
from commsim.training.sharing.shared_run import MEASURED

from .link_classes import LinkClass, Met, Scores
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
    for own, tight in scores.tight(classes):
        times[own] = _of_component(tight, own, scores, shifts)
    return times


def _of_component(
    tight: Sequence[LinkClass], own: Sequence[int], scores: Scores, shifts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Estimate the iteration times of jobs that tight links join, float64[n], s."""
    alone = scores.period
    is_kept = _keep_positions(alone[own], scores.settings.quantum)
    found = [(links, met(links, scores, shifts)) for links in tight] if is_kept else []
    if is_kept and all(one.score == 1.0 and scores.circle(links.jobs).is_common for links, one in found):
        return np.asarray(alone[own])
    if len(own) * sum(len(scores.jobs[j].phases) for j in own) <= scores.settings.simulated:
        return _simulated(tight, own, scores, shifts)
    times = _slowest(alone, [(links, one.times) for links, one in found])[own]
    if not is_kept or np.ptp(times / alone[own]) > _HELD:
        times = _slowest(alone, [(links, met(links, scores, None).times) for links in tight])[own]
    return times


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
    _, (ids, part), member, _ = scores.known(links)
    key = ids, part, b"" if shifts is None else shifts[member].tobytes()
    if key not in scores.met:
        if len(scores.met) >= _REMEMBERED:
            scores.met.clear()
        times = np.empty(len(member))
        jobs = scores.met_jobs if shifts is None else scores.met_jobs._replace(shift=np.array(shifts, np.float64))
        with expected_work(len(member) * MAX_STATES, first=True):
            score = meet_at(jobs, member, np.array(links.part), shifts is None, times)
        scores.met[key] = Met(score, tuple(times.tolist()))
    return scores.met[key]


def mean_ratio(times: NDArray[np.float64], usual: NDArray[np.float64]) -> float:
    """Mean over the jobs of iteration times over others, s: of those alone the slowdown, of periods the stretch."""
    return float(np.mean(times / usual)) if len(times) else 1.0
