"""Placements that are as fair as another: workers change places, and every job stays as close together as it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .seats import Plan, Seats, Taken


def exchanged(seats: Seats, plan: Plan, rng: np.random.Generator) -> Plan:
    """Let drawn workers of two jobs change places, or one take a free GPU.

    An exchange is undone when a job would then be in a wider group (host, rack, pod), or a narrower one, than before:
    that is what Themis takes a job's slow-down from.

    Parameters
    ----------
    seats : Seats
        Where `plan` is taken from.
    plan : dict of int to int64[n_gpus]
        Of all jobs that can be moved.

    Returns
    -------
    dict of int to int64[n_gpus]
        After twice as many attempts as there are jobs.
    """
    plan, free = dict(plan), seats.at_first.copy()
    for taken in plan.values():
        np.subtract.at(free, taken, 1)
    movable = np.array(list(plan), np.int64)
    for _ in range(2 * len(movable)):
        i, j = (int(job) for job in rng.choice(movable, 2))
        if i != j:
            _swap(seats, plan, i, j, rng)
        elif free.any():
            _move(seats, plan, i, free, rng)
    return plan


def _swap(seats: Seats, plan: Plan, i: int, j: int, rng: np.random.Generator) -> None:
    a, b = int(rng.integers(len(plan[i]))), int(rng.integers(len(plan[j])))
    new_i, new_j = _with(plan[i], a, plan[j][b]), _with(plan[j], b, plan[i][a])
    if seats.level(new_i) == seats.level(plan[i]) and seats.level(new_j) == seats.level(plan[j]):
        plan[i], plan[j] = seats.in_order(new_i), seats.in_order(new_j)


def _move(seats: Seats, plan: Plan, i: int, free: NDArray[np.int64], rng: np.random.Generator) -> None:
    a, to = int(rng.integers(len(plan[i]))), rng.choice(np.flatnonzero(free))
    new = _with(plan[i], a, to)
    if seats.level(new) == seats.level(plan[i]):
        free[plan[i][a]] += 1
        free[to] -= 1
        plan[i] = seats.in_order(new)


def _with(taken: Taken, at: int, node: np.int64) -> Taken:
    changed = taken.copy()
    changed[at] = node
    return changed
