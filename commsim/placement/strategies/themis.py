"""Themis: candidate placements that are as fair as a packed one, each job equally close together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.training.sharing.periodic import PeriodicJob

from . import placement_strategy
from .free_gpus import FreeGpus, Plan
from .gpu_groups import Taken
from .packing import packed


@placement_strategy
def themis(free: FreeGpus, jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> Plan:
    """Placements that Themis's arbiter finds equally fair: each job as close together as when packed.

    A job's finish time depends on how close together it is; other machines at the same distance are as fair.

    References
    ----------
    Mahajan et al., "Themis: fair and efficient GPU cluster scheduling", NSDI 2020; as changed for CASSINI, NSDI 2024.
    """
    fair = packed(free, jobs, None)
    if rng is None:
        return fair
    levels = {i: free.level(gpus) for i, gpus in fair.items()}
    free.reset()
    other = packed(free, jobs, rng)
    as_fair = all(free.level(gpus) == levels[i] for i, gpus in other.items())
    fixed = [i for i in fair if jobs[i].gpus_per_host]
    return exchanged(free, other if as_fair else fair, rng, fixed)


def exchanged(free: FreeGpus, plan: Plan, rng: np.random.Generator, fixed: Collection[int] = ()) -> Plan:
    """Let drawn workers of two jobs change places, or one take a free GPU.

    An exchange is undone when a job would then be in a wider group (host, rack, pod), or a narrower one, than before:
    that is what Themis takes a job's slow-down from.

    Parameters
    ----------
    free : FreeGpus
        Free GPUs that `plan` is taken from.
    plan : dict of int to int64[n_gpus]
        GPUs of all jobs that can be moved.
    fixed : collection of int
        Jobs of these whose single workers stay, since they have as many GPUs on each host.

    Returns
    -------
    dict of int to int64[n_gpus]
        After twice as many attempts as there are jobs.
    """
    plan, left = dict(plan), free.at_first.copy()
    for gpus in plan.values():
        np.subtract.at(left, gpus, 1)
    movable = np.array([i for i in plan if i not in fixed], np.int64)
    for _ in range(2 * len(movable)):
        i, j = (int(job) for job in rng.choice(movable, 2))
        if i != j:
            _swap(free, plan, i, j, rng)
        elif left.any():
            _move(free, plan, i, left, rng)
    return plan


def _swap(free: FreeGpus, plan: Plan, i: int, j: int, rng: np.random.Generator) -> None:
    a, b = int(rng.integers(len(plan[i]))), int(rng.integers(len(plan[j])))
    new_i, new_j = _with(plan[i], a, plan[j][b]), _with(plan[j], b, plan[i][a])
    if free.level(new_i) == free.level(plan[i]) and free.level(new_j) == free.level(plan[j]):
        plan[i], plan[j] = free.in_order(new_i), free.in_order(new_j)


def _move(free: FreeGpus, plan: Plan, i: int, left: NDArray[np.int64], rng: np.random.Generator) -> None:
    a, to = int(rng.integers(len(plan[i]))), rng.choice(np.flatnonzero(left))
    new = _with(plan[i], a, to)
    if free.level(new) == free.level(plan[i]):
        left[plan[i][a]] += 1
        left[to] -= 1
        plan[i] = free.in_order(new)


def _with(gpus: Taken, at: int, node: np.int64) -> Taken:
    changed = gpus.copy()
    changed[at] = node
    return changed
