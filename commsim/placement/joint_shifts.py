"""Start times for jobs whose links close a loop, and so cannot all have what they want: the least excess together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .affinity import Component
from .link_classes import LinkClass, Scores
from .score import search_together


def joint_shifts(
    part: Component, classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Turn one job of a component after the other until the mean score of its links gets no better.

    Parameters
    ----------
    part : Component
        Component with a loop.
    classes : sequence of LinkClass
        Its links; several alike count as several.
    scores : Scores
        Scores with the circles.
    shifts : float64[n_jobs], s
        Shifts of all jobs, as algorithm 1 leaves them: the start of the search.

    Returns
    -------
    float64[n_jobs], s
        Changed for the component's jobs only.
    """
    circle = scores.circle(part.jobs)
    place = {job: i for i, job in enumerate(part.jobs)}
    demand = np.zeros((len(classes), len(part.jobs)))
    for row, links in zip(demand, classes, strict=True):
        row[[place[job] for job in links.jobs]] = links.part
    weight = np.array([len(links.links) for links in classes])
    jobs = list(part.jobs)
    walked = np.rint((shifts[jobs] - shifts[jobs[0]]) % circle.period / circle.step).astype(np.int64)
    starts = (walked % circle.n_positions)[None]
    rotations = search_together(circle, demand, weight, starts)
    joint = shifts.copy()
    joint[jobs] = circle.seconds(rotations)
    return joint
