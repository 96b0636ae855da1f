"""What jobs on the same host do to each other: CPUs and memory, and two jobs on one GPU."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .machines import Machines
from .state import JobState
from .work import Work

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
