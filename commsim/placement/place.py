"""Ranks candidate placements of jobs by link scores (CASSINI, algorithms 1 and 2)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, wrong_kind
from commsim.core.frames import frame_of
from commsim.limits import EXPECTED
from commsim.workload.sharing.periodic import JobsLike, PeriodicJob, read_jobs

from .affinity import SharedLink, components, inconsistency, traverse
from .candidate import Candidate, ContendedLink, counted_names, disagreements, estimate, simulated, slow_alone
from .cluster import Cluster, ClusterLike, read_cluster
from .joint_shifts import joint_shifts
from .link_classes import LinkClass, Scores, Settings, link_classes
from .link_use import link_uses
from .score import score_at
from .strategies import candidates

LOOPS = ("merged", "literal")
RANKINGS = ("mean", "min", "weighted")


def evaluate(
    cluster: ClusterLike, jobs: JobsLike, *, loops: str = "merged", settings: Settings | None = None
) -> Candidate:
    """Score the placement that jobs have; takes clusters and jobs as :func:`place_jobs` does."""
    return evaluate_all(read_cluster(cluster), [("given", read_jobs(jobs))], loops=loops, settings=settings)[0]


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
        Cluster whose routes say which links are shared.
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
    unplaced_jobs = [job.name for _, jobs in placed for job in jobs if job.placement is None]
    if unplaced_jobs:
        raise InputError(f"job {unplaced_jobs[0]} has no placement to evaluate")
    use = link_uses(cluster, [job.placement or () for _, jobs in placed for job in jobs], settings.seed)
    scores = Scores(placed[0][1], settings)
    use = use.reshape(len(placed), -1, cluster.network.n_links) * (scores.peak > 0)[:, None]
    classes = [link_classes(cluster.network, rows) for rows in use]
    for links in itertools.chain(*classes):  # a step that a circle cannot have is refused before the first search
        if len(links.jobs) > 1:
            scores.circle(links.jobs)
    return [
        _evaluate(cluster, name, jobs, rows, scores, loops == "literal")
        for (name, jobs), rows in zip(placed, classes, strict=True)
    ]


def _evaluate(
    cluster: Cluster,
    generator: str,
    jobs: Sequence[PeriodicJob],
    classes: Sequence[LinkClass],
    scores: Scores,
    literal: bool,
) -> Candidate:
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
    rows = {}
    for links in shared:
        sharing, circle = list(links.jobs), scores.circle(links.jobs)
        score = float(score_at(circle, links.part[None], shifts[sharing])[0]) if scores.is_tight(links) else 1.0
        share = float(links.part @ circle.demand[:, circle.reach :].mean(axis=1))
        for link in links.links.tolist():
            demand = share * float(cluster.network.bandwidth[link])
            rows[link] = (tuple(names[j] for j in sharing), score, demand)
    return tuple(ContendedLink(cluster.network.link_name(link), *rows[link]) for link in sorted(rows))


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates in order.

    Parameters
    ----------
    candidates : tuple of Candidate
        Best first; of equals the one that was made first.
    discarded : tuple of Candidate
        Those with a loop, under the literal rule.
    notes : tuple of str
        What the user should know about the scores.
    """

    candidates: tuple[Candidate, ...]
    discarded: tuple[Candidate, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """Return a line for each candidate: its rank, scores and placement."""
        lines = [
            f"{rank}: score {one.score_mean:.4f} (least {one.score_min:.4f}), by {one.generator}: {_places(one)}"
            for rank, one in enumerate(self.candidates, 1)
        ]
        return "\n".join([*lines, *(f"# {note}" for note in self.notes)]) or "no candidates"

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each candidate, with its rank, as a data frame of pandas or polars."""
        rows = ({"rank": rank, **candidate.row()} for rank, candidate in enumerate(self.candidates, 1))
        return frame_of(rows, library)


def _places(candidate: Candidate) -> str:
    return ", ".join(f"{job} on {counted_names(nodes)}" for job, nodes in candidate.placement.items())


def place_jobs(
    cluster: ClusterLike,
    jobs: JobsLike,
    *,
    n: int = 10,
    generators: Sequence[str] = ("packed", "spread", "random"),
    loops: str = "merged",
    rank_by: str = "mean",
    check: bool = False,
    settings: Settings | None = None,
) -> Ranking:
    """Rank ways to place jobs by what the network thinks of them.

    Parameters
    ----------
    cluster : Cluster, path or dict
        Cluster to place the jobs on, as :func:`commsim.read_cluster` takes it.
    jobs : sequence of PeriodicJob or of dict, or path
        Jobs, as :func:`commsim.read_jobs` takes them; those with a placement stay.
    n : int
        Candidates in all, at most; the strategies alternate.
    generators : sequence of str
        Same as in :func:`commsim.placement.strategies.candidates`.
    loops : {"merged", "literal"}
        Same as in :func:`commsim.placement.place.evaluate_all`; under the literal rule candidates with a loop are
        discarded, as the paper does.
    rank_by : {"mean", "min", "weighted"}
        Score of the links that counts. Equal scores are ranked by the number of contended links, then by the predicted
        slow-down, then by the order in which they were made.
    check : bool
        Simulate every candidate, predict iteration times from that, and note where scores and simulation disagree.
        Without it they are estimates (:mod:`commsim.placement.candidate`).
    settings : Settings, optional
        How scores are found.

    Returns
    -------
    Ranking

    Raises
    ------
    InputError
        If a name is unknown, or the cluster has no room.
    """
    cluster, jobs = read_cluster(cluster), read_jobs(jobs)
    settings = settings or Settings()
    placed = _in_turn(cluster, jobs, generators, n, settings.seed)
    return _ranked(cluster, jobs, placed, loops, rank_by, check, settings)


def rank_placements(
    cluster: ClusterLike,
    placed: Mapping[str, JobsLike],
    *,
    loops: str = "merged",
    rank_by: str = "mean",
    check: bool = False,
    settings: Settings | None = None,
) -> Ranking:
    """Rank placements of your own, such as those that a scheduler considers.

    Parameters
    ----------
    cluster : Cluster, path or dict
        Cluster on which the jobs are placed, as :func:`commsim.read_cluster` takes it.
    placed : mapping of str to jobs
        By name, which the ranking shows as the generator: the same jobs each time, all with a placement.
    loops, rank_by, check, settings
        Same as in :func:`place_jobs`.

    Returns
    -------
    Ranking

    Raises
    ------
    InputError
        If the jobs are not the same each time, one has no placement, or a placement is not one of the cluster.
    """
    if not isinstance(placed, Mapping):
        raise wrong_kind("placed", "a dict of jobs by name", placed)
    cluster, read = read_cluster(cluster), {name: read_jobs(jobs) for name, jobs in placed.items()}
    if not read:
        raise InputError("rank_placements needs at least one placement")
    first, jobs = next(iter(read.items()))
    for name, others in read.items():
        if [replace(job, placement=None) for job in others] != [replace(job, placement=None) for job in jobs]:
            raise InputError(f"{name}: its jobs must be those of {first}, but for their placements")
        unplaced = [job.name for job in others if job.placement is None]
        if unplaced:
            raise InputError(f"{name}: job {unplaced[0]} needs a placement, to be compared with others")
    return _ranked(cluster, jobs, list(read.items()), loops, rank_by, check, settings or Settings())


def _ranked(
    cluster: Cluster,
    jobs: tuple[PeriodicJob, ...],
    placed: Sequence[tuple[str, Sequence[PeriodicJob]]],
    loops: str,
    rank_by: str,
    check: bool,
    settings: Settings,
) -> Ranking:
    if rank_by not in RANKINGS:
        raise InputError(f"unknown ranking {rank_by!r}; known: {', '.join(RANKINGS)}")
    scored = evaluate_all(cluster, placed, loops=loops, settings=settings)
    ranked = [c for c in scored if not (loops == "literal" and c.has_loop)]
    if check:
        ranked = _simulated(cluster, jobs, ranked, settings.seed)
    key = f"score_{rank_by}"
    ranked.sort(key=lambda c: (-round(getattr(c, key), 9), len(c.links), round(_total_slowdown(jobs, c), 9)))
    discarded = tuple(c for c in scored if loops == "literal" and c.has_loop)
    notes = [*_notes([*ranked, *discarded], discarded), *(disagreements(jobs, ranked, key) if check else ())]
    notes += slow_alone(cluster, jobs, ranked, settings.seed)
    return Ranking(tuple(ranked), discarded, tuple(notes))


def _simulated(cluster: Cluster, jobs: Sequence[PeriodicJob], ranked: list[Candidate], seed: int) -> list[Candidate]:
    """Simulate candidates, and say which one it is."""
    found = []
    for i, candidate in enumerate(ranked, 1):
        EXPECTED.part = f"simulating candidate {i} of {len(ranked)}"
        found.append(simulated(cluster, jobs, candidate, seed=seed))
    EXPECTED.part = ""
    return found


def _in_turn(
    cluster: Cluster, jobs: Sequence[PeriodicJob], generators: Sequence[str], n: int, seed: int
) -> list[tuple[str, tuple[PeriodicJob, ...]]]:
    """Take candidates of the strategies in turn, each placement once."""
    if not generators:
        raise InputError("placing needs at least one generator")
    made = [[(name, jobs) for jobs in candidates(cluster, jobs, name, n, seed)] for name in dict.fromkeys(generators)]
    chosen: dict[tuple[object, ...], tuple[str, tuple[PeriodicJob, ...]]] = {}
    for i in range(n):
        for row in made:
            if i < len(row) and len(chosen) < n:
                chosen.setdefault(tuple(job.placement for job in row[i][1]), row[i])
    return list(chosen.values())


def _total_slowdown(jobs: Sequence[PeriodicJob], candidate: Candidate) -> float:
    return sum(candidate.predicted[job.name] / job.period for job in jobs)


def _notes(found: Sequence[Candidate], discarded: Sequence[Candidate]) -> list[str]:
    notes = []
    if discarded:
        notes.append(f"{len(discarded)} of {len(found)} candidates have a loop and are discarded; merged keeps them")
    away = max((c.inconsistency for c in found), default=0.0)
    if away:
        many = sum(c.inconsistency > 0 for c in found)
        notes.append(f"time-shift inconsistency: up to {away * 1e3:.4g} ms, in the loops of {many} candidates")
    rounding = max((c.rounding for c in found), default=0.0)
    if rounding > 1e-12:
        notes.append(f"iteration times rounded by up to {rounding * 1e3:.4g} ms to have common multiples")
    if any(c.n_cut_off for c in found):
        notes.append("hyperperiod truncated: some iteration times have no common multiple below the longest perimeter")
    return notes
