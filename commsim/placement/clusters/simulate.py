"""Replays a trace on a cluster under a policy, event by event: arrivals, ends and rounds.

Between two events every running job progresses at a constant rate: that without other jobs, divided by the slowdown
that traffic of others causes, times what it gets of GPUs and CPUs that it shares. Equal times are one event. The same
input and seed give the same outcome.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from commsim.core.errors import InputError, PhysicsError
from commsim.core.units import count_text

from .allocation import Allocation
from .grants import checked_grants
from .machines import DAY, Machines
from .models import Assumptions
from .outcome import ClusterReplay, Stay, job_outcomes
from .placement_choices import Placing
from .policy import Grant, View, load_policy
from .state import Clock, ClusterJobs, JobState, speeds
from .trace_job import TraceJob

LONGEST = 3650 * DAY


def simulate_cluster(
    machines: Machines,
    jobs: Sequence[TraceJob],
    policy: str,
    *,
    placing: Placing = "packed",
    assumed: Assumptions | None = None,
    seed: int = 0,
    hash_seed: int | None = None,
) -> ClusterReplay:
    """Replay a trace with one hash of routes.

    Parameters
    ----------
    machines : Machines
        Machines of the cluster.
    jobs : sequence of TraceJob
        Jobs in order of submission.
    policy : str
        A name in ``POLICIES``, or a ``FILE.py`` that registers one.
    placing : str
        How jobs get their GPUs, one of :data:`commsim.placement.clusters.placement_choices.PLACINGS`.
    assumed : Assumptions, optional
        Models, and the time that a restart costs.
    seed : int
        Seed of the shifts that are drawn.
    hash_seed : int, optional
        Seed of the routes' hashes. Default: `seed`.

    Raises
    ------
    InputError
        If the policy is unknown, a job is larger than the cluster, or jobs wait that never get GPUs.
    """
    if any(a.submit > b.submit for a, b in itertools.pairwise(jobs)):
        raise InputError("a trace must be in order of submission")
    replay = _Replay(
        machines, jobs, policy, placing, assumed or Assumptions(), (seed, seed if hash_seed is None else hash_seed)
    )
    while replay.step():
        pass
    return replay.outcome()


class _Replay:
    """One run; every step is one event."""

    def __init__(
        self,
        machines: Machines,
        jobs: Sequence[TraceJob],
        policy: str,
        placing: Placing,
        assumed: Assumptions,
        seeds: tuple[int, int],
    ) -> None:
        entry = load_policy(policy)
        self.name, self._placing = entry.name, placing
        if 0 < entry.metadata["interval"] <= assumed.restart:
            interval = entry.metadata["interval"]
            raise InputError(f"a restart must take less than the {interval:g} s of {policy}, got {assumed.restart:g} s")
        self._policy, self._facts = entry.build, entry.metadata
        self._work = ClusterJobs(jobs, machines, assumed.models)
        self._allocation = Allocation(machines, self._work, placing=placing, assumed=assumed, seeds=seeds)
        self._clock, self._machines, self._next = Clock(), machines, 0
        self.states = [
            JobState(i, job, self._work.total(i), self._work.ideal(i), self._clock) for i, job in enumerate(jobs)
        ]
        self._has_limits = machines.is_limited
        self._active: list[JobState] = []
        self._usable = ~machines.inference
        self._began: dict[int, tuple[float, tuple[int, ...]]] = {}
        self._flow = (0.0, 0.0)
        self._granted: list[Grant] = []
        self.stays: list[Stay] = []
        self.use: list[tuple[float, int]] = [(0.0, 0)]
        self.excess = self.asked = 0.0

    def outcome(self) -> ClusterReplay:
        """Sum the run up, once all jobs have finished."""
        jobs = job_outcomes(self.states, self._machines.n_gpus)
        share = self.excess / self.asked if self.asked else 0.0
        times = tuple(sorted(self._clock.iterations.items()))
        return ClusterReplay(
            self.name, self._placing, self._machines.n_gpus, jobs, tuple(self.stays), tuple(self.use), share, times,
            self._allocation.n_shifts, self._allocation.shift_delay,
        )  # fmt: skip

    def step(self) -> bool:
        """Go to the next event and decide; False after the last one."""
        arrival = self.states[self._next].job.submit if self._next < len(self.states) else math.inf
        a_round = self._round()
        then = min(arrival, min([state.end for state in self._allocation.running], default=math.inf), a_round)
        if then == math.inf:
            return False
        if then > LONGEST:
            raise InputError(f"the simulation would last longer than {LONGEST / DAY:.0f} days")
        self.excess += self._flow[0] * (then - self._clock.now)
        self.asked += self._flow[1] * (then - self._clock.now)
        self._clock.now = then
        for state in [s for s in self._allocation.running if s.end <= then]:
            self._finish(state)
        while self._next < len(self.states) and self.states[self._next].job.submit <= then:
            self._active.append(self.states[self._next])
            self._next += 1
        self._decide(then == a_round)
        if self._active and not self._allocation.running and self._next == len(self.states):
            raise InputError(self._stuck(self._active[0]))
        return True

    def _stuck(self, state: JobState) -> str:
        """Say of a job that waits, where nothing else happens any more, why it gets no GPUs."""
        grant = next((grant for grant in self._granted if grant.state is state), None)
        if grant is None:
            return f"{state.job.name} cannot get the {state.job.n_gpus} GPUs that it wants from {self.name}"
        kind = "" if grant.gpu_type is None else f" of type {grant.gpu_type}"
        where = "" if grant.beside is None else f" beside {grant.beside.job.name}"
        return (
            f"{state.job.name} cannot get the {count_text(grant.n_gpus, 'GPU')}{kind}{where} that {self.name} grants it"
        )

    def _round(self) -> float:
        """When running jobs may be stopped next; never if this could change nothing."""
        interval = float(self._facts["interval"])
        waiting = len(self._active) > len(self._allocation.running)
        if not interval or not self._active or not (waiting or self._facts["scales"]):
            return math.inf
        return (math.floor(self._clock.now / interval * (1 + 1e-15)) + 1) * interval

    def _finish(self, state: JobState) -> None:
        state.count()
        if abs(state.done - state.total) > 1e-6 * state.total:
            raise PhysicsError(f"{state.job.name} ends with {state.done} of {state.total} iterations")
        state.counted, state.finish = state.total, self._clock.now
        self._allocation.stop(state)
        self._active.remove(state)

    def _decide(self, is_round: bool) -> None:
        """Ask the policy, allocate GPUs, and bring all rates up to date."""
        allocation = self._allocation
        if self._facts["borrows"] and (is_round or self._clock.now == 0.0):
            self._usable = self._machines.lent(self._clock.now, allocation.used())
            for state in tuple(allocation.running):
                if not all(self._usable[host] for host, _ in state.spread):
                    allocation.stop(state)
        unchanged = [] if is_round and self._facts["interval"] else list(allocation.running)
        usable = np.where(self._usable, self._machines.gpus, 0)
        view = View(self._clock.now, tuple(self._active), unchanged, usable, self._work, self._machines)
        returned = self._policy(view) if self._active else []
        self._granted = checked_grants(self.name, returned, self._active, self._machines)
        allocation.apply(self._granted, self._usable, self._clock.now)
        allocation.settle()
        # Where hosts have CPUs and memory to share out, each job that comes may slow down any other.
        changed = allocation.running if self._has_limits else [s for s in allocation.changed.values() if s.running]
        for index, factor in speeds(self._machines, self._work, changed, self._facts["tunes_cpu"]).items():
            state = self.states[index]
            state.count()
            state.rate = state.alone_rate * factor / state.stretch
            state.took = max(round(state.period * state.stretch, 4), 1e-4)
            state.end = max(state.since, state.resume) + (state.total - state.counted) / state.rate
        self._record()

    def _record(self) -> None:
        """Record starts and ends, the use of GPUs, and the demand on links."""
        changed = self._allocation.changed
        for index in [index for index in changed if index in self._began]:
            since, gpus = self._began[index]
            if changed[index].gpus != gpus:
                self.stays.append(Stay(index, since, self._clock.now, gpus))
                del self._began[index]
        for index, state in changed.items():
            if state.running:
                self._began.setdefault(index, (self._clock.now, state.gpus))
        changed.clear()
        self.use.append((self._clock.now, self._allocation.pool.used))
        self._flow = self._allocation.traffic.excess()
