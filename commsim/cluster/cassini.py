"""CASSINI in a cluster that runs: rank candidate placements of a job, and shift it in time.

A candidate's score is the mean, over the links that the job would share with others, of CASSINI's link score: one minus
the mean excess demand over the capacity; 1 where it shares none. Jobs that already run keep their shifts, so that only
the new one's is searched, over :data:`SHIFTS` steps of its iteration and all of its links at once: whatever loops the
affinity graph has, every link sees the same shifts. The shifts are taken to be held, as CASSINI's agents do.

References
----------
Rajasekaran et al., "CASSINI", NSDI 2024, Table 1 and Algorithm 2 (there all shifts are solved anew).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.workload.sharing.periodic import PeriodicJob

from .traffic import Traffic

SHIFTS = 72
CANDIDATES = 10
"""As many as in the experiments of the paper."""


class Ranking:
    """Ranks candidates; remembers what each profile sends at each shift."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._shifted: dict[PeriodicJob, NDArray[np.float64]] = {}

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
        found = [self._score(job, links, use) for links, use in self._traffic.uses(routes)]
        chosen = max(range(len(found)), key=lambda i: (found[i][1], -i))
        return chosen, *found[chosen]

    def _score(self, job: PeriodicJob, links: NDArray[np.intp], use: NDArray[np.float64]) -> tuple[float, float]:
        """Best shift and its score on these links."""
        from .contention_kernel import shift_scores

        contended = self._traffic.shared_by_others(links)
        if not job.phases or not contended.any():
            return 0.0, 1.0
        if job not in self._shifted:
            if len(self._shifted) > 200:
                self._shifted.clear()
            shifts = job.period * np.arange(SHIFTS) / SHIFTS
            self._shifted[job] = np.array([self._traffic.rates(job, shift) for shift in shifts])
        mine = links[contended]
        scores = np.empty(SHIFTS)
        base, capacity = self._traffic.demand[mine], self._traffic.capacity[mine]
        shift_scores(base, use[contended], capacity, self._shifted[job], scores)
        best = int(np.argmax(scores > scores.max() - 1e-12))
        return job.period * best / SHIFTS, float(scores[best])
