"""State of a simulated cluster: jobs, their progress, contention for CPUs, memory and shared GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.units import count_text
from commsim.placement.strategies.muri import group_time
from commsim.training.sharing.periodic import PeriodicJob

from .machines import Machines
from .models import TrainedModel, profile
from .trace_job import TraceJob

# Hosts of a job, in the order of its ranks, each with a number of GPUs.
Spread = tuple[tuple[int, int], ...]
UNKNOWN = TrainedModel("", 0.0, 1.0)


@dataclass(slots=True, eq=False)
class Clock:
    """Time of a replay, and what its jobs have counted.

    Parameters
    ----------
    now : float, s
        Time since the start of the trace.
    iterations : dict of float to float
        Number of iterations of all jobs that took so many seconds.
    """

    now: float = 0.0
    iterations: dict[float, float] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class JobState:
    """One job that has come.

    What it has done grows while the clock goes on. :meth:`count` adds it up; whatever changes its GPUs, rate, restart
    or slowdown calls that before.

    Parameters
    ----------
    index : int
        Index in the trace.
    job : TraceJob
        What it asked for.
    total, counted : float
        Iterations that it has to do, and had done at `since`.
    ideal : float, s
        Time that it would take without other jobs.
    clock : Clock
        The replay's.
    since : float, s
        Time up to which all is counted.
    end : float, s
        Time at which it ends if nothing changes.
    service : float, GPU s
        Service received until `since`.
    held : float, s
        Time in which it held GPUs until `since`.
    spread, gpus : Spread, tuple of int
        Hosts and GPUs that it has now; empty while it waits.
    beside : JobState, optional
        The job whose GPUs it shares.
    resume : float, s
        Time at which its restart is over.
    rate, stretch, slowdown : float
        Progress per second, how many times longer than its period an iteration takes, and how many times longer than
        without others' traffic.
    alone_rate, period : float
        Progress per second on the GPUs that it has, without contention, and its iteration time there, s.
    took : float, s
        Iteration time with contention, to 0.1 ms, as it is counted.
    shift : float, s
        Time shift of its iterations.
    kept : Grant, optional
        Grant of what it has, while it has that.
    """

    index: int
    job: TraceJob
    total: float
    ideal: float
    clock: Clock = field(default_factory=Clock)
    since: float = 0.0
    end: float = math.inf
    counted: float = 0.0
    service: float = 0.0
    held: float = 0.0
    first_start: float | None = None
    finish: float | None = None
    spread: Spread = ()
    gpus: tuple[int, ...] = ()
    gpu_type: str = ""
    beside: JobState | None = None
    resume: float = 0.0
    rate: float = 0.0
    stretch: float = 1.0
    slowdown: float = 1.0
    alone_rate: float = 0.0
    period: float = 0.0
    took: float = 0.0
    shift: float = 0.0
    starts: int = 0
    iterating: float = field(default=0.0)
    stretched: float = field(default=0.0)
    kept: Any = None

    @property
    def done(self) -> float:
        """Iterations that it has done."""
        return self.counted + self.rate * self._iterated() if self.gpus else self.counted

    @property
    def attained(self) -> float:
        """Service received, GPU s."""
        return self.service + len(self.gpus) * (self.clock.now - self.since) if self.gpus else self.service

    @property
    def run_time(self) -> float:
        """Seconds in which it held GPUs."""
        return self.held + (self.clock.now - self.since if self.gpus else 0.0)

    def _iterated(self) -> float:
        """Seconds in which it iterated since all was counted."""
        return max(0.0, self.clock.now - max(self.since, self.resume))

    def count(self) -> None:
        """Add up what it has done until now."""
        now = self.clock.now
        if self.gpus and now > self.since:
            iterated, iterations = self._iterated(), self.clock.iterations
            self.counted += self.rate * iterated
            self.service += len(self.gpus) * (now - self.since)
            self.held += now - self.since
            self.iterating += iterated
            self.stretched += iterated / self.slowdown
            if iterated:
                iterations[self.took] = iterations.get(self.took, 0.0) + iterated / self.took
        self.since = now

    @property
    def running(self) -> bool:
        """Whether it holds GPUs."""
        return bool(self.gpus)

    @property
    def n_gpus(self) -> int:
        """Number of GPUs that it holds."""
        return len(self.gpus)

    @property
    def left(self) -> float:
        """Share of its work that is still to do."""
        return max(1.0 - self.done / self.total, 0.0)


class ClusterJobs:
    """Profiles and progress of the jobs of one trace on one cluster.

    Progress counts in iterations on as many GPUs as the job asks for. An iteration on g GPUs is worth
    ``g/g0 * (noise + g0)/(noise + g)`` of these: more samples, each worth less (Pollux).

    Raises
    ------
    InputError
        If a job names an unknown model, or wants more GPUs than the cluster has.

    References
    ----------
    Qiao et al., "Pollux: co-adaptive cluster scheduling for goodput-optimized deep learning", OSDI 2021
    """

    def __init__(self, jobs: Sequence[TraceJob], machines: Machines, models: Mapping[str, TrainedModel]) -> None:
        self._machines = machines
        self._port, self._nics = float(machines.port.min()), int(machines.nics.min())
        self._known: dict[tuple[object, ...], PeriodicJob] = {}
        self._rates: dict[tuple[object, ...], NDArray[np.float64]] = {}
        self.models: list[TrainedModel] = []
        lasting = np.where(machines.inference, 0, machines.gpus)
        on_each = np.bincount(machines.whole, weights=lasting)
        for job in jobs:
            if job.n_gpus > machines.n_gpus:
                raise InputError(f"{job.name} wants {job.n_gpus} GPUs, but the cluster has {machines.n_gpus}")
            if (k := job.gpus_per_host) is not None and (n := int((on_each >= k).sum())) < job.n_gpus // k:
                wants = f"{k} GPUs on each of {job.n_gpus // k} hosts"
                raise InputError(f"{job.name} wants {wants}, but {count_text(n, 'host')} of the cluster have so many")
            if job.model and job.model not in models:
                raise InputError(f"{job.name} trains {job.model!r}, which is no model; known: {', '.join(models)}")
            self.models.append(models[job.model] if job.model else UNKNOWN)
        self.jobs = tuple(jobs)

    def packed_hosts(self, gpus: int, i: int) -> int:
        """Hosts that so many GPUs of job `i` need at least."""
        return math.ceil(gpus / min(self._machines.usual_gpus, self.jobs[i].gpus_per_host or gpus))

    def profile(self, i: int, gpus: int, n_hosts: int, gpu_type: str = "") -> PeriodicJob:
        """Periodic traffic of job `i`; what the trace gives as phases holds however the job is placed."""
        job, model = self.jobs[i], self.models[i]
        spread = n_hosts > 1
        key = (i if job.period else model.name, gpus, spread, gpu_type)
        if key not in self._known:
            if job.period:
                self._known[key] = PeriodicJob(job.name, gpus, job.period, job.phases if spread else ())
            else:
                self._known[key] = profile(model, model.name, gpus, n_hosts, self._port, gpu_type, self._nics)
        return self._known[key]

    def rate(self, i: int, gpus: int, n_hosts: int = 0, gpu_type: str = "") -> float:
        """Progress of job `i` per second without contention; on packed hosts unless their number is given."""
        job, noise = self.jobs[i], self.models[i].noise
        worth = gpus / job.n_gpus * (noise + job.n_gpus) / (noise + gpus)
        return worth / self.profile(i, gpus, n_hosts or self.packed_hosts(gpus, i), gpu_type).period

    def rates(self, i: int, most: int) -> NDArray[np.float64]:
        """Return the progress of job `i` per second with 1, 2, ... `most` GPUs, as :meth:`rate`."""
        job = self.jobs[i]
        key = (i if job.period else self.models[i].name, job.n_gpus, job.gpus_per_host, most)
        if key not in self._rates:
            self._rates[key] = np.array([self.rate(i, gpus) for gpus in range(1, most + 1)])
        return self._rates[key]

    def total(self, i: int) -> float:
        """Count the iterations that job `i` has to do."""
        job = self.jobs[i]
        return job.iterations if job.iterations is not None else (job.duration or 0.0) * self.rate(i, job.n_gpus)

    def ideal(self, i: int) -> float:
        """Seconds that job `i` takes without other jobs on the GPUs that it asks for."""
        return self.total(i) / self.rate(i, self.jobs[i].n_gpus)


# Of one host: a job, its share of the GPUs, the CPUs and the memory that its workers there need.
Claims = list[tuple[JobState, float, float, float]]


def needs(work: ClusterJobs, state: JobState, gpus: int) -> tuple[float, float]:
    """CPUs and bytes of memory that `gpus` workers of a job need to run at full speed."""
    cpu = state.job.cpu / state.job.n_gpus or work.models[state.index].cpu
    return cpu * gpus, state.job.memory / state.job.n_gpus * gpus


def room(machines: Machines, work: ClusterJobs, states: Iterable[JobState]) -> NDArray[np.float64]:
    """Share of each host's CPUs or memory, whichever is scarcer, that running jobs have not claimed."""
    if not machines.is_limited:
        return np.ones(len(machines.names))
    claimed = np.zeros((2, len(machines.names)))
    for state in states:
        for host, n in state.spread:
            claimed[:, host] += needs(work, state, n)
    free: NDArray[np.float64] = np.minimum(1 - claimed[0] / machines.cpu, 1 - claimed[1] / machines.memory)
    return free


def side_by_side(work: ClusterJobs, a: JobState, b: JobState, n_hosts: int = 0) -> tuple[float, float]:
    """Part of its full speed that each of two jobs has on the same GPUs.

    Where the stages of both are known, they use storage, GPU and network alternately, and each makes an iteration in
    the time that Muri's formula gives. Otherwise they get the GPU's time in proportion to what they use: full speed as
    long as the sum of their shares is at most 1, and never less than a time slice of one half would give.

    Parameters
    ----------
    n_hosts : int
        Number of hosts that they are spread over; by default as few as can be.
    """
    first, second = work.models[a.index], work.models[b.index]
    if not (first.stages and second.stages):
        part = 1 / max(1.0, first.busy + second.busy)
        return part, part
    together = group_time([first.stages, second.stages])
    gpus = a.job.n_gpus
    alone = (work.profile(job.index, gpus, n_hosts or work.packed_hosts(gpus, job.index)).period for job in (a, b))
    part_of_a, part_of_b = (min(1.0, period / together) for period in alone)
    return part_of_a, part_of_b


def speeds(machines: Machines, work: ClusterJobs, states: Iterable[JobState], tuned: bool) -> dict[int, float]:
    """Part of its full speed at which each running job computes, by its index.

    Beside another job, both get what :func:`side_by_side` says. A job with fewer CPUs or less memory
    than it needs slows down in proportion (assumed).

    Parameters
    ----------
    tuned : bool
        Whether jobs that need less than their part of a host's CPUs and memory leave the rest to those that need more;
        otherwise each has its part, which follows from its GPUs.
    """
    part_of_speed: dict[int, float] = {}
    hosts: dict[int, Claims] = {}
    is_limited = machines.is_limited
    for state in states:
        part_of_speed[state.index] = 1.0
        if state.beside is not None:
            part_of_speed[state.index] = side_by_side(work, state, state.beside, len(state.spread))[0]
        if not is_limited:  # as of most traces: nothing to share out
            continue
        for host, n in state.spread if any(needs(work, state, 1)) else ():
            part = n / float(machines.gpus[host]) / (2 if state.beside is not None else 1)
            hosts.setdefault(host, []).append((state, part, *needs(work, state, n)))
    for host, claims in hosts.items():
        for limit, column in ((float(machines.cpu[host]), 2), (float(machines.memory[host]), 3)):
            if np.isfinite(limit):
                _slow_down(part_of_speed, claims, column, limit, tuned)
    return part_of_speed


def _slow_down(found: dict[int, float], claims: Claims, column: int, limit: float, tuned: bool) -> None:
    wanted = np.array([claim[column] for claim in claims], np.float64)
    limits = np.array([claim[1] for claim in claims]) * limit
    got = np.minimum(wanted, limits)
    if tuned:
        got += _fair(wanted - got, limit - float(got.sum()))
    for claim, want, have in zip(claims, wanted, got, strict=True):
        if want > have:
            found[claim[0].index] = min(found[claim[0].index], float(have / want))


def _fair(lacking: NDArray[np.float64], left: float) -> NDArray[np.float64]:
    """Share out what is left, equally among those that lack something, to each at most what it lacks."""
    got = np.zeros_like(lacking)
    for i, j in enumerate(np.argsort(lacking, kind="stable")):
        got[j] = min(float(lacking[j]), max(left, 0.0) / (len(lacking) - i))
        left -= got[j]
    return got
