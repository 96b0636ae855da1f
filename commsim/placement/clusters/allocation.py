"""Allocation of GPUs: puts a policy's grants into effect, by host and by link use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .contention.cassini_ranking import CANDIDATES, CassiniRanking
from .contention.traffic import ClusterTraffic, Sharer
from .gpu_pool import GpuPool
from .machines import Machines
from .models import Assumptions
from .placement_choices import Placing, seats_on, spreads, whole_spreads
from .policy import Grant
from .state import ClusterJobs, JobState, Spread, room

# Rounds over all jobs in which shifts are solved anew; a shift is only changed where the score gains more than this.
ROUNDS, LEAST_GAIN = 2, 0.02


class Allocation:
    """GPUs and links of one run, and the jobs on them.

    Parameters
    ----------
    placing : str
        One of :data:`PLACINGS`.
    assumed : Assumptions
        What a job loses when it starts again, and what jobs reach together on an overloaded link.
    seeds : (int, int)
        Seed of the drawn shifts and placements, and of the routes' hashes.
    """

    def __init__(
        self, machines: Machines, work: ClusterJobs, *, placing: Placing, assumed: Assumptions, seeds: tuple[int, int]
    ) -> None:
        self.machines, self.work, self.pool = machines, work, GpuPool(machines)
        self.traffic = ClusterTraffic(machines.cluster, seeds[1], assumed.contended)
        self.running: list[JobState] = []
        self.sharers: dict[int, Sharer] = {}
        self._of_sharer: dict[int, JobState] = {}
        # Jobs that started, stopped, or go at another speed, since they were last asked for.
        self.changed: dict[int, JobState] = {}
        # Of running jobs that CASSINI moved in time: how often, and the seconds for which they waited.
        self.n_shifts, self.shift_delay = 0, 0.0
        self._placing = placing
        self._ranking = CassiniRanking(self.traffic) if placing == "cassini" else None
        self._restart, self._seed = assumed.restart, seeds[0]

    def apply(self, grants: Sequence[Grant], usable: NDArray[np.bool_], now: float) -> None:
        """Stop the jobs that are granted nothing, or something else; then give the others their GPUs in order."""
        granted = {id(grant.state): grant for grant in grants}
        if [state for state in self.running if granted.get(id(state), self) is not state.kept]:
            for state in tuple(self.running):
                grant = granted.get(id(state))
                if grant is None or (grant is not state.kept and not _holds(state, grant)):
                    self.stop(state)
        for grant in [grant for grant in grants if not grant.state.gpus]:
            if not grant.state.gpus:
                self._allocate(grant, usable, now)
        if self._ranking is not None:
            self._solve_shifts(self._ranking, now)

    def stop(self, state: JobState) -> None:
        """Take a job off its GPUs and links."""
        if state.beside is not None:
            self.changed[state.beside.index] = state.beside
        self.pool.release(state)
        self.running.remove(state)
        sharer = self.sharers.pop(state.index, None)
        if sharer is not None:
            self.traffic.remove(sharer)
            del self._of_sharer[id(sharer)]
        state.stretch = state.slowdown = 1.0
        self.changed[state.index] = state

    def settle(self) -> None:
        """Bring the slowdowns of all running jobs up to date."""
        for sharer in self.traffic.settle():
            state = self._of_sharer[id(sharer)]
            state.count()
            state.stretch, state.slowdown = sharer.stretch, sharer.slowdown
            self.changed[state.index] = state

    def _solve_shifts(self, ranking: CassiniRanking, now: float) -> None:
        """Solve the shifts anew of jobs on links whose jobs have changed; a job that moves waits once.

        One job after the other takes its best shift while the others keep theirs, which ends in a local optimum; all
        links of a job are looked at together, so that loops of the affinity graph need no rule of their own.
        """
        affected = self.traffic.changed()
        sharing = [(state, one) for state in self.running if (one := self.sharers.get(state.index)) in affected]
        for _ in range(ROUNDS):
            moved = False
            for state, sharer in sharing:
                profile = self.work.profile(state.index, len(state.gpus), len(state.spread), state.gpu_type)
                shift = ranking.better(profile, sharer, LEAST_GAIN)
                if shift is None:
                    continue
                moved = True
                self.traffic.shift(sharer, profile, shift)
                if now > (state.first_start or 0.0):
                    delay = (shift - state.shift) % profile.period
                    state.count()
                    state.resume = max(state.resume, now) + delay
                    self.n_shifts, self.shift_delay = self.n_shifts + 1, self.shift_delay + delay
                state.shift = shift
                self.changed[state.index] = state
            if not moved:
                break

    def used(self) -> NDArray[np.int64]:
        """GPUs of each host that have a job."""
        return self.machines.gpus - self.pool.free

    def _allocate(self, grant: Grant, usable: NDArray[np.bool_], now: float) -> None:
        state, other = grant.state, grant.beside
        if other is None:
            kind, types = grant.gpu_type, self.machines.types
            right = usable if kind is None else usable & np.array([one == kind for one in types])
            free = np.where(right, self.pool.free, 0)
            claimed = room(self.machines, self.work, self.running) if grant.order == "demand" else np.ones(free.size)
            ways = self._ways(state, free, grant, claimed)
        else:
            fits = other.running and other.beside is None and len(other.gpus) == grant.n_gpus
            ways = [other.spread] if fits and self._is_whole(state, other.spread) else []
        if not ways:
            return
        spread = self._choose(state, grant.n_gpus, ways)
        if other is None:
            self.pool.take(state, spread)
        else:
            self.pool.share(state, other)
            self.changed[other.index] = other
        self._start(state, spread, now)

    def _ways(
        self, state: JobState, free: NDArray[np.int64], grant: Grant, claimed: NDArray[np.float64]
    ) -> list[Spread]:
        """Candidates for a job's GPUs; one is left where none is ranked."""
        draw = np.random.default_rng([self._seed, state.index, state.starts, 1])
        k = state.job.gpus_per_host
        if self._placing in ("random", "shuffled") and k is not None:
            count = np.bincount(self.machines.whole, weights=free)
            fitting = np.flatnonzero(count >= k)
            if len(fitting) < grant.n_gpus // k:
                return []
            chosen = draw.choice(fitting, grant.n_gpus // k, replace=False).tolist()
            if self._placing == "random":
                chosen.sort()
            return [tuple(seat for one in chosen for seat in seats_on(self.machines, free, one, k))]
        if self._placing in ("random", "shuffled"):
            if int(free.sum()) < grant.n_gpus:
                return []
            seats = draw.choice(np.repeat(np.arange(free.size), free), grant.n_gpus, replace=False)
            hosts = list(dict.fromkeys(seats.tolist()))  # ranks in the order in which GPUs were drawn
            if self._placing == "random":
                hosts.sort(key=lambda host: (self.machines.rack[host], host))
            return [tuple((host, int((seats == host).sum())) for host in hosts)]
        limit = CANDIDATES if self._placing in ("cassini", "drawn") else 1
        asked = (grant.order, claimed, limit)
        if k is None:
            ways = spreads(self.machines, free, grant.n_gpus, *asked)
        else:
            ways = whole_spreads(self.machines, free, grant.n_gpus, k, *asked)
        return [ways[draw.integers(len(ways))]] if ways and self._placing == "drawn" else ways

    def _is_whole(self, state: JobState, spread: Spread) -> bool:
        """Whether a spread has the number of GPUs on each host that a job wants, if it wants one."""
        if (k := state.job.gpus_per_host) is None:
            return True
        hosts, counts = (np.array(part) for part in zip(*spread, strict=True))
        on = np.bincount(self.machines.whole[hosts], weights=counts)
        return bool(np.isin(on, (0, k)).all())

    def _choose(self, state: JobState, gpus: int, ways: Sequence[Spread]) -> Spread:
        """Take one of the ways, and set the shift."""
        kind = self._slowest(state, ways[0])
        profile = self.work.profile(state.index, gpus, len(ways[0]), kind)
        if self._ranking is None:
            drawn = np.random.default_rng([self._seed, state.index, state.starts]).random()
            state.shift = float(drawn) * profile.period
            return ways[0]
        chosen, state.shift, _ = self._ranking.best(profile, [self._route(spread) for spread in ways])
        return ways[chosen]

    def _start(self, state: JobState, spread: Spread, now: float) -> None:
        state.gpu_type = self._slowest(state, spread)
        state.resume = now + (self._restart if state.starts else 0.0)
        state.first_start = now if state.first_start is None else state.first_start
        state.starts += 1
        self.running.append(state)
        self.changed[state.index] = state
        profile = self.work.profile(state.index, len(state.gpus), len(spread), state.gpu_type)
        state.period = profile.period
        state.alone_rate = self.work.rate(state.index, len(state.gpus), len(spread), state.gpu_type)
        if profile.phases and self._placing != "ideal":
            sharer = self.sharers[state.index] = self.traffic.add(profile, self._route(spread), state.shift)
            self._of_sharer[id(sharer)] = state

    def _route(self, spread: Spread) -> tuple[str, ...]:
        return tuple(self.machines.names[host] for host, _ in spread)

    def _slowest(self, state: JobState, spread: Spread) -> str:
        speeds = self.work.models[state.index].speeds
        return min((self.machines.types[host] for host, _ in spread), key=lambda kind: speeds.get(kind, 1.0))


def _holds(state: JobState, grant: Grant) -> bool:
    """Whether a running job has what it is granted."""
    right = grant.gpu_type is None or grant.gpu_type == state.gpu_type
    return right and len(state.gpus) == grant.n_gpus and (grant.beside is None or grant.beside is state.beside)
