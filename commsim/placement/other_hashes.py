"""Placements with other seeds of the hash that chooses paths: start times that hold with the worst of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.workload.sharing.periodic import PeriodicJob

from .affinity import components
from .candidate import Candidate, simulated
from .cluster import Cluster
from .evaluation import contended, evaluate_placed, use_of
from .iteration_times import alone_times, estimate, mean_ratio
from .joint_shifts import joint_shifts
from .link_classes import LinkClass, Scores, link_classes
from .ranking_remarks import OTHER_SEEDS, contention

_DIGITS = 4  # of slow-downs that differ


Way: TypeAlias = tuple[int, tuple[object, ...], list[LinkClass]]


@dataclass(frozen=True, slots=True)
class OfHashes:
    """A placement with all seeds.

    Parameters
    ----------
    candidate : Candidate
        Candidate as scored with the first seed, at start times that hold for all.
    seeds : tuple of (int, tuple, list of LinkClass)
        Each seed with what decides the scores (:func:`commsim.placement.ranking_remarks.contention`), and the links.
    """

    candidate: Candidate
    seeds: tuple[Way, ...]

    @property
    def ways(self) -> tuple[Way, ...]:
        """The first seed of each way in which the jobs contend."""
        first: dict[tuple[object, ...], Way] = {}
        for way in self.seeds:
            first.setdefault(way[1], way)
        return tuple(first.values())


def with_other_seeds(
    cluster: Cluster,
    placed: Sequence[tuple[str, Sequence[PeriodicJob]]],
    use: NDArray[np.float64],
    scored: Sequence[Candidate],
    scores: Scores,
    loops: str,
) -> list[OfHashes]:
    """Find the largest estimate of each candidate with any seed, and start times with which it is less.

    Parameters
    ----------
    use : float64[n_placements, n_jobs, n_links]
        How many times its rate each job sends over each link, with the first seed.
    loops : {"merged", "literal"}
        With ``literal`` start times stay those of the paper, which knows one path.

    Returns
    -------
    list of OfHashes
        In the order of the candidates. Where jobs contend otherwise with another seed, start times are also sought for
        the links of all seeds together, and taken if the worst estimate is less, or the same and the first seed's less.
    """
    seeds: list[list[Way]] = [[] for _ in placed]
    for seed in range(scores.settings.seed, scores.settings.seed + OTHER_SEEDS + 1):
        if seed > scores.settings.seed:
            use = use_of(cluster, placed, seed, scores)
        for of, rows in zip(seeds, use, strict=True):
            classes = link_classes(cluster.network, rows)
            of.append((seed, contention(classes, scores), classes))
    found = [OfHashes(one, tuple(of)) for one, of in zip(scored, seeds, strict=True)]
    return [_held(cluster, *one, scores, loops) for one in zip(found, placed, strict=True)]


def _held(
    cluster: Cluster, hashes: OfHashes, placed: tuple[str, Sequence[PeriodicJob]], scores: Scores, loops: str
) -> OfHashes:
    """Add the worst estimate, and take other start times where it is less with them."""
    generator, jobs = placed
    each = [classes for _, _, classes in hashes.ways]
    periods = np.array([job.period for job in jobs])

    def with_worst(candidate: Candidate, shifts: NDArray[np.float64]) -> Candidate:
        others = [(estimate(jobs, classes, scores, shifts), alone_times(jobs, classes)) for classes in each[1:]]
        return replace(
            candidate,
            slowdown_worst=max([candidate.slowdown_estimated, *(mean_ratio(*one) for one in others)]),
            stretch_worst=max([candidate.stretch, *(mean_ratio(times, periods) for times, _ in others)]),
        )

    shifts = shifts_of(hashes.candidate, jobs)
    first = with_worst(hashes.candidate, shifts)
    if loops == "literal" or _order(first)[0] <= _order(first)[1]:
        return replace(hashes, candidate=first)
    links = _merged([links for classes in each for links in contended(classes, scores)])
    for part in components([one.jobs for one in links]):
        shifts = joint_shifts([links[i] for i in part.links], scores, shifts)
    other = with_worst(evaluate_placed(cluster, generator, jobs, each[0], scores, loops, shifts), shifts)
    return replace(hashes, candidate=min(first, other, key=_order))


def _merged(classes: Sequence[LinkClass]) -> list[LinkClass]:
    """Put links of several seeds on which the same jobs demand the same into one class."""
    merged: dict[tuple[tuple[int, ...], bytes], list[LinkClass]] = {}
    for links in classes:
        merged.setdefault((links.jobs, links.part.tobytes()), []).append(links)
    return [replace(same[0], links=np.concatenate([links.links for links in same])) for same in merged.values()]


def _order(candidate: Candidate) -> tuple[float, float]:
    return round(candidate.stretch_worst or 0.0, _DIGITS), round(candidate.stretch, _DIGITS)


def shifts_of(candidate: Candidate, jobs: Sequence[PeriodicJob]) -> NDArray[np.float64]:
    """Shifts of jobs as :class:`Scores` has them, float64[n_jobs], s: 0 for those with a fixed start."""
    return np.array([candidate.shifts[job.name] if job.start is None else 0.0 for job in jobs])


def values_of(
    cluster: Cluster, jobs: Sequence[PeriodicJob], best: Candidate, hashes: OfHashes, scores: Scores, rank_by: str
) -> list[float]:
    """Return the different values that rank the best candidate, at its start times, with each seed."""
    shifts, found = shifts_of(best, jobs), [best]
    # Equal contention has equal scores, but for weights: links that nobody can overload have some, too.
    for seed, _, classes in (hashes.seeds if rank_by == "weighted" else hashes.ways)[1:]:
        one = evaluate_placed(cluster, best.generator, jobs, classes, scores, "merged", shifts)
        is_simulated = best.prediction == "simulation" and rank_by == "slowdown"
        found.append(simulated(cluster, jobs, one, seed=seed) if is_simulated else one)
    return [one.value(rank_by) for one in found]
