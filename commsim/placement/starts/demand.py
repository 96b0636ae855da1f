"""Demand of a job: from phases that were recorded on one placement to bytes, and to phases on another one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.placement.cluster import Cluster
from commsim.placement.link_use import job_uses
from commsim.training.sharing.periodic import UNBOUNDED, JobPhase, PeriodicJob

from .achieved_phases import achieved


def delivered(jobs: Sequence[PeriodicJob], use: NDArray[np.float64], network: Network) -> tuple[PeriodicJob, ...]:
    """Return jobs of demand with the phases that their paths deliver; the others as they are.

    Parameters
    ----------
    use : float64[n_jobs, n_links]
        How many times its rate each job sends over each link.
    """
    parts = (use / network.bandwidth).max(axis=1, initial=0.0).tolist()
    return tuple(achieved(job, part) if job.is_demand else job for job, part in zip(jobs, parts, strict=True))


def as_demand(
    network: Network, nodes: Sequence[int], phases: Sequence[JobPhase], period: float, link: int | None = None
) -> tuple[tuple[JobPhase, ...], float]:
    """Return recorded phases as bytes, and the iteration time without the time that these need on the network.

    What a phase took beyond its bytes over the fullest link (latencies, overheads) stays in the iteration, so that the
    job takes on the same placement what was recorded.

    Parameters
    ----------
    network : Network
        With the rates of its cables: what software is slower than these stays in the iteration, too.
    nodes : sequence of int
        Node of each rank.
    phases : sequence of JobPhase
        Phases as recorded there.
    period : float, s
        Iteration time there.
    link : int, optional
        Link whose bytes the phases have. Default: they have what each rank sends in a ring over all.
    """
    if not phases:
        return (), period
    names = tuple(network.nodes[node] for node in nodes)
    probe = PeriodicJob("job", len(names), period, (JobPhase(0.0, 1e-9, UNBOUNDED),), names)
    use = job_uses(Cluster(network, _seats(network)), [probe])[0]
    part = float((use / network.bandwidth).max(initial=0.0))
    times = float(use[link]) if link is not None and use[link] > 0 else 1.0
    found, earlier = [], 0.0
    for phase in phases:
        n_bytes = phase.n_bytes / times
        if n_bytes * part > phase.duration:
            n_bytes = phase.duration / part
        found.append(JobPhase(phase.offset - earlier, n_bytes / UNBOUNDED, UNBOUNDED, phase.overlap))
        earlier += max(n_bytes * part, phase.overlap) - phase.overlap
    return tuple(found), period - earlier


def _seats(network: Network) -> NDArray[np.int64]:
    return np.isin(np.arange(network.n_nodes), network.endpoints).astype(np.int64)
