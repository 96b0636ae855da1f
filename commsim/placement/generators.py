"""Where jobs could run: candidate placements in the manner of several schedulers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import InputError
from commsim.workload.sharing.periodic import PeriodicJob

from .cluster import Cluster
from .muri import group_jobs, stages_of
from .seats import Plan, Seats
from .themis import exchanged

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
