"""How fast jobs progress on which GPUs, when nobody is in their way.

What jobs on the same host do to each other: CPUs and memory, and two jobs on one GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.workload.sharing.periodic import PeriodicJob

from .machines import Machines
from .models import Model, profile
from .state import JobState
from .trace_file import TraceJob

UNKNOWN = Model("", 0.0, 1.0)


class Work:
    """Profiles and progress of the jobs of one trace on one cluster.

    Progress counts in iterations on as many GPUs as the job asks for. An iteration on g GPUs is worth
    ``g/g0 * (noise + g0)/(noise + g)`` of these: more samples, of which each is worth less (Pollux).

    Raises
    ------
    InputError
        If a job names an unknown model, or wants more GPUs than the cluster has.

    References
    ----------
    Qiao et al., "Pollux: co-adaptive cluster scheduling for goodput-optimized deep learning", OSDI 2021
    """

    def __init__(self, jobs: Sequence[TraceJob], machines: Machines, models: Mapping[str, Model]) -> None:
        self._machines = machines
        self._port = float(machines.port.min())
        self._known: dict[tuple[object, ...], PeriodicJob] = {}
        self.models: list[Model] = []
        for job in jobs:
            if job.gpus > machines.n_gpus:
                raise InputError(f"{job.name} wants {job.gpus} GPUs, but the cluster has {machines.n_gpus}")
            if job.model and job.model not in models:
                raise InputError(f"{job.name} trains {job.model!r}, which is no model; known: {', '.join(models)}")
            self.models.append(models[job.model] if job.model else UNKNOWN)
        self.jobs = tuple(jobs)

    def packed_hosts(self, gpus: int) -> int:
        """Hosts that so many GPUs need at least."""
        return math.ceil(gpus / self._machines.usual_gpus)

    def profile(self, i: int, gpus: int, n_hosts: int, gpu_type: str = "") -> PeriodicJob:
        """Periodic traffic of job `i`; what the trace gives as phases holds however the job is placed."""
        job, model = self.jobs[i], self.models[i]
        spread = n_hosts > 1
        key = (i if job.period else model.name, gpus, spread, gpu_type)
        if key not in self._known:
            if job.period:
                self._known[key] = PeriodicJob(job.name, gpus, job.period, job.phases if spread else ())
            else:
                self._known[key] = profile(model, model.name, gpus, n_hosts, self._port, gpu_type)
        return self._known[key]

    def rate(self, i: int, gpus: int, n_hosts: int = 0, gpu_type: str = "") -> float:
        """Progress of job `i` per second without contention; on packed hosts unless their number is given."""
        job, noise = self.jobs[i], self.models[i].noise
        worth = gpus / job.gpus * (noise + job.gpus) / (noise + gpus)
        return worth / self.profile(i, gpus, n_hosts or self.packed_hosts(gpus), gpu_type).period

    def total(self, i: int) -> float:
        """Count the iterations that job `i` has to do."""
        job = self.jobs[i]
        return job.iterations if job.iterations is not None else (job.duration or 0.0) * self.rate(i, job.gpus)

    def ideal(self, i: int) -> float:
        """Seconds that job `i` takes alone on the GPUs that it asks for."""
        return self.total(i) / self.rate(i, self.jobs[i].gpus)


def named(one: PeriodicJob, name: str, placement: tuple[str, ...]) -> PeriodicJob:
    """Give a shared profile the name and the placement of a job."""
    return replace(one, name=name, placement=placement)


Claims = list[tuple[JobState, float, float, float]]
"""Of one host: a job, its share of the GPUs, the CPUs and the memory that its workers there need."""


def needs(work: Work, state: JobState, gpus: int) -> tuple[float, float]:
    """CPUs and bytes of memory that `gpus` workers of a job need to run at full speed."""
    cpu = state.job.cpu / state.job.gpus or work.models[state.index].cpu
    return cpu * gpus, state.job.memory / state.job.gpus * gpus


def room(machines: Machines, work: Work, states: Iterable[JobState]) -> NDArray[np.float64]:
    """Share of each host's CPUs or memory, whichever is scarcer, that running jobs have not claimed."""
    claimed = np.zeros((2, len(machines.names)))
    for state in states:
        for host, n in state.spread:
            claimed[:, host] += needs(work, state, n)
    free: NDArray[np.float64] = np.minimum(1 - claimed[0] / machines.cpu, 1 - claimed[1] / machines.memory)
    return free


def speeds(machines: Machines, work: Work, states: Iterable[JobState], tuned: bool) -> dict[int, float]:
    """Part of its full speed at which each running job computes, by its index.

    Beside another job, both get the GPU's time in proportion to what they use: full speed as long as the sum of their
    shares is at most 1, and never less than a time slice of one half would give. A job with fewer CPUs or less memory
    than it needs slows down in proportion (assumed).

    Parameters
    ----------
    tuned : bool
        Whether jobs that need less than their part of a host's CPUs and memory leave the rest to those that need more;
        otherwise each has its part, which follows from its GPUs.
    """
    found: dict[int, float] = {}
    hosts: dict[int, Claims] = {}
    for state in states:
        busy = work.models[state.index].busy
        other = work.models[state.beside.index].busy if state.beside is not None else 0.0
        found[state.index] = 1 / max(1.0, busy + other) if other else 1.0
        for host, n in state.spread if any(needs(work, state, 1)) else ():
            part = n / float(machines.gpus[host]) / (2 if state.beside is not None else 1)
            hosts.setdefault(host, []).append((state, part, *needs(work, state, n)))
    for host, claims in hosts.items():
        for limit, column in ((float(machines.cpu[host]), 2), (float(machines.memory[host]), 3)):
            if np.isfinite(limit):
                _slow_down(found, claims, column, limit, tuned)
    return found


def _slow_down(found: dict[int, float], claims: Claims, column: int, limit: float, tuned: bool) -> None:
    wanted = np.array([claim[column] for claim in claims], np.float64)
    given = np.array([claim[1] for claim in claims]) * limit
    got = np.minimum(wanted, given)
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
