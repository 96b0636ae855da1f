"""CASSINI in a cluster that runs: rank candidate placements of a job, and shift it in time.

A candidate's score is the mean, over the links that the job would share with others, of CASSINI's link score: one minus
the mean excess demand over the capacity; 1 where it shares none. While candidates are ranked the jobs that already run
keep their shifts, and the new one's is searched, over :data:`SHIFTS` steps of its iteration and all of its links at
once: whatever loops the affinity graph has, every link sees the same shifts. The shifts are taken to be held, as
CASSINI's agents do. When jobs have come or gone, the shifts of those beside them are solved anew.

References
----------
Rajasekaran et al., "CASSINI", NSDI 2024, Table 1 and Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.training.sharing.periodic import PeriodicJob

from .shifted_rates import ShiftedRates, shifted_rates
from .traffic import ClusterTraffic, Sharer

SHIFTS = 72
# As many as in the experiments of the paper.
CANDIDATES = 10
# Profiles whose shifts are kept, of some 20 kB each.
_REMEMBERED = 600


class CassiniRanking:
    """Ranks candidates; remembers what each profile sends at each shift."""

    def __init__(self, traffic: ClusterTraffic) -> None:
        self._traffic = traffic
        self._shifted: dict[PeriodicJob, ShiftedRates] = {}

    def best(self, job: PeriodicJob, routes: Sequence[tuple[str, ...]]) -> tuple[int, float, float]:
        """Choose among rings over hosts.

        Returns
        -------
        candidate : int
            The first of the best.
        shift : float, s
            For it.
        score : float
            Of it.
        """
        scored: list[tuple[float, float]] = []
        for some in (routes[:1], routes[1:]):  # mostly the first one has the best score that there is
            for links, use in self._traffic.uses(some):
                scored.append(self._score(job, links, use))
                if scored[-1][1] == 1.0:
                    return len(scored) - 1, *scored[-1]
        chosen = max(range(len(scored)), key=lambda i: (scored[i][1], -i))
        return chosen, *scored[chosen]

    def better(self, job: PeriodicJob, sharer: Sharer, gain: float) -> float | None:
        """Find a shift of a job that sends already with a score higher by more than `gain`; None without one."""
        latest = self._traffic.latest(sharer)
        if sharer.best_at == latest:
            return None
        shift = self._better(job, sharer, gain)
        sharer.best_at = latest if shift is None else -1
        return shift

    def _better(self, job: PeriodicJob, sharer: Sharer, gain: float) -> float | None:
        shared = self._traffic.with_others(sharer)
        if not shared.any():
            return None
        links = sharer.links[shared]
        now = self._traffic.score(links)
        if now > 1.0 - gain:
            return None
        scores = self._kept_scores(job, sharer, shared)
        if (highest := float(scores.max())) <= now + gain:
            return None
        best = int(np.argmax(scores > highest - 1e-12))
        return job.period * best / SHIFTS if scores[best] > now + gain else None

    def _kept_scores(self, job: PeriodicJob, sharer: Sharer, shared: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Score of every shift of a job that sends, on the links that it shares: only changed ones are looked at."""
        from .contention_kernel import link_excess

        if sharer.excess is None:
            sharer.excess = np.zeros((len(sharer.links), SHIFTS))
        traffic, sent = self._traffic, self._sent(job)
        changed_at = traffic.changed_at(sharer.links)
        changed = np.flatnonzero(shared & (changed_at != sharer.excess_at))
        links, excess = sharer.links[changed], np.empty((len(changed), SHIFTS))
        link_excess(
            traffic.demand,
            links,
            traffic.highest(links),
            sharer.use[changed],
            sharer.rates,
            traffic.capacity,
            sent,
            excess,
        )
        sharer.excess[changed], sharer.excess_at[changed] = excess, changed_at[changed]
        over: NDArray[np.float64] = np.add.reduce(sharer.excess[shared])
        return 1.0 - over / (len(sent.order) * np.count_nonzero(shared))

    def _score(self, job: PeriodicJob, links: NDArray[np.intp], use: NDArray[np.float64]) -> tuple[float, float]:
        """Best shift and its score on these links."""
        contended = self._traffic.shared_by_others(links)
        if not job.phases or not contended.any():
            return 0.0, 1.0
        scores = self._scores(job, links[contended], use[contended])
        best = int(np.argmax(scores > scores.max() - 1e-12))
        return job.period * best / SHIFTS, float(scores[best])

    def _scores(self, job: PeriodicJob, links: NDArray[np.intp], use: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score of every shift of a job that does not send yet, beside what others send."""
        from .contention_kernel import shift_excess

        sent = self._sent(job)
        capacity, excess, own = self._traffic.capacity, np.empty(SHIFTS), np.zeros(len(sent.order))
        highest = self._traffic.highest(links)
        full = np.flatnonzero(highest + use * sent.levels[-1] > capacity[links])
        shift_excess(self._traffic.demand, links[full], highest[full], use[full], own, capacity, sent, excess)
        return 1.0 - excess / (len(sent.order) * len(links))

    def _sent(self, job: PeriodicJob) -> ShiftedRates:
        """Return what a job sends with each shift."""
        if job not in self._shifted:
            if len(self._shifted) >= _REMEMBERED:
                self._shifted.clear()
            shifts, instants = job.period * np.arange(SHIFTS) / SHIFTS, self._traffic.instants
            rates = np.array([self._traffic.rates(job, shift) for shift in shifts])
            usual = [0.0, *(phase.rate for phase in job.phases)]
            self._shifted[job] = shifted_rates(rates, instants % job.period, usual)
        return self._shifted[job]
