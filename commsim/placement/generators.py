"""Where jobs could run: candidate placements in the manner of several schedulers.

Placements that are as fair as another: workers change places, and every job stays as close together as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.workload.sharing.periodic import PeriodicJob

from .cluster import Cluster
from .free_gpus import Plan, Seats, Taken
from .muri import group_jobs, stages_of


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


SKEWED = 0.5
"""Skew from which a job is consolidated: our choice, the threshold of Tiresias is not published."""
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be placed: jobs, and the skew of some, by name."""

    jobs: Sequence[PeriodicJob]
    skew: Mapping[str, float]


Generator = Callable[[Seats, Asked, "np.random.Generator | None"], Plan]


def candidates(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    generator: str = "packed",
    n: int = 10,
    seed: int = 0,
    *,
    skew: Mapping[str, float] | None = None,
) -> list[tuple[PeriodicJob, ...]]:
    """Make different placements of the jobs that have none; the others stay where they are.

    Ranks are ordered so that the ring leaves each host, rack and pod once.

    Parameters
    ----------
    cluster : Cluster
        Whose GPUs are free, each for one job.
    jobs : sequence of PeriodicJob
        To be placed together.
    generator : str
        - ``packed``: largest job first, each in the smallest group of hosts that has room.
        - ``spread``: each over all racks and hosts in turn.
        - ``random``: anywhere.
        - ``themis``: what Themis's arbiter is changed to return for CASSINI: placements that are equally fair. A job's
          finish time depends on how close together it is; so each job is as close as when packed, on other machines.
        - ``tiresias``: a job whose skew is high is consolidated, the others take what is left over anywhere.
        - ``muri``: jobs that Muri would group, since one computes while the other sends, become neighbours. (Muri
          itself lets them share GPUs, which is not done here: a GPU has one job.)
    n : int
        At most so many; fewer where no others are found.
    seed : int
        Of what is drawn; the first of each is the same for every seed, but for ``random``.
    skew : mapping of str to float, optional
        For ``tiresias``: the largest tensor as a part of the model; of jobs that are not named, the largest phase as a
        part of what the job sends.

    Returns
    -------
    list of tuple of PeriodicJob
        The same jobs in the same order, all with placements.

    Raises
    ------
    InputError
        If the generator is unknown, or the cluster has no room.

    References
    ----------
    Mahajan et al., "Themis", NSDI 2020. Gu et al., "Tiresias", NSDI 2019. Zhao et al., "Multi-resource interleaving for
    deep learning training" (Muri), SIGCOMM 2022.
    """
    if generator not in GENERATORS:
        raise InputError(f"unknown generator {generator!r}; known: {', '.join(GENERATORS)}")
    if n < 1:
        raise InputError(f"the number of candidates is 1 or more, got {n}")
    seats = Seats(cluster, jobs)
    found: dict[tuple[tuple[str, ...], ...], tuple[PeriodicJob, ...]] = {}
    for i in range(n * _TRIES):
        seats.reset()
        rng = np.random.default_rng((seed, i)) if i or generator == "random" else None
        plan = GENERATORS[generator](seats, Asked(jobs, skew or {}), rng)
        placed = tuple(
            dataclasses.replace(job, placement=seats.names(plan[i])) if i in plan else job for i, job in enumerate(jobs)
        )
        found.setdefault(tuple(job.placement or () for job in placed), placed)
        if len(found) == n or not plan:
            break
    return list(found.values())


def _homeless(jobs: Sequence[PeriodicJob], rng: np.random.Generator | None) -> list[int]:
    """Jobs to be placed: the largest first, or in a drawn order."""
    homeless = [i for i, job in enumerate(jobs) if job.placement is None]
    if rng is not None:
        return [homeless[k] for k in rng.permutation(len(homeless))]
    return sorted(homeless, key=lambda i: -jobs[i].n_gpus)


def _packed(seats: Seats, asked: Asked, rng: np.random.Generator | None) -> Plan:
    return {i: seats.take_near(asked.jobs[i].n_gpus, rng) for i in _homeless(asked.jobs, rng)}


def _spread(seats: Seats, asked: Asked, rng: np.random.Generator | None) -> Plan:
    return {i: seats.take_far(asked.jobs[i].n_gpus, rng) for i in _homeless(asked.jobs, rng)}


def _random(seats: Seats, asked: Asked, rng: np.random.Generator | None) -> Plan:
    drawn = rng or np.random.default_rng(0)
    return {i: seats.take_any(asked.jobs[i].n_gpus, drawn) for i in _homeless(asked.jobs, rng)}


def _themis(seats: Seats, asked: Asked, rng: np.random.Generator | None) -> Plan:
    fair = _packed(seats, asked, None)
    if rng is None:
        return fair
    levels = {i: seats.level(taken) for i, taken in fair.items()}
    seats.reset()
    other = _packed(seats, asked, rng)
    as_fair = all(seats.level(taken) == levels[i] for i, taken in other.items())
    return exchanged(seats, other if as_fair else fair, rng)


def _tiresias(seats: Seats, asked: Asked, rng: np.random.Generator | None) -> Plan:
    jobs, homeless = asked.jobs, _homeless(asked.jobs, rng)
    skewed = [i for i in homeless if asked.skew.get(jobs[i].name, _skew(jobs[i])) > SKEWED]
    plan = {i: seats.take_near(jobs[i].n_gpus, rng) for i in skewed}
    return plan | {i: seats.take_leftovers(jobs[i].n_gpus, rng) for i in homeless if i not in plan}


def _skew(job: PeriodicJob) -> float:
    sent = [phase.n_bytes for phase in job.phases]
    return max(sent) / sum(sent) if sent else 0.0


def _muri(seats: Seats, asked: Asked, rng: np.random.Generator | None) -> Plan:
    jobs, homeless = asked.jobs, _homeless(asked.jobs, rng)
    groups = group_jobs([stages_of(jobs[i]) for i in homeless], [jobs[i].n_gpus for i in homeless])
    plan: Plan = {}
    for group in groups:
        mine = [homeless[k] for k in group]
        together = seats.take_near(sum(jobs[i].n_gpus for i in mine), rng)
        cuts = np.cumsum([jobs[i].n_gpus for i in mine])[:-1]
        plan.update(zip(mine, np.split(together, cuts), strict=True))
    return plan


GENERATORS: dict[str, Generator] = {
    "packed": _packed,
    "spread": _spread,
    "random": _random,
    "themis": _themis,
    "tiresias": _tiresias,
    "muri": _muri,
}
