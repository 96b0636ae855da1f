"""Scores placements that were made, tries more where jobs lose time, and returns them in order with remarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from commsim.placement.cluster import Cluster
from commsim.placement.evaluation import inconsistency_of
from commsim.placement.finalists import ERROR, PACKED, Order, centre, simulate_all, simulated_first
from commsim.placement.nic_counts import few_nics
from commsim.placement.other_hashes import values_of
from commsim.placement.ranking import PlacementRanking
from commsim.placement.ranking_remarks import (
    agreement,
    disagreements,
    ended_early,
    estimated,
    few_tried,
    going_on,
    notes_of,
    other_paths,
    short_phases,
    slow_alone,
)
from commsim.placement.rankings import load_ranking
from commsim.placement.scored_placements import Placed, ScoredPlacement, tried_of, tried_with_more
from commsim.placement.scores import Scores, ScoreSettings
from commsim.training.sharing.periodic import PeriodicJob

# The first is the default.
RANKINGS = ("stretch", "mean", "min", "weighted")
_CENTRED = 40  # candidates whose start times are moved to the middle of their windows


@dataclass(frozen=True, slots=True)
class Least:
    """What the jobs lose wherever those that are to be placed go: mean slow-down and stretch, estimated."""

    slowdown: float
    stretch: float


NOTHING_LOST = Least(1.0, 1.0)


def ranked(
    cluster: Cluster,
    jobs: tuple[PeriodicJob, ...],
    placed: Sequence[Placed],
    loops: str,
    rank_by: str,
    check: bool | None,
    settings: ScoreSettings,
    n_wanted: int = 0,
    least: Least = NOTHING_LOST,
) -> PlacementRanking:
    """Rank placements of the same jobs.

    Parameters
    ----------
    cluster : Cluster
        Cluster on which the jobs are placed.
    jobs : tuple of PeriodicJob
        Jobs as they were asked for.
    placed : sequence of (str, sequence of PeriodicJob)
        Placements, and by which strategy.
    loops, rank_by, check, settings
        Same as in :func:`commsim.place_jobs`.
    n_wanted : int
        Candidates that are wanted; 0 where no more are to be tried.
    least : Least
        What the jobs lose in every placement: one that loses no more is not slow.

    Returns
    -------
    PlacementRanking
    """
    own = load_ranking(rank_by, RANKINGS)
    scores = Scores(jobs, settings)

    def order(candidate: ScoredPlacement) -> tuple[float, ...]:
        if own is None:
            return candidate.order(rank_by)
        return own(candidate.candidate, cluster), *candidate.order("stretch")

    tried = tried_with_more(
        cluster, jobs, placed, lambda some: tried_of(cluster, some, loops, scores, least.stretch), order,
        n_wanted if loops != "literal" and rank_by == "stretch" else 0, settings.seed,
    )  # fmt: skip
    n_tried = len(tried)
    if n_tried > len(placed):
        packed = [candidate for candidate in tried if candidate.generator == PACKED][:1]
        best = {id(candidate) for candidate in packed}
        for candidate in sorted(tried, key=order):
            if len(best) < n_wanted:
                best.add(id(candidate))
        tried = [candidate for candidate in tried if id(candidate) in best]
    kept = [candidate for candidate in tried if not (loops == "literal" and candidate.candidate.has_loop)]
    kept.sort(key=order)
    kept = _checked(cluster, jobs, kept, order, loops == "literal", rank_by, check, scores)
    for one in tried:  # those that are left, and not all that were tried: it may be a search for each link
        away = inconsistency_of(one.candidate, one.jobs, one.classes, scores)
        value = None if own is None else own(one.candidate, cluster)
        one.candidate = replace(one.candidate, inconsistency=away, own_value=value)
    discarded = tuple(one.candidate for one in tried if loops == "literal" and one.candidate.has_loop)
    in_order = [candidate.candidate for candidate in kept]
    notes = [*going_on(jobs), *short_phases(scores.blurred()), *notes_of([*in_order, *discarded], discarded)]
    notes += ended_early(n_wanted, len(placed), scores.descended)
    notes += estimated([one for one in in_order[:1] if one.prediction == "estimate"])
    notes += slow_alone(cluster.network, jobs, [candidate.use for candidate in kept])
    differ = [
        number
        for number, candidate in enumerate(kept, 1)
        if candidate.hashes is not None and len(candidate.hashes.ways) > 1
    ]
    if own is None and differ and kept[0].hashes is not None:
        values = values_of(cluster, kept[0].jobs, in_order[0], kept[0].hashes, scores, rank_by)
        notes += other_paths(rank_by, settings.hashes, values, differ)
    notes += [*agreement(in_order), *disagreements(in_order)] if check else []
    notes += few_nics([candidate.nics for candidate in kept])
    notes += few_tried(n_wanted, n_tried, in_order, least.slowdown)
    return PlacementRanking(tuple(in_order), discarded, tuple(notes), n_tried)


def _checked(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    kept: list[ScoredPlacement],
    order: Order,
    is_literal: bool,
    rank_by: str,
    check: bool | None,
    scores: Scores,
) -> list[ScoredPlacement]:
    """Simulate all candidates, or the finalists, at start times in the middle of free windows; return them in order."""
    is_of_finalists = check is None and rank_by == "stretch"
    if not is_literal:
        best = kept[0].candidate.stretch * (1 + ERROR) if kept else 0.0
        centre(cluster, [one for one in kept if check or one.candidate.stretch <= best][:_CENTRED], scores)
    if is_of_finalists:
        return simulated_first(cluster, jobs, kept, order, scores)
    if check:
        simulate_all(cluster, jobs, kept, scores.settings.seed)
        kept.sort(key=order)
    return kept
