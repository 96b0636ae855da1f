"""Muri: groups of jobs in which one uses a resource while the others use other ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError, InputError
from commsim.core.extras import needs
from commsim.training.sharing.periodic import PeriodicJob

from . import placement_strategy
from .free_gpus import FreeGpus, Plan, unplaced

# Seconds of an iteration on each kind of resource, one after the other.
Stages = tuple[float, ...]
LARGEST_GROUP = 4


@placement_strategy
def muri(free: FreeGpus, jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> Plan:
    """Jobs that Muri would group, since one computes while the other sends, become neighbours.

    Muri itself lets them share GPUs, which is not done here: a GPU has one job.

    References
    ----------
    Zhao et al., "Multi-resource interleaving for deep learning training", SIGCOMM 2022.
    """
    waiting = unplaced(jobs, rng)
    groups = group_jobs([stages_of(jobs[i]) for i in waiting], [jobs[i].n_gpus for i in waiting])
    plan: Plan = {}
    for group in groups:
        members = [waiting[k] for k in group]
        if any(jobs[i].gpus_per_host for i in members):  # each on hosts of its own, near those of the first
            for i in members:
                first = free.names(plan[members[0]]) if i != members[0] else ()
                plan[i] = free.take_beside(jobs[i], first) if first else free.take_near(jobs[i], rng)
            continue
        together = free.take_near(sum(jobs[i].n_gpus for i in members), rng)
        cuts = np.cumsum([jobs[i].n_gpus for i in members])[:-1]
        plan.update(zip(members, np.split(together, cuts), strict=True))
    return plan


def stages_of(job: PeriodicJob) -> Stages:
    """Stages of a periodic job: computing, and communicating, which Muri's formula takes one after the other."""
    return job.compute_time, job.communication_time


def group_time(stages: Sequence[Stages]) -> float:
    """Find the iteration time of jobs that share their resources in turn, in the best order.

    In slot i of k, the job at place j uses resource ``(i - j) mod k``, and a slot takes as long as its slowest job:
    ``T = sum_i max_j t_j[(i - j) mod k]``, least over all orders of the jobs.

    Parameters
    ----------
    stages : sequence of tuple of float, s
        One per job, all of the same length k, at most k jobs.

    Raises
    ------
    InputError
        If there are more jobs than resources.

    References
    ----------
    Zhao et al., "Multi-resource interleaving for deep learning training", SIGCOMM 2022, section 4.
    """
    k = len(stages[0])
    if len(stages) > k:
        raise InputError(f"at most {k} jobs share {k} resources in turn, got {len(stages)}")
    rest = range(1, len(stages))  # where the first is does not matter: slots go round
    return min(
        sum(max(stages[job][(i - j) % k] for job, j in zip((0, *order), places, strict=True)) for i in range(k))
        for order in itertools.permutations(rest)
        for places in ((0, *chosen) for chosen in itertools.combinations(range(1, k), len(stages) - 1))
    )


def efficiency(stages: Sequence[Stages], first: int = 0) -> float:
    """How busy a group keeps its resources: ``sum of stages / (k T)``.

    Parameters
    ----------
    first : int
        The job of the highest priority: a group that takes longer than all its jobs would, each as long as this one, is
        worth 0.
    """
    time = group_time(stages)
    if time > len(stages) * sum(stages[first]) * (1 + 1e-12):
        return 0.0
    return sum(map(sum, stages)) / (len(stages[0]) * time)


def group_jobs(stages: Sequence[Stages], n_gpus: Sequence[int]) -> list[tuple[int, ...]]:
    """Group jobs with the same number of GPUs by matchings of the greatest total efficiency.

    Jobs are paired; then pairs of groups are, while a group has no more jobs than there are resources and than
    ``LARGEST_GROUP``. A pair is made only where it is more efficient than the mean of its halves.

    Parameters
    ----------
    stages : sequence of tuple of float, s
        Times of the stages of each job, in the order of priority.
    n_gpus : sequence of int
        Number of GPUs of each job.

    Returns
    -------
    list of tuple of int
        All jobs, each in one group, in the order of their first jobs.
    """
    groups: list[tuple[int, ...]] = [(i,) for i in range(len(stages))]
    largest = min(LARGEST_GROUP, len(stages[0])) if stages else 1
    while True:
        pairs: dict[tuple[int, int], float] = {}
        for a, b in itertools.combinations(range(len(groups)), 2):
            both = groups[a] + groups[b]
            if len(groups[a]) == len(groups[b]) and len(both) <= largest and len({n_gpus[i] for i in both}) == 1:
                worth = _worth(stages, both) - (_worth(stages, groups[a]) + _worth(stages, groups[b])) / 2
                if worth > 1e-12:
                    pairs[a, b] = worth
        chosen = match(len(groups), pairs)
        if not chosen:
            return sorted(groups)
        matched = {i for pair in chosen for i in pair}
        joined = [tuple(sorted(groups[a] + groups[b])) for a, b in chosen]
        groups = sorted(joined + [group for i, group in enumerate(groups) if i not in matched])


def match(n: int, worth: dict[tuple[int, int], float]) -> list[tuple[int, int]]:
    """Find the matching of the greatest total worth.

    Parameters
    ----------
    n : int
        Vertices.
    worth : dict of (int, int) to float
        Worth of each edge, positive.

    Returns
    -------
    list of (int, int)

    Raises
    ------
    BackendError
        If SciPy is missing, or its solver gives up.
    """
    if not worth:
        return []
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError:
        raise BackendError(needs("groups are matched by SciPy", "opt")) from None
    edges = sorted(worth)
    touches: NDArray[np.float64] = np.zeros((n, len(edges)))
    for column, (a, b) in enumerate(edges):
        touches[[a, b], column] = 1.0
    solution = milp(
        -np.array([worth[edge] for edge in edges]),
        integrality=np.ones(len(edges)),
        bounds=Bounds(0.0, 1.0),
        constraints=[LinearConstraint(touches, -np.inf, 1.0)],
        options={"mip_rel_gap": 0.0},
    )
    if solution.x is None:
        raise BackendError(f"the matching was not found: {solution.message}")
    return [edge for edge, x in zip(edges, solution.x, strict=True) if x > 0.5]


def _worth(stages: Sequence[Stages], group: tuple[int, ...]) -> float:
    return efficiency([stages[i] for i in group], min(range(len(group)), key=lambda k: group[k]))
