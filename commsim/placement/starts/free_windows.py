"""Free windows: between which times jobs can start, and the middle of them, where a job that is late harms least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.placement.link_classes import LinkClass
from commsim.placement.scores import Scores
from commsim.placement.starts.affinity import components

from .windows import in_the_middle

# Jobs of a component times its links and edges of phases, of which windows are sought: some 0.3 s.
MOST_WORK = 3_000_000


def centred(
    classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64]
) -> tuple[NDArray[np.float64], dict[int, tuple[float, float]]]:
    """Move each job to the middle of the times at which the excess of its links is as little as it is now.

    Parameters
    ----------
    classes : sequence of LinkClass
        Links whose excess depends on start times (:func:`commsim.placement.evaluation.contended`).
    scores : Scores
        Scores with the circles.
    shifts : float64[n_jobs], s
        Shifts of all jobs.

    Returns
    -------
    float64[n_jobs], dict of int to (float, float)
        Shifts, s, and by job how much earlier and how much later it can start while the others start as they do.
        Jobs with a fixed start, and the first of a component without one, stay. A job has no window where iteration
        times have no common multiple, so that no start time holds, or where it takes more than ``MOST_WORK``.
    """
    return _moved(classes, scores, shifts, may_move=True)


def windows_at(
    classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64]
) -> dict[int, tuple[float, float]]:
    """Return the windows of :func:`centred` from the start times as they are."""
    return _moved(classes, scores, shifts, may_move=False)[1]


def _moved(
    classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64], *, may_move: bool
) -> tuple[NDArray[np.float64], dict[int, tuple[float, float]]]:
    shifts, windows = shifts.copy(), dict[int, tuple[float, float]]()
    for component in components([links.jobs for links in classes]):
        jobs = sorted(component.jobs, key=lambda job: (not scores.is_held[job], job))
        rows = [classes[i] for i in component.links]
        circle = scores.circle(tuple(jobs))
        n_edges = float(np.diff(circle.first_phase) @ (circle.perimeter / circle.period))
        if not circle.is_common or len(jobs) * len(rows) * n_edges > MOST_WORK:
            continue
        part, weight = _matrix(rows, jobs)
        free = [i for i, job in enumerate(jobs) if i and may_move and not scores.is_held[job]]
        shifts[jobs], found = in_the_middle(circle, part, weight, shifts[jobs], free)
        windows |= dict(zip(jobs, found, strict=True))
    return shifts, windows


def _matrix(rows: Sequence[LinkClass], jobs: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the parts of the jobs on each class, float64[n_classes, n_jobs], and the number of links of each."""
    place = {job: i for i, job in enumerate(jobs)}
    part = np.zeros((len(rows), len(jobs)))
    for row, links in zip(part, rows, strict=True):
        row[[place[job] for job in links.jobs]] = links.part
    return part, np.array([len(links.links) for links in rows])
