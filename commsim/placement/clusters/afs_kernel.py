"""Kernel of AFS-L: hands out GPUs one by one, each to the job for which it adds most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

F = NDArray[np.float64]
Counts = NDArray[np.int64]


@kernel
def hand_out(rates: F, first: Counts, work: F, gpus: Counts, free: int) -> None:
    """Give free GPUs to jobs, one by one.

    Of two jobs the next GPU goes to the one that gains more: the longer job's gain counts by its new rate, the shorter
    one's by its old. The rule is no order of all jobs, so that each is held against the best of those before it.

    Parameters
    ----------
    rates : float64[n_rates]
        Iterations per second of all jobs, one after the other, with 1, 2, ... GPUs, up to the most that each may have.
    first : int64[n_jobs + 1]
        Index of each job's rate with one GPU, and the end.
    work : float64[n_jobs]
        Iterations that each has left.
    gpus : int64[n_jobs]
        GPUs of each; written. A job without any gets none.
    free : int
        GPUs to hand out.

    References
    ----------
    Hwang et al., "Elastic resource sharing for distributed deep learning", NSDI 2021, rule of AFS-L
    """
    while free > 0:
        best = -1
        rate = more = 0.0  # of the best, with what it has and with one GPU more
        for job in range(len(gpus)):
            at = first[job] + gpus[job] - 1
            if gpus[job] == 0 or at + 1 >= first[job + 1]:
                continue
            a_is_short = best >= 0 and work[job] / rates[at] < work[best] / rate
            if best < 0:
                goes_first = True
            elif a_is_short:
                goes_first = rates[at + 1] / rates[at] - 1.0 >= 1.0 - rate / more
            else:
                goes_first = more / rate - 1.0 < 1.0 - rates[at] / rates[at + 1]
            if goes_first:
                best, rate, more = job, rates[at], rates[at + 1]
        if best < 0:
            return
        gpus[best] += 1
        free -= 1
