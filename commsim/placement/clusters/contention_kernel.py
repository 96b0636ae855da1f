"""Kernels of contention: what overload costs each job on a link, and the best shift of a job."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel
from commsim.training.sharing.shared_links_tables import JOB_ROW, LINK_ROW, PHASE_ROW, USE_ROW, SharedLinks
from commsim.training.sharing.shared_rates_kernel import SolveReach, fill_class

F = NDArray[np.float64]


@kernel
def stretch(rates: F, use: F, capacity: float, extra: F) -> None:
    """Compute how much longer each job sends because of the others on one link, at each instant.

    At every instant the bytes that the jobs would send in one unit of time are served by the link as a fluid, max-min
    fairly, no job faster than its own rate, until all are sent. What a job needs beyond one unit of time is its extra.

    Parameters
    ----------
    rates : float64[n_jobs, n_instants], bytes/s
        What each job would send.
    use : float64[n_jobs]
        How many times its rate the link carries.
    capacity : float, bytes/s
        Capacity of the link.
    extra : float64[n_jobs, n_instants]
        Written: extra time per time; 0 where the link is not overloaded.
    """
    n_jobs, n_instants = rates.shape
    job, one_use, link = np.zeros(n_jobs, JOB_ROW), np.zeros(n_jobs, USE_ROW), np.zeros(1, LINK_ROW)
    user, nothing = np.empty(n_jobs, np.int32), np.empty(0, np.int64)
    for j in range(n_jobs):
        job[j]["first_use"], job[j]["end_use"], job[j]["weight"] = j, j + 1, 1.0
        one_use[j]["share"], user[j] = use[j], j
    link[0]["end_user"] = n_jobs
    t = SharedLinks(job, np.empty(0, PHASE_ROW), one_use, link, user, nothing)
    reached = SolveReach(np.empty(n_jobs, np.int32), np.zeros(1, np.int32))
    for n in range(n_instants):
        total = 0.0
        for j in range(n_jobs):
            job[j]["left"] = job[j]["own_rate"] = rates[j, n]
            extra[j, n] = 0.0
            total += use[j] * rates[j, n]
        now = 0.0
        while total > capacity * (1.0 + 1e-9):
            n_left = 0
            for j in range(n_jobs):
                if job[j]["left"] > 0.0:
                    job[j]["unfrozen"] = True
                    reached.job[n_left] = j
                    n_left += 1
            link[0]["free"] = capacity
            fill_class(t, reached, (n_left, 1), 0)
            step = np.inf
            for j in range(n_jobs):
                if job[j]["left"] > 0.0:
                    step = min(step, job[j]["left"] / job[j]["rate"])
            now += step
            total = 0.0
            for j in range(n_jobs):
                if job[j]["left"] > 0.0:
                    job[j]["left"] -= step * job[j]["rate"]
                    if job[j]["left"] <= 1e-9 * rates[j, n]:
                        job[j]["left"] = 0.0
                        extra[j, n] = now - 1.0
                    else:
                        total += use[j] * rates[j, n]
        for j in range(n_jobs):
            if job[j]["left"] > 0.0 and now > 0.0:
                extra[j, n] = now + job[j]["left"] / rates[j, n] - 1.0


@kernel
def shift_scores(base: F, use: F, capacity: F, shifted: F, scores: F) -> None:
    """Score every shift of one job against what the links already carry.

    Parameters
    ----------
    base : float64[n_links, n_instants], bytes/s
        What the other jobs send over each contended link.
    use : float64[n_links]
        How many times the job's rate each carries.
    capacity : float64[n_links], bytes/s
        Capacity of each link.
    shifted : float64[n_instants, n_shifts], bytes/s
        What the job would send with each shift.
    scores : float64[n_shifts]
        Written: the mean over links of one minus the mean excess demand over the capacity.
    """
    n_links, n_instants = base.shape
    n_shifts = shifted.shape[1]
    most, excess = 0.0, np.empty(n_shifts)
    for n in range(n_instants):
        for s in range(n_shifts):
            most = max(most, shifted[n, s])
    for s in range(n_shifts):
        scores[s] = 0.0
    for i in range(n_links):
        highest = 0.0
        for n in range(n_instants):
            highest = max(highest, base[i, n])
        for s in range(n_shifts):
            excess[s] = 0.0
        for n in range(n_instants if highest + use[i] * most > capacity[i] else 0):  # else no shift exceeds it
            for s in range(n_shifts):  # all shifts at an instant, so that several are added up at a time
                excess[s] += max(base[i, n] + use[i] * shifted[n, s] - capacity[i], 0.0)
        for s in range(n_shifts):
            scores[s] += 1.0 - excess[s] / (n_instants * capacity[i])
    for s in range(n_shifts):
        scores[s] /= n_links
