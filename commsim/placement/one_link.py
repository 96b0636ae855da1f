"""Jobs on one link, simulated: the check of a link's score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import HOST, Network
from commsim.workload.sharing.periodic import PeriodicJob

from .check import ITERATIONS


def simulated_times(
    jobs: Sequence[PeriodicJob], capacity: float, shifts: NDArray[np.float64], iterations: int = ITERATIONS
) -> dict[str, float]:
    """Mean iteration time of each job, in seconds, when all send over one link with max-min fair sharing.

    Parameters
    ----------
    capacity : float, bytes/s
        Of the link.
    shifts : float64[n_jobs], s
        When each job starts.
    iterations : int
        Of each job; the second half is averaged.
    """
    from commsim.workload.sharing.shared_links import simulate_jobs

    link = Network("one link", ("from", "to"), [HOST, HOST], [0], [1], capacity, 0.0)
    run = simulate_jobs(link, jobs, [np.ones(1)] * len(jobs), shifts=shifts, iterations=iterations)
    return {
        job.name: float(times[iterations // 2 :].mean()) for job, times in zip(jobs, run.iteration_times, strict=True)
    }
