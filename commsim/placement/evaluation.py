"""Evaluates placements: links on which jobs contend, start times and scores (CASSINI, algorithms 1 and 2)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, unknown_name
from commsim.placement.starts.affinity import (
    Component,
    components,
    inconsistency,
    largest_inconsistency,
    traverse,
)
from commsim.training.sharing.periodic import JobsLike, PeriodicJob, read_jobs

from .candidate import ContendedLink, PlacementCandidate
from .cluster import Cluster, ClusterLike, read_cluster
from .iteration_times import estimate, mean_ratio, met
from .link_classes import LinkClass, PlacedLinks, link_classes
from .node_names import on_nodes
from .scores import Scores, ScoreSettings
from .starts.job_uses import job_uses, own_paths
from .starts.joint_shifts import joint_shifts

# The first is the default.
LOOPS = ("merged", "literal")


def evaluate(
    cluster: ClusterLike, jobs: JobsLike, *, loops: str = LOOPS[0], settings: ScoreSettings | None = None
) -> PlacementCandidate:
    """Score the placement that jobs have; takes clusters and jobs as :func:`place_jobs` does."""
    cluster = read_cluster(cluster)
    return evaluate_all(cluster, [("given", on_nodes(cluster, read_jobs(jobs)))], loops=loops, settings=settings)[0]


def evaluate_all(
    cluster: Cluster,
    placed: Sequence[tuple[str, Sequence[PeriodicJob]]],
    *,
    loops: str = LOOPS[0],
    settings: ScoreSettings | None = None,
) -> list[PlacementCandidate]:
    """Score several placements of the same jobs.

    Parameters
    ----------
    cluster : Cluster
        Cluster whose routes say which links are shared.
    placed : sequence of (str, sequence of PeriodicJob)
        The generator's name, and the jobs with their placements; in all of them the same jobs in the same order.
    loops : {"merged", "literal"}
        What counts as a loop. ``merged``: links on which the same jobs demand the same are one vertex, and links that
        can carry all peaks at once are none, since no shift matters to them. ``literal``: each link that carries more
        than one job is a vertex, so that two jobs on both directions of a cable are a loop.
    settings : ScoreSettings, optional
        How scores are found.

    Returns
    -------
    list of PlacementCandidate
        In the given order. Where loops make the links' wishes contradict each other, start times are sought for the
        links of such a component together; scores are those at the start times.

    Raises
    ------
    InputError
        If a job has no placement, or one that the cluster does not have.

    References
    ----------
    Rajasekaran, Ghobadi and Akella, NSDI 2024, algorithms 1 and 2.
    """
    scores = Scores(placed[0][1] if placed else (), settings or ScoreSettings())
    found, _, classes = evaluated(cluster, placed, loops, scores)
    return [
        replace(one, inconsistency=inconsistency_of(one, jobs, rows, scores))
        for one, (_, jobs), rows in zip(found, placed, classes, strict=True)
    ]


def evaluated(
    cluster: Cluster, placed: Sequence[tuple[str, Sequence[PeriodicJob]]], loops: str, scores: Scores
) -> tuple[list[PlacementCandidate], NDArray[np.float64], list[PlacedLinks]]:
    """Return the candidates, how many times its rate each of their jobs sends over each link, and the links' classes.

    Parameters
    ----------
    scores : Scores
        Scores of the jobs, which remember what is found.
    """
    if loops not in LOOPS:
        raise unknown_name("rule for loops", loops, LOOPS)
    if not placed:
        return [], np.zeros((0, 0, cluster.network.n_links)), []
    unplaced_jobs = [job.name for _, jobs in placed for job in jobs if job.placement is None]
    if unplaced_jobs:
        raise InputError(f"job {unplaced_jobs[0]} has no placement to evaluate")
    use, classes = links_of_jobs(cluster, placed, scores.settings.seed, scores)
    for rows in classes:  # a step that a circle cannot have is refused before the first search
        view = scores.on(rows)
        for links in rows:
            if view.counts(links):
                view.size(links.jobs)
    found = [
        evaluate_placed(cluster, name, jobs, rows, scores, loops)
        for (name, jobs), rows in zip(placed, classes, strict=True)
    ]
    return found, use, classes


def links_of_jobs(
    cluster: Cluster, placed: Sequence[tuple[str, Sequence[PeriodicJob]]], seed: int, scores: Scores
) -> tuple[NDArray[np.float64], list[PlacedLinks]]:
    """Return how many times its rate each job sends over each link, and the classes of links of each placement.

    Returns
    -------
    float64[n_placements, n_jobs, n_links], list of PlacedLinks
    """
    use = job_uses(cluster, [job for _, jobs in placed for job in jobs], seed)
    use = use.reshape(len(placed), -1, cluster.network.n_links)
    use[:, scores.peak <= 0] = 0.0
    own = (own_paths(cluster, jobs, seed) for _, jobs in placed)
    return use, [link_classes(cluster.network, rows, paths) for rows, paths in zip(use, own, strict=True)]


def evaluate_placed(
    cluster: Cluster,
    generator: str,
    jobs: Sequence[PeriodicJob],
    classes: Sequence[LinkClass],
    scores: Scores,
    loops: str,
    shifts: NDArray[np.float64] | None = None,
) -> PlacementCandidate:
    """Score a placement whose links are known, at shifts (s) that are sought unless given; `scores` remembers them.

    Circles, scores and estimates are of the phases that each job achieves on its path. The inconsistency is not known
    yet where links close a loop (:func:`inconsistency_of`): what each link would choose is a search of its own.
    """
    scores = scores.on(classes)
    shared = [links for links in classes if scores.counts(links)]
    tight = contended(classes, scores)
    if shifts is None:
        found, parts = _shifts(len(jobs), tight, scores)
    else:
        found, parts = shifts, components([_joined(links, scores, _held(scores)) for links in tight])
    has_loop = any(part.has_loop for part in parts)
    if loops == "literal":
        has_loop = any(part.has_loop for part in components([links.jobs for links in shared for _ in links.links]))
    names = [job.name for job in jobs]
    sizes = [scores.size(links.jobs) for links in shared]
    times, alone = estimate(classes, scores, found), scores.period
    return PlacementCandidate(
        generator,
        {job.name: job.placement or () for job in jobs},
        _rows(cluster, names, classes, scores, found),
        {job.name: shift if job.start is None else job.start for job, shift in zip(jobs, found.tolist(), strict=True)},
        has_loop,
        None,
        dict(zip(names, times.tolist(), strict=True)),
        dict(zip(names, alone.tolist(), strict=True)),
        "estimate",
        max((size.rounding for size in sizes), default=0.0),
        sum(len(links.links) for links, size in zip(shared, sizes, strict=True) if not size.is_common),
        {job.name: job.period for job in jobs},
        mean_ratio(times, alone),
    )


def contended(classes: Sequence[LinkClass], scores: Scores) -> list[LinkClass]:
    """Return the links whose excess depends on a start time that can be chosen."""
    tight, is_held = scores.several(classes), scores.is_held
    return [links for links in tight if not is_held[list(links.jobs)].all()] if is_held.any() else tight


def shifts_of(candidate: PlacementCandidate, jobs: Sequence[PeriodicJob]) -> NDArray[np.float64]:
    """Shifts of jobs as :class:`Scores` has them, float64[n_jobs], s: 0 for those with a fixed start."""
    return np.array([candidate.shifts[job.name] if job.start is None else 0.0 for job in jobs])


def inconsistency_of(
    candidate: PlacementCandidate, jobs: Sequence[PeriodicJob], classes: Sequence[LinkClass], scores: Scores
) -> float:
    """Return how far jobs start from what single links want, s, which is sought now if it was not before."""
    if candidate.inconsistency is not None:
        return candidate.inconsistency
    scores, shifts = scores.on(classes), shifts_of(candidate, jobs)
    wishes, period = _wishes(contended(classes, scores), scores, len(shifts))
    away = largest_inconsistency(wishes, shifts, period)
    return away if away > 1e-9 else 0.0


class _Wish:
    """The shifts that suit a link, by the jobs that it joins; they are sought when they are asked for."""

    def __init__(self, links: LinkClass, scores: Scores, held: int) -> None:
        self._links, self._scores, self.jobs = links, scores, _joined(links, scores, held)
        self.is_held = bool(scores.is_held[list(links.jobs)].any())

    @functools.cached_property
    def shifts(self) -> tuple[float, ...]:
        """How much later each job should start, as far as this link is concerned, s."""
        shifts, is_held = self._scores.shifts(self._links), self._scores.is_held[list(self._links.jobs)]
        return (*((0.0,) if self.is_held else ()), *shifts[~is_held].tolist())


def _wishes(tight: Sequence[LinkClass], scores: Scores, n_jobs: int) -> tuple[list[_Wish], NDArray[np.float64]]:
    """Return what each link wants, and the period of each job's circle, float64[n_jobs], s."""
    period, held = np.ones(n_jobs), _held(scores)
    for links in tight:
        period[list(links.jobs)] = scores.size(links.jobs).period
    return [_Wish(links, scores, held) for links in tight], period


def _shifts(n_jobs: int, tight: list[LinkClass], scores: Scores) -> tuple[NDArray[np.float64], list[Component]]:
    """Start times of all jobs, and the jobs that links join."""
    wishes, period = _wishes(tight, scores, n_jobs)
    shifts = traverse(wishes, period, held=_held(scores))
    parts = components([wish.jobs for wish in wishes])
    for part in parts:
        if part.has_loop and any(inconsistency(wishes[i], shifts, period) > 1e-9 for i in part.links):
            shifts = joint_shifts([tight[i] for i in part.links], scores, shifts)
    return shifts, parts


def _held(scores: Scores) -> int:
    """Return the first job whose start is fixed, which stands for all of these; -1 without."""
    return int(scores.is_held.argmax()) if scores.is_held.any() else -1


def _joined(links: LinkClass, scores: Scores, held: int) -> tuple[int, ...]:
    """Return the jobs that a link joins, with the job `held` in the place of all whose start is fixed."""
    is_held = scores.is_held[list(links.jobs)]
    if not is_held.any():
        return links.jobs
    return held, *(job for job, stays in zip(links.jobs, is_held.tolist(), strict=True) if not stays)


def _rows(
    cluster: Cluster, names: list[str], classes: Sequence[LinkClass], scores: Scores, shifts: NDArray[np.float64]
) -> tuple[ContendedLink, ...]:
    score = {
        id(links): value
        for tight in scores.tight(classes)
        for links, value in zip(tight.links, met(tight, scores, shifts).score.tolist(), strict=True)
    }
    rows = {}
    for links in (one for one in classes if scores.counts(one)):
        sharing, found = list(links.jobs), score.get(id(links), 1.0)
        share = float(links.part @ scores.mean[sharing])
        for link in links.links.tolist():
            demand = share * float(cluster.network.bandwidth[link])
            rows[link] = (tuple(names[j] for j in sharing), found, demand, id(links) in score)
    return tuple(ContendedLink(cluster.network.link_name(link), *rows[link]) for link in sorted(rows))
