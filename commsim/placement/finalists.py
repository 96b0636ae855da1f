"""Finalists: candidates that estimates cannot tell apart are simulated, started in the middle of free windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commsim.core.limits import EXPECTED, expect
from commsim.core.units import count_text
from commsim.training.sharing.periodic import PeriodicJob
from commsim.training.sharing.shared_run import PER_USE

from .candidate import PlacementCandidate, simulated
from .cluster import Cluster
from .evaluation import contended, evaluate_placed, inconsistency_of, shifts_of
from .other_hashes import merged, started_at
from .ranking_remarks import PRINTED
from .scored_placements import ScoredPlacement
from .scores import Scores
from .starts.free_windows import centred, windows_at
from .starts.simulated_search import searched

# Estimates are 0.93 to 1.26 times a simulation in eight of ten clusters, so candidates up to this part above the first
# may be better.
ERROR = 0.35
# Seconds in which finalists are simulated: the first one in any case that takes less by itself.
LONGEST = 1.0

# Of the first candidates start times are sought by simulation, too, while jobs are slower than alone.
_SEARCHED = 3
_SLOWER = 1e-4

# Strategy than whose first placement none that comes first is worse.
PACKED = "packed"

Order = Callable[[ScoredPlacement], tuple[float, ...]]


def simulated_first(
    cluster: Cluster, jobs: Sequence[PeriodicJob], kept: list[ScoredPlacement], order: Order, scores: Scores
) -> list[ScoredPlacement]:
    """Simulate the candidates that may be the best, until the first one is simulated or needs no simulation.

    A candidate without contended links needs none: its jobs take what they take alone.

    Returns
    -------
    list of ScoredPlacement
        All, best first.
    """
    seed = scores.settings.seed
    packed = [one for one in kept if one.candidate.generator == PACKED][:1]
    left = LONGEST - sum(_seconds(jobs, one) for one in packed)

    def is_simulated_within(one: ScoredPlacement, longest: float) -> bool:
        return _seconds(jobs, one) <= longest and _simulate(cluster, jobs, one, seed)

    best = kept[0].candidate.stretch if kept else 1.0
    likely = [one for one in kept if one.candidate.stretch <= best * (1 + ERROR)]
    for one in likely:
        left -= _seconds(jobs, one) * is_simulated_within(one, LONGEST if one is likely[0] else left)
    for one in packed:
        is_simulated_within(one, LONGEST)
    kept.sort(key=order)
    searched_for = kept[:_SEARCHED] + [one for one in packed if not any(one is other for other in kept[:_SEARCHED])]
    for one in searched_for if left > 0 else ():
        if one.candidate.prediction == "simulation" and one.candidate.slowdown > 1 + _SLOWER:
            _search(cluster, one, scores)
            _simulate(cluster, jobs, one, seed)
    kept.sort(key=order)
    while kept and is_simulated_within(kept[0], left):
        left -= _seconds(jobs, kept[0])
        kept.sort(key=order)
    return _not_worse(kept, packed)


def _seconds(jobs: Sequence[PeriodicJob], one: ScoredPlacement) -> float:
    """Return the time that it takes to simulate a candidate: for each phase, each use of a full link and each job."""
    n_uses = sum(len(link.jobs) for link in one.candidate.links if link.is_contended)
    return PER_USE * (n_uses + len(jobs)) * sum(len(job.phases) for job in jobs)


def _not_worse(kept: list[ScoredPlacement], packed: Sequence[ScoredPlacement]) -> list[ScoredPlacement]:
    """Put the packed placement first where the first one is worse by less than is printed."""
    for one in packed:
        both = (one.candidate, kept[0].candidate)
        is_known = all(c.prediction == "simulation" or not c.n_contended for c in both)
        if is_known and one.candidate.stretch < kept[0].candidate.stretch:
            return [one, *(other for other in kept if other is not one)]
    return kept


def _simulate(cluster: Cluster, jobs: Sequence[PeriodicJob], one: ScoredPlacement, seed: int) -> bool:
    """Simulate a candidate, unless it is simulated or has no contended links; return whether it was."""
    candidate = one.candidate
    if candidate.prediction == "simulation" or not candidate.n_contended:
        return False
    one.candidate = simulated(cluster, jobs, candidate, seed=_seed(candidate, seed))
    return True


def _search(cluster: Cluster, one: ScoredPlacement, scores: Scores) -> None:
    """Take start times with the least simulated slow-down, unless they are worse with another hash of paths."""
    view, before = scores.on(one.classes), shifts_of(one.candidate, one.jobs)
    shifts = searched(one.classes, view, before, contended(one.classes, view))
    if (shifts != before).any():
        _start_at(cluster, one, scores, shifts)


def _seed(candidate: PlacementCandidate, seed: int) -> int:
    return seed if candidate.hash_seed is None else candidate.hash_seed


def simulate_all(cluster: Cluster, jobs: Sequence[PeriodicJob], kept: Sequence[ScoredPlacement], seed: int) -> None:
    """Simulate candidates, and say which one it is, and how long all that are left will take."""
    left = sum(_seconds(jobs, one) for one in kept)
    for i, one in enumerate(kept, 1):
        EXPECTED.begin(f"simulating candidate {i} of {len(kept)}")
        what = f"{count_text(len(jobs), 'job')} in {count_text(len(kept) - i + 1, 'candidate')}"
        expect(left, what, "fewer --candidates or no --check")
        left -= _seconds(jobs, one)
        one.candidate = simulated(cluster, jobs, one.candidate, seed=_seed(one.candidate, seed))
    EXPECTED.begin("")


def centre(cluster: Cluster, tried: Iterable[ScoredPlacement], scores: Scores) -> None:
    """Move start times to the middle of the free windows, which hold with each hash of paths."""
    for one in tried:
        if not one.candidate.n_contended:
            continue
        view = scores.on(one.classes)
        links = merged([links for way in one.ways for links in contended(way, scores.on(way))])
        before = shifts_of(one.candidate, one.jobs)
        shifts, windows = centred(links, view, before)
        if (shifts != before).any() and not _start_at(cluster, one, scores, shifts):
            windows = windows_at(links, view, before)
        start = [one.candidate.shifts[job.name] for job in one.jobs]
        found = {one.jobs[j].name: (start[j] - early, start[j] + late) for j, (early, late) in windows.items()}
        one.candidate = replace(one.candidate, windows=found)


def _start_at(cluster: Cluster, one: ScoredPlacement, scores: Scores, shifts: NDArray[np.float64]) -> bool:
    """Score a candidate with other start times; return whether they are kept, as they are unless they are worse."""
    old = one.hashes, one.classes, one.candidate
    name = one.candidate.generator
    if one.hashes is None:
        one.candidate = evaluate_placed(cluster, name, one.jobs, one.classes, scores, "merged", shifts)
    else:
        one.hashes = started_at(cluster, one.hashes, (name, one.jobs), scores, shifts)
        one.candidate, one.classes = one.hashes.candidate, one.hashes.seeds[one.hashes.median][2]
    if _worse(one.candidate) > _worse(old[2]):
        one.hashes, one.classes, one.candidate = old
        return False
    # the middle of a window is as good as the start that a link would choose
    before = inconsistency_of(old[2], one.jobs, old[1], scores)
    now = inconsistency_of(one.candidate, one.jobs, one.classes, scores) if before else 0.0
    one.candidate = replace(one.candidate, inconsistency=min(before, now))
    return True


def _worse(candidate: PlacementCandidate) -> tuple[float, float]:
    """Return the worst and the median stretch over the hashes of paths, as they are printed."""
    median = round(candidate.slowdown_estimated, PRINTED)
    return round(candidate.stretch_worst or 0.0, PRINTED), median
