"""Running jobs that faults of the network affect: those that are cut off, and what the others lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, RoutingError
from commsim.core.network_queries import link_names
from commsim.workload.sharing.periodic import PeriodicJob

from .candidate import Candidate, counted_names
from .cluster import Cluster
from .evaluation import evaluate_placed
from .link_classes import Scores, Settings, link_classes
from .link_use import link_uses


def affected(before: Cluster, after: Cluster, jobs: Sequence[PeriodicJob], settings: Settings) -> list[str]:
    """Name the placed jobs that send over failed or slower links, with what they lose before and after.

    Parameters
    ----------
    before, after : Cluster
        Cluster without and with the faults.
    jobs : sequence of PeriodicJob
        Those that are placed, as they stay; the others are not looked at.
    settings : Settings
        How scores are found; its seed chooses paths.

    Returns
    -------
    list of str
        At most one remark; the slow-downs are estimates.

    Raises
    ------
    InputError
        Naming the job and its hosts, if no path joins them.
    """
    placed = [job for job in jobs if job.placement]
    if not placed:
        return []
    rate = dict(zip(link_names(after.network), after.network.bandwidth.tolist(), strict=True))
    names = link_names(before.network)
    hurt = np.array([rate.get(name, 0.0) for name in names]) < before.network.bandwidth
    routes = [job.placement or () for job in placed]
    use = link_uses(before, routes, settings.seed)
    crossing = [i for i, row in enumerate(use) if (row[hurt] > 0).any()]
    if not crossing:
        return []
    was = _evaluated(before, placed, use, settings)
    started = [replace(job, start=was.shifts[job.name] % job.period) for job in placed]
    try:
        use = link_uses(after, routes, settings.seed)
    except RoutingError:
        raise _cut_off(after, [placed[i] for i in crossing], settings) from None
    now = _evaluated(after, started, use, settings)
    told = []
    for job in (placed[i] for i in crossing):
        slow = [found.predicted[job.name] / job.period for found in (was, now)]
        told.append(f"{job.name} ({slow[0]:.4f}x before, {slow[1]:.4f}x after)")
    return [f"placed jobs that sent over failed or slower links, with their estimated slowdown: {', '.join(told)}"]


def _evaluated(
    cluster: Cluster, jobs: Sequence[PeriodicJob], use: NDArray[np.float64], settings: Settings
) -> Candidate:
    scores = Scores(jobs, settings)
    classes = link_classes(cluster.network, np.where(scores.peak[:, None] > 0, use, 0.0))
    return evaluate_placed(cluster, "given", jobs, classes, scores, "merged")


def _cut_off(cluster: Cluster, jobs: Sequence[PeriodicJob], settings: Settings) -> InputError:
    """Name the first job that no path joins."""
    for job in jobs:
        try:
            link_uses(cluster, [job.placement or ()], settings.seed)
        except RoutingError:
            break
    named = f"job {job.name} on {counted_names(job.placement or ())}"
    return InputError(f"{named} is cut off: without its placement it is moved")
