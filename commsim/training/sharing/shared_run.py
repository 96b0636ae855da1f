"""Result of periodic jobs on shared links: iteration times, and contention by link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.value import Value, freeze

from .periodic import PeriodicJob

# Iterations of each job that are simulated unless others are asked for; means are of the second half of them.
MEASURED = 100
# Seconds that these take, for each phase of all jobs times each use of a full link by a job: 5e-6 to 7e-6 were measured
# of 12 to 42 jobs, 1e-5 to 1.5e-5 of 86 on 400 links.
PER_USE = 8e-6
_ARRAYS = (
    "use", "shifts", "iteration_times", "communication_times", "link_bytes", "contended_time", "excess",
    "job_contended_time",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class SharedRun(Value):
    """One run of several jobs.

    Parameters
    ----------
    network : Network
        Network that the jobs share.
    jobs : tuple of PeriodicJob
        What ran.
    use : float64[n_jobs, n_links]
        How many times each job's rate every link carries.
    shifts : float64[n_jobs], s
        Time at which each job started.
    time : float, s
        Time at which the last job had done its iterations; what follows covers the time until then.
    iteration_times, communication_times : float64[n_jobs, n_iterations], s
        Duration of each iteration of each job, and the part of it in which the job communicated.
    link_bytes : float64[n_links], bytes
        What each link carried.
    contended_time : float64[n_links], s
        How long jobs together would have sent more over the link than it can carry.
    excess : float64[n_links], bytes
        How much more: the integral of what they would have sent above the capacity.
    job_contended_time : float64[n_jobs], s
        How long each job sent at less than its own rate.
    n_adjusted : int64[n_jobs]
        How often each job waited to be in time again.
    """

    network: Network
    jobs: tuple[PeriodicJob, ...]
    use: NDArray[np.float64]
    shifts: NDArray[np.float64]
    time: float
    iteration_times: NDArray[np.float64]
    communication_times: NDArray[np.float64]
    link_bytes: NDArray[np.float64]
    contended_time: NDArray[np.float64]
    excess: NDArray[np.float64]
    job_contended_time: NDArray[np.float64]
    n_adjusted: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, freeze(getattr(self, name), np.float64, name=f"shared run: {name}"))
        object.__setattr__(self, "n_adjusted", freeze(self.n_adjusted, np.int64, name="shared run: n_adjusted"))

    @property
    def settled(self) -> NDArray[np.float64]:
        """Iteration times of the second half, float64[n_jobs, n], s: the first half shows how jobs started.

        Means, percentiles and slow-downs are of these, here and in ``place --check``.
        """
        return self.iteration_times[:, self.iteration_times.shape[1] // 2 :]

    @property
    def alone(self) -> NDArray[np.float64]:
        """Iteration and communication time of each job on these links without other jobs, float64[n_jobs, 2], s.

        Longer than in its profile where a link has less capacity than the job's rate asks for.
        """
        per_rate = (self.use / self.network.bandwidth).max(axis=1, initial=0.0)
        times = np.empty((len(self.jobs), 2))
        for j, job in enumerate(self.jobs):
            durations = [phase.duration * max(1.0, phase.rate * per_rate[j]) for phase in job.phases]
            late = [max(d, phase.overlap) - phase.length for d, phase in zip(durations, job.phases, strict=True)]
            times[j] = job.period + sum(late), sum(durations)
        return times

    @property
    def slowdowns(self) -> NDArray[np.float64]:
        """Mean settled iteration time of each job over that without other jobs, float64[n_jobs]."""
        return np.asarray(self.settled.mean(axis=1) / self.alone[:, 0])

    def job_rows(self) -> list[dict[str, Any]]:
        """One JSON row per job."""
        slowdowns, alone = self.slowdowns.tolist(), self.alone.tolist()
        return [
            {
                "job": job.name,
                "gpus": job.n_gpus,
                "shift_s": float(self.shifts[j]),
                "iteration_s": float(times.mean()),
                "iteration_p50_s": float(np.percentile(times, 50)),
                "iteration_p90_s": float(np.percentile(times, 90)),
                "iteration_p99_s": float(np.percentile(times, 99)),
                "alone_s": alone[j][0],
                "slowdown": slowdowns[j],
                "communication_s": float(self.communication_times[j, -len(times) :].mean()),
                "communication_alone_s": alone[j][1],
                "contended_s": float(self.job_contended_time[j]),
                "adjustments": int(self.n_adjusted[j]),
            }
            for (j, job), times in zip(enumerate(self.jobs), self.settled, strict=True)
        ]

    def link_rows(self) -> list[dict[str, Any]]:
        """One JSON row per link that several jobs use, or that was contended; the most contended first."""
        used = self.use > 0
        shown = np.flatnonzero((used.sum(axis=0) > 1) | (self.contended_time > 0))
        order = shown[np.lexsort((shown, -self.excess[shown]))]
        capacity = self.network.bandwidth * self.time
        return [
            {
                "link": self.network.link_name(int(k)),
                "jobs": [job.name for job, mine in zip(self.jobs, used[:, k], strict=True) if mine],
                "bytes": float(self.link_bytes[k]),
                "utilisation": float(self.link_bytes[k] / capacity[k]),
                "contended_s": float(self.contended_time[k]),
                "contended_share": float(self.contended_time[k] / self.time),
                "excess_share": float(self.excess[k] / capacity[k]),
            }
            for k in order
        ]
