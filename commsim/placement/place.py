"""Place jobs: make candidates, score them, and rank them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.workload.sharing.periodic import PeriodicJob

from .candidate import Candidate
from .check import disagreements, simulated
from .cluster import Cluster
from .evaluate import evaluate_all
from .generators import candidates
from .link_use import Settings

RANKINGS = ("mean", "min", "weighted")


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


def place_jobs(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
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
    cluster : Cluster
        Where to.
    jobs : sequence of PeriodicJob
        Those with a placement stay.
    n : int
        Candidates in all, at most; the generators take turns.
    generators : sequence of str
        As in :func:`commsim.placement.generators.candidates`.
    loops : {"merged", "literal"}
        As in :func:`commsim.placement.evaluate.evaluate_all`; under the literal rule candidates with a loop are
        discarded, as the paper does.
    rank_by : {"mean", "min", "weighted"}
        Which score of the links counts. Equal scores are ranked by the predicted slow-down, then by the order in which
        they were made.
    check : bool
        Simulate every candidate, predict iteration times from that, and note where scores and simulation disagree.
        Without it they are estimates (:mod:`commsim.placement.check`).
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
    if rank_by not in RANKINGS:
        raise InputError(f"unknown ranking {rank_by!r}; known: {', '.join(RANKINGS)}")
    settings = settings or Settings()
    placed = _in_turn(cluster, jobs, generators, n, settings.seed)
    found = evaluate_all(cluster, placed, loops=loops, settings=settings)
    kept = [c for c in found if not (loops == "literal" and c.has_loop)]
    if check:
        kept = [simulated(cluster, jobs, candidate, seed=settings.seed) for candidate in kept]
    key = f"score_{rank_by}"
    kept.sort(key=lambda c: (-round(getattr(c, key), 9), round(_total_slowdown(jobs, c), 9)))
    discarded = tuple(c for c in found if loops == "literal" and c.has_loop)
    notes = [*_notes([*kept, *discarded], discarded), *(disagreements(jobs, kept, key) if check else ())]
    return Ranking(tuple(kept), discarded, tuple(notes))


def _in_turn(
    cluster: Cluster, jobs: Sequence[PeriodicJob], generators: Sequence[str], n: int, seed: int
) -> list[tuple[str, tuple[PeriodicJob, ...]]]:
    """Take candidates of the generators in turn, each placement once."""
    if not generators:
        raise InputError("placing needs at least one generator")
    made = [[(name, jobs) for jobs in candidates(cluster, jobs, name, n, seed)] for name in dict.fromkeys(generators)]
    found: dict[tuple[object, ...], tuple[str, tuple[PeriodicJob, ...]]] = {}
    for i in range(n):
        for row in made:
            if i < len(row) and len(found) < n:
                found.setdefault(tuple(job.placement for job in row[i][1]), row[i])
    return list(found.values())


def _total_slowdown(jobs: Sequence[PeriodicJob], candidate: Candidate) -> float:
    return sum(candidate.predicted[job.name] / job.period for job in jobs)


def _notes(found: Sequence[Candidate], discarded: Sequence[Candidate]) -> list[str]:
    notes = []
    if discarded:
        notes.append(f"{len(discarded)} of {len(found)} candidates have a loop and are discarded; merged keeps them")
    away = max((c.inconsistency for c in found), default=0.0)
    if away:
        many = sum(c.inconsistency > 0 for c in found)
        notes.append(
            f"{many} candidates have loops: jobs start up to {away * 1e3:.4g} ms away from what one link wants"
        )
    rounding = max((c.rounding for c in found), default=0.0)
    if rounding > 1e-12:
        notes.append(f"iteration times were changed by up to {rounding * 1e3:.4g} ms to find common multiples")
    if any(c.n_cut_off for c in found):
        notes.append("some iteration times have no common multiple below the longest perimeter: circles were cut off")
    return notes
