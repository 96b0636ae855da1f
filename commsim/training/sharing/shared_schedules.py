"""Several collectives on one network at once, on the flow engine: slow-downs, and contention by link.

The jobs here are real schedules with sizes, each run once from its starting time; :mod:`.shared_links` knows jobs as
rates that repeat. Where the two should agree, tests say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob, number_of
from commsim.engine.flow_plan import FlowPlan, plan_flows


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledJob:
    """One collective among others.

    Parameters
    ----------
    name : str
        Name of the job.
    schedule, placement : Schedule, Placement
        What is sent, and where the participants sit.
    size : float, bytes
        Size of the operation.
    start : float, s
        Time at which all participants enter.
    weight, priority
        Share of a full link, and priority (0 is first), see :class:`commsim.engine.flow_job.FlowJob`.
    """

    name: str
    schedule: Schedule
    placement: Placement
    size: float
    start: float = 0.0
    weight: float = 1.0
    priority: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SharedSchedules:
    """How it went.

    Parameters
    ----------
    network : Network
        Network that the jobs share.
    jobs : tuple of ScheduledJob
        What ran.
    together, alone : tuple of Result
        Result of each job among the others, and on the same paths without them.
    shared_time : float64[n_links], s
        How long messages of two jobs or more were on each link at once.
    """

    network: Network
    jobs: tuple[ScheduledJob, ...]
    together: tuple[Result, ...]
    alone: tuple[Result, ...]
    shared_time: NDArray[np.float64]

    @property
    def slowdowns(self) -> NDArray[np.float64]:
        """Time among the others over time without them, float64[n_jobs]; 1 for a job that needs no time."""
        times = [(a.time, b.time) for a, b in zip(self.together, self.alone, strict=True)]
        return np.array([together / alone if alone else 1.0 for together, alone in times])

    def rows(self) -> list[dict[str, Any]]:
        """One JSON row per job."""
        return [
            {"job": job.name, "start_s": job.start, "alone_s": alone.time, "slowdown": slowdown, **together.row()}
            for job, together, alone, slowdown in zip(
                self.jobs, self.together, self.alone, self.slowdowns.tolist(), strict=True
            )
        ]


def run_jobs(
    network: Network,
    jobs: Sequence[ScheduledJob],
    *,
    routing: str | None = None,
    seed: int = 0,
    framing: Framing | None = None,
) -> SharedSchedules:
    """Run collectives at once, and each without the others.

    Parameters
    ----------
    network : Network
        Network that the jobs share.
    jobs : sequence of ScheduledJob
        Jobs, at least one.
    routing, seed
        Same as in :func:`commsim.routing.routing.find_routes`.
    framing : Framing, optional
        How messages are cut into packets.

    Raises
    ------
    InputError
        Without a job, or if two have the same name, or one does not fit the network.
    """
    names = [job.name for job in jobs]
    if len(set(names)) != len(names):
        raise InputError(f"jobs need different names, got {', '.join(names)}")
    parts = [FlowJob(job.schedule, job.placement, job.weight, job.priority, number=number_of(job.name)) for job in jobs]
    plan = plan_flows(network, parts, routing=routing, seed=seed)
    starts = np.repeat([job.start for job in jobs], [job.schedule.n_participants for job in jobs])
    together = simulate_flows(plan, [job.size for job in jobs], starts=starts, framing=framing, trace=True)
    alone: list[Result] = []
    for job, part in zip(jobs, parts, strict=True):
        single = plan_flows(network, [part], routing=routing, seed=seed)
        alone += simulate_flows(single, job.size, starts=job.start, framing=framing)
    return SharedSchedules(network, tuple(jobs), together, tuple(alone), _shared_time(plan, together))


def _shared_time(plan: FlowPlan, results: Sequence[Result]) -> NDArray[np.float64]:
    """Seconds in which messages of at least two jobs are being sent over each link."""
    found = []
    for mine, result in zip(plan.transfers_of, results, strict=True):
        if result.trace is not None:
            first, wire = plan.routes.first, plan.connection_of[mine]
            n = np.diff(first)[wire]
            entry = np.repeat(first[wire] - np.cumsum(n) + n, n) + np.arange(n.sum())
            ends = np.repeat(result.trace.start, n), np.repeat(result.trace.sent, n)
            found.append(_covered(plan.routes.link[entry], *ends))
    link, begin, end = (np.concatenate(rows) for rows in zip(*found, strict=True))
    where, at, n_busy = _sweep(link, begin, end)
    lasted = np.where(n_busy[:-1] >= 2, np.diff(at), 0.0)  # no job is busy between one link and the next
    return np.bincount(where[:-1], lasted, plan.network.n_links).astype(np.float64)


def _covered(
    link: NDArray[np.int32], begin: NDArray[np.float64], end: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """Unite intervals on each link that overlap or touch."""
    where, at, n_busy = _sweep(link, begin, end)
    before = np.append(0, n_busy[:-1])
    opens = (before == 0) & (n_busy > 0)
    return where[opens], at[opens], at[(before > 0) & (n_busy == 0)]


def _sweep(
    link: NDArray[np.int32], begin: NDArray[np.float64], end: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]:
    """Go along each link in time: where, when, and how many intervals are open from then on."""
    at, where = np.concatenate((begin, end)), np.concatenate((link, link))
    step = np.repeat(np.array([1, -1]), len(link))
    order = np.lexsort((-step, at, where))
    return where[order], at[order], np.cumsum(step[order])
