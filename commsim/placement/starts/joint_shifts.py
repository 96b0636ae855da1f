"""Start times for jobs whose links close a loop, and so cannot all have what they want: the least excess together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.placement.link_classes import LinkClass
from commsim.placement.scores import Scores
from commsim.placement.starts.link_scores import search_together
from commsim.placement.starts.phase_edges import meet

# Jobs times links that are moved between angles, too; of more, time is better spent on other things: of 42 drawn
# clusters with loops the weighted score rose from 0.8304 to 0.8309.
_FEW = 50


def joint_shifts(classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn one job of a component after the other until the mean score of its links gets no better.

    Jobs with a fixed start stay where they are.

    Parameters
    ----------
    classes : sequence of LinkClass
        Links of a component with a loop; several alike count as several.
    scores : Scores
        Scores with the circles.
    shifts : float64[n_jobs], s
        Shifts of all jobs, as algorithm 1 leaves them: the start of the search.

    Returns
    -------
    float64[n_jobs], s
        Changed for the component's jobs only.
    """
    jobs = sorted({job for links in classes for job in links.jobs}, key=lambda job: (not scores.is_held[job], job))
    circle = scores.circle(tuple(jobs))
    place = {job: i for i, job in enumerate(jobs)}
    demand = np.zeros((len(classes), len(jobs)))
    for row, links in zip(demand, classes, strict=True):
        row[[place[job] for job in links.jobs]] = links.part
    weight = np.array([len(links.links) for links in classes])
    stays = scores.is_held[jobs] | (np.arange(len(jobs)) == 0)
    walked = np.rint((shifts[jobs] - shifts[jobs[0]]) % circle.period / circle.step).astype(np.int64)
    starts = (walked % circle.n_positions)[None]
    positions = np.where(scores.is_held[jobs], 1, circle.distinct_positions(order=False))
    rotations = search_together(circle, demand, weight, starts, positions)
    joint = shifts.copy()
    joint[jobs] = circle.seconds(rotations)
    if demand.size <= _FEW:
        joint[jobs] = meet(circle, demand, weight, joint[jobs], stays)
    return joint
