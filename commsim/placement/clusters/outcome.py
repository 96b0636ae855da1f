"""Outcome of a replay: completion times, queueing, use of GPUs, and demand beyond the links' capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from commsim.core.result import OverHashes

from .placement_choices import Placing
from .state import JobState

_FILLED = 0.9  # part of the load that is used at least where nothing is remarked


@dataclass(frozen=True, slots=True)
class Stay:
    """Job `job` of the trace had GPUs `gpus` from `start` to `end`, in seconds."""

    job: int
    start: float
    end: float
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """One job. Times are seconds since the trace began; `slowdown` is by others' traffic while it ran, on average.

    `rho` is its finish-time fairness (Themis): completion time over that on an equal share of the cluster, with as many
    jobs in it as there were on average while the job was.
    """

    job: str
    gpus: int
    submit_s: float
    start_s: float
    finish_s: float
    jct_s: float
    queued_s: float
    ideal_s: float
    slowdown: float
    starts: int
    iterations: float
    deadline_met: bool | None
    rho: float


@dataclass(frozen=True, slots=True)
class ClusterReplay:
    """One replay.

    Parameters
    ----------
    policy : str
        Name of the policy.
    placing : str
        How jobs got their GPUs, one of :data:`commsim.placement.clusters.allocation.PLACINGS`.
    n_gpus : int
        Number of GPUs of the cluster, without those that inference lends.
    jobs : tuple of JobOutcome
        Jobs in the order of the trace.
    stays : tuple of Stay
        Stays of jobs on GPUs.
    use : tuple of (float, int)
        Times, and the number of GPUs that had a job from then on.
    link_excess : float
        Bytes that jobs wanted to send at instants when the link was full already, over all that they wanted to send.
    iteration_times : tuple of (float, float)
        Ascending times of an iteration in seconds, to 0.1 ms, and how many iterations of all jobs took that long.
    shifts : int
        How often CASSINI moved a running job in time.
    shift_delay : float, s
        Time that these jobs waited in all.
    names_packed : bool
        Whether the label says that jobs were packed, as beside other ways to place them.
    hashes : OverHashes or None
        Mean completion times of the fastest and the slowest hash of routes, where this is the median of several.
    """

    policy: str
    placing: Placing
    n_gpus: int
    jobs: tuple[JobOutcome, ...]
    stays: tuple[Stay, ...]
    use: tuple[tuple[float, int], ...]
    link_excess: float
    iteration_times: tuple[tuple[float, float], ...]
    shifts: int = 0
    shift_delay: float = 0.0
    names_packed: bool = False
    hashes: OverHashes | None = None

    @property
    def jct_mean(self) -> float:
        """Mean completion time, s."""
        return float(np.mean([job.jct_s for job in self.jobs]))

    @property
    def label(self) -> str:
        """Name of the policy, and how jobs were placed; packed only beside others."""
        return self.policy + ("" if self.placing == "packed" and not self.names_packed else f"+{self.placing}")

    def iteration_time(self, share: float | None = None) -> float:
        """Return the mean time of all iterations in seconds, or that within which `share` of them ended."""
        times, counts = np.array(self.iteration_times).T
        if share is None:
            return float((times * counts).sum() / counts.sum())
        reached = np.cumsum(counts) >= share * counts.sum() * (1 - 1e-12)
        return float(times[np.argmax(reached)])

    def times_faster(self, other: ClusterReplay) -> tuple[float, float]:
        """Return by which factor iterations are faster than those of another replay: in the mean, and at p99."""
        mean, tail = (other.iteration_time(share) / self.iteration_time(share) for share in (None, 0.99))
        return mean, tail

    @property
    def makespan(self) -> float:
        """Seconds from the first submission to the last finish."""
        return max(job.finish_s for job in self.jobs) - min(job.submit_s for job in self.jobs)

    def row(self) -> dict[str, Any]:
        """Everything in a few numbers; the utilisation exceeds 1 where enough GPUs were borrowed from inference."""
        jct = np.array([job.jct_s for job in self.jobs])
        queued = np.array([job.queued_s for job in self.jobs])
        slow = np.array([job.slowdown for job in self.jobs])
        rho = np.array([job.rho for job in self.jobs])
        met = [job.deadline_met for job in self.jobs if job.deadline_met is not None]
        used = sum(u * (b - a) for (a, u), (b, _) in zip(self.use, self.use[1:], strict=False))
        return {
            "policy": self.policy,
            "cassini": self.placing == "cassini",
            "placing": self.placing,
            "jobs": len(self.jobs),
            "jct_mean_s": self.jct_mean,
            **({} if self.hashes is None else self.hashes.row()),
            "jct_p50_s": float(np.percentile(jct, 50)),
            "jct_p99_s": float(np.percentile(jct, 99)),
            "queued_mean_s": float(queued.mean()),
            "queued_p99_s": float(np.percentile(queued, 99)),
            "makespan_s": self.makespan,
            "utilisation": used / (self.n_gpus * self.makespan),
            "rho_mean": float(rho.mean()),
            "rho_p50": float(np.percentile(rho, 50)),
            "rho_p99": float(np.percentile(rho, 99)),
            "slowdown_mean": float(slow.mean()),
            "slowdown_p99": float(np.percentile(slow, 99)),
            "iteration_mean_s": self.iteration_time(),
            "iteration_p99_s": self.iteration_time(0.99),
            "link_excess": self.link_excess,
            "shifts": self.shifts,
            "shift_delay_s": self.shift_delay,
            "starts": sum(job.starts for job in self.jobs),
            "deadlines_met": sum(met) / len(met) if met else None,
        }


def unfilled(outcomes: Sequence[ClusterReplay]) -> list[str]:
    """Say why fewer GPUs are used than the load of the trace suggests: it fills up, jobs wait, or its last jobs end.

    Returns
    -------
    list of str
        One line, for the first outcome whose use is more than a tenth below the load (at most 1).
    """
    for outcome in outcomes:
        first, last = min(job.submit_s for job in outcome.jobs), max(job.submit_s for job in outcome.jobs)
        used, span = outcome.row()["utilisation"], last - first
        if not span:
            continue
        load = sum(job.gpus * job.ideal_s for job in outcome.jobs) / (outcome.n_gpus * span)
        if used >= _FILLED * min(load, 1.0):
            continue
        steps = zip(outcome.use, outcome.use[1:], strict=False)
        early = sum(n * (min(end, last) - at) for (at, n), (end, _) in steps if at < last) / (outcome.n_gpus * span)
        why = []
        if early < _FILLED * min(load, 1.0):
            waited = sum(job.queued_s for job in outcome.jobs) > (1 - _FILLED) * sum(
                job.ideal_s for job in outcome.jobs
            )
            why.append("jobs wait until enough GPUs are free at once" if waited else "the cluster still fills up")
        if used < _FILLED * early:
            why.append("then only the last jobs run, which is a smaller fraction of a longer trace")
        above = " (above 1: its jobs take more GPU time than there is until the last one arrives)" if load > 1 else ""
        return [
            f"gpus_used is {used:.0%} ({outcome.label}), the load of the trace {load:.2f}{above}: {early:.0%} are used "
            f"while jobs arrive, for {span / 3600:.1f} of {outcome.makespan / 3600:.1f} h; {'; '.join(why)}"
        ]
    return []


def job_rows(outcomes: Sequence[ClusterReplay]) -> list[dict[str, Any]]:
    """Return one row per policy and job."""
    columns = JobOutcome.__slots__
    return [
        {"policy": outcome.label, **{column: getattr(job, column) for column in columns}}
        for outcome in outcomes
        for job in outcome.jobs
    ]


def job_outcomes(states: Sequence[JobState], n_gpus: int) -> tuple[JobOutcome, ...]:
    """Sum the jobs up once all have finished, in a cluster of so many GPUs."""
    events = [(s.job.submit, s.job.n_gpus) for s in states] + [(s.finish or 0.0, -s.job.n_gpus) for s in states]
    at, change = np.array(sorted(events)).T
    # GPU seconds that jobs have asked for until each event, those asked for and not finished in between.
    asked = np.concatenate(([0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(at))))
    outcomes = []
    for state in states:
        until, since = (float(np.interp(t, at, asked)) for t in (state.finish or 0.0, state.job.submit))
        life = (state.finish or 0.0) - state.job.submit
        demand = (until - since) / (life * n_gpus) if life > 0 else 1.0
        outcomes.append(_job(state, life / (state.ideal * max(1.0, demand)) if state.ideal else 1.0))
    return tuple(outcomes)


def _job(state: JobState, rho: float) -> JobOutcome:
    finish, start, job = state.finish or 0.0, state.first_start or 0.0, state.job
    return JobOutcome(
        job.name,
        job.n_gpus,
        job.submit,
        start,
        finish,
        finish - job.submit,
        max(finish - job.submit - state.run_time, 0.0),
        state.ideal,
        state.iterating / state.stretched if state.stretched else 1.0,
        state.starts,
        state.done,
        None if job.deadline is None else finish <= job.deadline,
        rho,
    )
