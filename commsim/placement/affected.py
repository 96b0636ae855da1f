"""Running jobs that faults of the network affect: those that are cut off, and what the others lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from commsim.core.errors import InputError, RoutingError
from commsim.core.network_queries import link_names
from commsim.workload.sharing.periodic import PeriodicJob

from .candidate import counted_names
from .cluster import Cluster
from .evaluation import evaluate
from .link_classes import Settings
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
    for job in placed:
        try:
            link_uses(after, [job.placement or ()], settings.seed)
        except RoutingError:
            raise InputError(
                f"job {job.name} on {counted_names(job.placement or ())} is cut off: without its placement it is moved"
            ) from None
    rate = dict(zip(link_names(after.network), after.network.bandwidth.tolist(), strict=True))
    names = link_names(before.network)
    hurt = np.array([rate.get(name, 0.0) for name in names]) < before.network.bandwidth
    use = link_uses(before, [job.placement or () for job in placed], settings.seed)
    crossing = [i for i, row in enumerate(use) if (row[hurt] > 0).any()]
    if not crossing:
        return []
    was = evaluate(before, placed, settings=settings)
    started = [replace(job, start=was.shifts[job.name] % job.period) for job in placed]
    now = evaluate(after, started, settings=settings)
    told = []
    for job in (placed[i] for i in crossing):
        slow = [found.predicted[job.name] / job.period for found in (was, now)]
        told.append(f"{job.name} ({slow[0]:.4f}x before, {slow[1]:.4f}x after)")
    return [f"placed jobs that sent over failed or slower links, with their estimated slowdown: {', '.join(told)}"]
