"""Score candidate placements (algorithm 2), and find start times that suit all of a candidate's links (algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.workload.sharing.periodic import PeriodicJob

from .affinity import SharedLink, components, inconsistency, joint_shifts, traverse
from .candidate import Candidate, ContendedLink
from .check import estimate
from .cluster import Cluster
from .link_use import LinkClass, Scores, Settings, link_classes, link_uses
from .score import score_at

LOOPS = ("merged", "literal")


def evaluate(
    cluster: Cluster, jobs: Sequence[PeriodicJob], *, loops: str = "merged", settings: Settings | None = None
) -> Candidate:
    """Score the placement that jobs have; see :func:`evaluate_all`."""
    return evaluate_all(cluster, [("given", jobs)], loops=loops, settings=settings)[0]


def evaluate_all(
    cluster: Cluster,
    placed: Sequence[tuple[str, Sequence[PeriodicJob]]],
    *,
    loops: str = "merged",
    settings: Settings | None = None,
) -> list[Candidate]:
    """Score several placements of the same jobs.

    Parameters
    ----------
    cluster : Cluster
        Whose routes say which links are shared.
    placed : sequence of (str, sequence of PeriodicJob)
        The generator's name, and the jobs with their placements; in all of them the same jobs in the same order.
    loops : {"merged", "literal"}
        What counts as a loop. ``merged``: links on which the same jobs demand the same are one vertex, and links that
        can carry all peaks at once are none, since no shift matters to them. ``literal``: each link that carries more
        than one job is a vertex, so that two jobs on both directions of a cable are a loop.
    settings : Settings, optional
        How scores are found.

    Returns
    -------
    list of Candidate
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
    if loops not in LOOPS:
        raise InputError(f"unknown rule for loops {loops!r}; known: {', '.join(LOOPS)}")
    if not placed:
        return []
    settings = settings or Settings()
    homeless = [job.name for _, jobs in placed for job in jobs if job.placement is None]
    if homeless:
        raise InputError(f"job {homeless[0]} has no placement to evaluate")
    use = link_uses(cluster, [job.placement or () for _, jobs in placed for job in jobs], settings.seed)
    scores = Scores(placed[0][1], settings)
    use = use.reshape(len(placed), -1, cluster.network.n_links) * (scores.peak > 0)[:, None]
    return [
        _evaluate(cluster, name, jobs, rows, scores, loops == "literal")
        for (name, jobs), rows in zip(placed, use, strict=True)
    ]


def _evaluate(
    cluster: Cluster,
    generator: str,
    jobs: Sequence[PeriodicJob],
    use: NDArray[np.float64],
    scores: Scores,
    literal: bool,
) -> Candidate:
    classes = link_classes(cluster.network, use)
    shared = [links for links in classes if len(links.jobs) > 1]
    shifts, away, has_loop = _shifts(len(jobs), [links for links in shared if scores.is_tight(links)], scores)
    if literal:
        has_loop = any(part.has_loop for part in components([links.jobs for links in shared for _ in links.links]))
    names = [job.name for job in jobs]
    circles = [scores.circle(links.jobs) for links in shared]
    return Candidate(
        generator,
        {job.name: job.placement or () for job in jobs},
        _rows(cluster, names, shared, scores, shifts),
        dict(zip(names, shifts.tolist(), strict=True)),
        has_loop,
        away,
        dict(zip(names, estimate(jobs, classes, scores, shifts).tolist(), strict=True)),
        "estimate",
        max((circle.rounding for circle in circles), default=0.0),
        sum(len(links.links) for links, circle in zip(shared, circles, strict=True) if not circle.is_common),
    )


def _shifts(n_jobs: int, tight: list[LinkClass], scores: Scores) -> tuple[NDArray[np.float64], float, bool]:
    """Start times of all jobs, how far they are from what single links want, and whether there is a loop."""
    period = np.ones(n_jobs)
    wishes = []
    for links in tight:
        period[list(links.jobs)] = scores.circle(links.jobs).period
        wishes.append(SharedLink(links.jobs, tuple(scores.shifts(links).tolist())))
    shifts = traverse(wishes, period)
    parts = components([links.jobs for links in tight])
    for part in parts:
        if part.has_loop and any(inconsistency(wishes[i], shifts, period) > 1e-9 for i in part.links):
            shifts = joint_shifts(part, [tight[i] for i in part.links], scores, shifts)
    away = max((inconsistency(wish, shifts, period) for wish in wishes), default=0.0)
    return shifts, away if away > 1e-9 else 0.0, any(part.has_loop for part in parts)


def _rows(
    cluster: Cluster, names: list[str], shared: list[LinkClass], scores: Scores, shifts: NDArray[np.float64]
) -> tuple[ContendedLink, ...]:
    found = {}
    for links in shared:
        mine, circle = list(links.jobs), scores.circle(links.jobs)
        score = float(score_at(circle, links.part[None], shifts[mine])[0]) if scores.is_tight(links) else 1.0
        share = float(links.part @ circle.demand[:, circle.reach :].mean(axis=1))
        for link in links.links.tolist():
            demand = share * float(cluster.network.bandwidth[link])
            found[link] = (tuple(names[j] for j in mine), score, demand)
    return tuple(ContendedLink(cluster.network.link_name(link), *found[link]) for link in sorted(found))
