"""Placements with several hashes of paths: the median one, and start times that hold with the worst of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.placement.starts.affinity import components
from commsim.training.sharing.periodic import PeriodicJob

from .candidate import PlacementCandidate, simulated
from .cluster import Cluster
from .evaluation import contended, evaluate_placed, links_of_jobs, shifts_of
from .iteration_times import estimate, mean_ratio
from .link_classes import LinkClass, PlacedLinks
from .ranking_remarks import contention
from .scores import Scores
from .starts.joint_shifts import joint_shifts

_DIGITS = 4  # of slow-downs that differ


Way: TypeAlias = tuple[int, tuple[object, ...], PlacedLinks]


@dataclass(frozen=True, slots=True)
class OfHashes:
    """A placement with all seeds.

    Parameters
    ----------
    candidate : PlacementCandidate
        Candidate as scored with the seed of the median stretch, at start times that hold for all.
    seeds : tuple of (int, tuple, PlacedLinks)
        Each seed with what decides the scores (:func:`commsim.placement.ranking_remarks.contention`), and the links.
    median : int
        Position of the candidate's own.
    """

    candidate: PlacementCandidate
    seeds: tuple[Way, ...]
    median: int = 0

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
    first: Sequence[PlacedLinks],
    scored: Sequence[PlacementCandidate],
    scores: Scores,
    loops: str,
) -> list[OfHashes]:
    """Find the candidates with the median hash, the best and the worst, and start times with which the worst is less.

    Parameters
    ----------
    first : sequence of PlacedLinks
        Links of each placement with the first seed.
    loops : {"merged", "literal"}
        With ``literal`` start times stay those of the paper, which knows one path.

    Returns
    -------
    list of OfHashes
        In the order of the candidates. Where jobs contend otherwise with another seed, start times are also sought for
        the links of all seeds together, and taken if the worst estimate is less, or the same and the first seed's less.
    """
    seeds: list[list[Way]] = [[] for _ in placed]
    for number, seed in enumerate(scores.settings.hash_seeds):
        ways = links_of_jobs(cluster, placed, seed, scores)[1] if number else first
        for of, classes in zip(seeds, ways, strict=True):
            of.append((seed, contention(classes, scores.on(classes)), classes))
    found = [OfHashes(candidate, tuple(of)) for candidate, of in zip(scored, seeds, strict=True)]
    return [_with_worst(cluster, *candidate, scores, loops) for candidate in zip(found, placed, strict=True)]


@dataclass(frozen=True, slots=True)
class _Spread:
    """Estimates at some start times with each hash: mean slow-down and stretch of the jobs."""

    shifts: NDArray[np.float64]
    slowdown: tuple[float, ...]
    stretch: tuple[float, ...]

    @property
    def median(self) -> int:
        """Position of the first hash with the median stretch, the lower one of an even number."""
        return self.stretch.index(sorted(self.stretch)[(len(self.stretch) - 1) // 2])

    @property
    def order(self) -> tuple[float, float]:
        """Worst and median stretch, as they are printed."""
        return round(max(self.stretch), _DIGITS), round(self.stretch[self.median], _DIGITS)


def _spread(hashes: OfHashes, jobs: Sequence[PeriodicJob], scores: Scores, shifts: NDArray[np.float64]) -> _Spread:
    """Estimate the jobs at some start times with each hash."""
    periods, found = np.array([job.period for job in jobs]), {}
    for _, way, classes in hashes.ways:
        view = scores.on(classes)
        times = estimate(classes, view, shifts)
        found[way] = mean_ratio(times, view.period), mean_ratio(times, periods)
    slowdown, stretch = zip(*(found[way] for _, way, _ in hashes.seeds), strict=True)
    return _Spread(shifts, slowdown, stretch)


def _with_worst(
    cluster: Cluster, hashes: OfHashes, placed: tuple[str, Sequence[PeriodicJob]], scores: Scores, loops: str
) -> OfHashes:
    """Take the median hash, and other start times where the worst one is less with them."""
    jobs = placed[1]
    each = [classes for _, _, classes in hashes.ways]
    shifts = shifts_of(hashes.candidate, jobs)
    first = chosen = _spread(hashes, jobs, scores, shifts)
    # start times were sought for the first hash
    if loops != "literal" and first.order[0] > round(first.stretch[0], _DIGITS):
        links = merged([links for classes in each for links in contended(classes, scores.on(classes))])
        for part in components([link.jobs for link in links]):
            shifts = joint_shifts([links[i] for i in part.links], scores.on(each[0]), shifts)
        chosen = min(first, _spread(hashes, jobs, scores, shifts), key=lambda one: one.order)
    return _at(cluster, hashes, placed, scores, loops, chosen)


def started_at(
    cluster: Cluster,
    hashes: OfHashes,
    placed: tuple[str, Sequence[PeriodicJob]],
    scores: Scores,
    shifts: NDArray[np.float64],
) -> OfHashes:
    """Return a candidate with other start times, s, and the median hash of these."""
    return _at(cluster, hashes, placed, scores, "merged", _spread(hashes, placed[1], scores, shifts))


def _at(
    cluster: Cluster,
    hashes: OfHashes,
    placed: tuple[str, Sequence[PeriodicJob]],
    scores: Scores,
    loops: str,
    chosen: _Spread,
) -> OfHashes:
    """Score a candidate with the hash that has the median estimate at its start times."""
    generator, jobs = placed
    # the literal rule knows one path, by which it also discards candidates
    median = 0 if loops == "literal" else chosen.median
    seed, way, classes = hashes.seeds[median]
    candidate = hashes.candidate
    if (chosen.shifts != shifts_of(candidate, jobs)).any() or way != hashes.seeds[hashes.median][1]:
        candidate = evaluate_placed(cluster, generator, jobs, classes, scores, loops, chosen.shifts)
    low, high = min(chosen.slowdown), max(chosen.slowdown)
    candidate = replace(
        candidate, slowdown_best=low, slowdown_worst=high, stretch_worst=max(chosen.stretch), hash_seed=seed
    )
    return replace(hashes, candidate=candidate, median=median)


def merged(classes: Sequence[LinkClass]) -> list[LinkClass]:
    """Put links of several seeds on which the same jobs demand the same into one class."""
    merged: dict[tuple[tuple[int, ...], bytes], list[LinkClass]] = {}
    for links in classes:
        merged.setdefault((links.jobs, links.part.tobytes()), []).append(links)
    return [replace(same[0], links=np.concatenate([links.links for links in same])) for same in merged.values()]


def values_of(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    best: PlacementCandidate,
    hashes: OfHashes,
    scores: Scores,
    rank_by: str,
) -> list[float]:
    """Return the values that rank the best candidate, at its start times, with each hash that differs."""
    shifts, own, found = shifts_of(best, jobs), hashes.seeds[hashes.median], [best]
    # Equal contention has equal scores, but for weights: links that nobody can overload have some, too.
    for seed, way, classes in hashes.seeds if rank_by == "weighted" else hashes.ways:
        if seed == own[0] or (rank_by != "weighted" and way == own[1]):
            continue
        one = evaluate_placed(cluster, best.generator, jobs, classes, scores, "merged", shifts)
        is_simulated = best.prediction == "simulation" and rank_by == "stretch"
        found.append(simulated(cluster, jobs, one, seed=seed) if is_simulated else one)
    return [candidate.value(rank_by) for candidate in found]


def use_in(network: Network, classes: Sequence[LinkClass], n_jobs: int) -> NDArray[np.float64]:
    """Return how many times its rate each job sends over each link of some classes, float64[n_jobs, n_links]."""
    use = np.zeros((n_jobs, network.n_links))
    for one in classes:
        use[np.ix_(np.array(one.jobs), one.links)] = np.outer(one.part, network.bandwidth[one.links])
    return use
