"""Kernels of contention: what overload costs each job on a link, and the best shift of a job."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

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
        Of the link.
    extra : float64[n_jobs, n_instants]
        Written: extra time per time; 0 where the link is not overloaded.
    """
    n_jobs, n_instants = rates.shape
    left, speed = np.empty(n_jobs), np.empty(n_jobs)
    for n in range(n_instants):
        total = 0.0
        for j in range(n_jobs):
            left[j] = rates[j, n]
            extra[j, n] = 0.0
            total += use[j] * rates[j, n]
        now = 0.0
        while total > capacity * (1.0 + 1e-9):
            share(rates[:, n], left, use, capacity, speed)
            step = np.inf
            for j in range(n_jobs):
                if left[j] > 0.0:
                    step = min(step, left[j] / speed[j])
            now += step
            total = 0.0
            for j in range(n_jobs):
                if left[j] > 0.0:
                    left[j] -= step * speed[j]
                    if left[j] <= 1e-9 * rates[j, n]:
                        left[j] = 0.0
                        extra[j, n] = now - 1.0
                    else:
                        total += use[j] * rates[j, n]
        for j in range(n_jobs):
            if left[j] > 0.0 and now > 0.0:
                extra[j, n] = now + left[j] / rates[j, n] - 1.0


@kernel
def share(rates: F, left: F, use: F, capacity: float, speed: F) -> None:
    """Write max-min fair rates of the jobs that have something left, none above its own rate."""
    budget, weight = capacity, 0.0
    for j in range(left.size):
        speed[j] = 0.0
        if left[j] > 0.0:
            weight += use[j]
    settled = False
    while not settled and weight > 0.0:
        settled = True
        level = budget / weight
        for j in range(left.size):
            if left[j] > 0.0 and speed[j] == 0.0 and rates[j] <= level:
                speed[j] = rates[j]
                budget -= use[j] * rates[j]
                weight -= use[j]
                settled = False
    for j in range(left.size):
        if left[j] > 0.0 and speed[j] == 0.0:
            speed[j] = budget / weight


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
        Of each.
    shifted : float64[n_shifts, n_instants], bytes/s
        What the job would send with each shift.
    scores : float64[n_shifts]
        Written: the mean over links of one minus the mean excess demand over the capacity.
    """
    n_links, n_instants = base.shape
    for s in range(shifted.shape[0]):
        total = 0.0
        for i in range(n_links):
            excess = 0.0
            for n in range(n_instants):
                demand = base[i, n] + use[i] * shifted[s, n]
                if demand > capacity[i]:
                    excess += demand - capacity[i]
            total += 1.0 - excess / (n_instants * capacity[i])
        scores[s] = total / n_links
