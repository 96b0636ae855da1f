"""How fast jobs progress on which GPUs, when nobody is in their way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from commsim.core.errors import InputError
from commsim.workload.sharing.periodic import PeriodicJob

from .machines import Machines
from .models import Model, profile
from .trace_job import TraceJob

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
