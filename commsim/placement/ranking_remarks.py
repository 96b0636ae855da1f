"""Remarks on a ranking: what its scores leave out, round or depend on, and where simulations order otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_bandwidth
from commsim.placement.starts.circles import Circle
from commsim.placement.starts.link_scores import STARTS
from commsim.training.sharing.periodic import PeriodicJob

from .candidate import PlacementCandidate
from .link_classes import LinkClass
from .scores import Scores
from .strategies import TRIES

# Candidates or jobs that are named in one remark.
MAX_NAMED = 3
_SAME = 1e-3
# Part of an estimate by which a simulated slow-down differs much.
MUCH = 0.01
# Times as many placements as were tried that are tried in all, or that a remark advises, and the most of these.
MORE, MOST_ADVISED = 4, 100
# Digits of slow-downs, as they are printed.
PRINTED = 4
# Candidates of which a rank correlation says something.
FEWEST_RANKED = 4


def slow_alone(network: Network, jobs: Sequence[PeriodicJob], use: Sequence[NDArray[np.float64]]) -> list[Remark]:
    """Name the candidates in which a job asks more of a link than it has, without any other job.

    Parameters
    ----------
    use : sequence of float64[n_jobs, n_links]
        How many times its rate each job sends over each link, in the candidates' order.

    Returns
    -------
    list of Remark
        One line for each job and the link that it overloads the most, with the candidates, numbered from 1, of which
        it is the worst; and how many more candidates there are.
    """
    found: dict[str, tuple[float, list[int]]] = {}
    peak = np.array([0.0 if job.is_demand else job.peak_rate for job in jobs])  # demand takes what it needs
    for number, rows in enumerate(use, 1):
        wanted = rows * peak[:, None]
        over = wanted / network.bandwidth
        if over.size and over.max() > 1 + _SAME:
            job, link = map(int, np.unravel_index(int(over.argmax()), over.shape))
            rates = format_bandwidth(wanted[job, link]), format_bandwidth(network.bandwidth[link])
            text = f"job {jobs[job].name} alone needs {rates[0]} of {network.link_name(link)} ({rates[1]})"
            found.setdefault(text, (float(over[job, link] - 1), []))[1].append(number)
    remarks = [
        Remark("slow-alone", f"{_numbers_text(numbers)}: {text}", by, needed=1 in numbers)
        for text, (by, numbers) in list(found.items())[:MAX_NAMED]
    ]
    more = sum(len(numbers) for _, numbers in list(found.values())[MAX_NAMED:])
    rest = f"so do jobs of {count_text(more, 'more candidate')}"
    return [*remarks, Remark("slow-alone", rest)] if more else remarks


def other_paths(rank_by: str, n_hashes: int, values: Sequence[float], others: Sequence[int]) -> list[Remark]:
    """Say how the ranking depends on the hash that chooses paths.

    Parameters
    ----------
    rank_by : {"stretch", "mean", "min", "weighted"}
        What ranks.
    n_hashes : int
        Number of hashes that were drawn.
    values : sequence of float
        Different values of the first candidate, at its start times, with these.
    others : sequence of int
        Candidates, numbered from 1, whose jobs contend otherwise with another hash; at least one.

    Returns
    -------
    list of Remark
        One line.
    """
    low, high = f"{min(values):.4f}", f"{max(values):.4f}"
    of_best = low if low == high else f"{low} to {high}"
    key = rank_by if rank_by == "stretch" else f"score_{rank_by}"
    told = f"over {n_hashes} hashes of paths, candidate 1 has a {key} of {of_best}"
    effect = max(values) / min(values) - 1 if min(values) > 0 else None
    return [Remark("hash", told, effect, details=f"jobs contend on other links in {_numbers_text(others)}")]


def _numbers_text(numbers: Sequence[int]) -> str:
    return f"candidate{'s' if len(numbers) > 1 else ''} {_first_of([*map(str, numbers)])}"


def _first_of(texts: Sequence[str]) -> str:
    more = len(texts) - MAX_NAMED
    return ", ".join(texts[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def contention(classes: Sequence[LinkClass], scores: Scores) -> tuple[object, ...]:
    """Return what decides the scores of a placement, whichever links it is on; `scores` has its achieved phases."""
    counted_links = [links for links in classes if scores.counts(links)]
    known = [scores.known(links) for links in counted_links]
    tight = sorted((one.links.jobs, one.key[1], len(one.links.links)) for one in known if one.is_tight)
    return (scores.ids, sum(len(links.links) for links in counted_links), *tight)


def going_on(jobs: Sequence[PeriodicJob]) -> list[Remark]:
    """Name the jobs whose last phase ends after the iteration, so that the next one begins with its rest."""
    ends = {job.name: max((p.offset + p.duration - job.period for p in job.phases), default=0.0) for job in jobs}
    late = [f"{name} by {end * 1e3:.4g} ms" for name, end in ends.items() if end > 1e-9]
    text = f"a phase that ends after its iteration goes on in the next: {_first_of(late)}"
    return [Remark("phase-goes-on", text)] if late else []


def short_phases(blurred: Mapping[str, float]) -> list[Remark]:
    """Name the jobs whose shortest phase, in s, is shorter than an angle, in which start times are sought."""
    if not blurred:
        return []
    text = _first_of([f"{name} ({least * 1e3:.4g} ms)" for name, least in sorted(blurred.items())])
    line = f"angles are longer than the shortest phase of {text}: --step {min(blurred.values()) * 1e3:.4g}ms"
    return [Remark("phase-short", line, details="a shorter step may find better start times")]


def drifting(circle: Circle) -> list[Remark]:
    """Say that no start times hold, or that the circle is only a part of them, where periods have no common multiple.

    Returns
    -------
    list of Remark
        At most one line. Start times hold where those that differ in the long run are longer than an angle.
    """
    if circle.is_common:
        return []
    so_far = f"iteration times have no common multiple up to {circle.perimeter:.4g} s (--longest)"
    if circle.distinct_positions(order=False).max() > 1:
        return [Remark("drifting", f"{so_far}: the score is that of this time", needed=True)]
    return [Remark("drifting", f"{so_far}: no start time holds", needed=True)]


def ended_early(n_wanted: int, n_found: int, descended: Collection[Sequence[int]]) -> list[Remark]:
    """Say how far placements and start times were searched, and how to search longer.

    Parameters
    ----------
    n_wanted : int
        Candidates that were asked for; 0 where all placements are given.
    n_found : int
        Candidates that were found; fewer where the last of ``TRIES`` draws for each brought no other.
    descended : collection of sequence of int
        Jobs on links whose rotations were not all tried.

    Returns
    -------
    list of Remark
        Empty if nothing was left untried.
    """
    remarks: list[Remark] = []
    if n_found < n_wanted:
        draws = f"{n_wanted * TRIES} draws of each generator found {count_text(n_found, 'different placement')}"
        text = f"{count_text(n_found, 'different placement')} of {n_wanted} found; more --candidates draw more"
        remarks.append(Remark("search-ended", text, details=draws))
    if descended:
        most = max(len(jobs) for jobs in descended)
        sets = f"{count_text(len(descended), 'set')} of up to {most} jobs"
        text = f"not all start times of {sets} were tried: the best of {STARTS} descents"
        remarks.append(Remark("search-ended", text, details="a longer --step or a shorter --longest tries all"))
    return remarks


def few_tried(n_wanted: int, n_tried: int, ranked: Sequence[PlacementCandidate], floor: float = 1.0) -> list[Remark]:
    """Say how to try more placements, where the best is estimated to slow jobs down and others are left.

    Parameters
    ----------
    n_wanted : int
        Same as in :func:`ended_early`.
    n_tried : int
        Placements that were tried; fewer where no others were found.
    floor : float
        Slow-down of the jobs in every placement, where those that run lose time without the others.
    """
    least = min((candidate.slowdown_estimated for candidate in ranked), default=1.0)
    if not 0 < n_wanted <= n_tried or n_wanted >= MOST_ADVISED or round(least, PRINTED) <= round(floor, PRINTED):
        return []
    tried = f"{count_text(n_tried, 'placement')} {'was' if n_tried == 1 else 'were'} tried"
    more = min(MORE * n_tried, MOST_ADVISED)
    told = f"{tried}, the best is slower than jobs alone: --candidates {more} tries more"
    return [Remark("few-tried", told, least / floor - 1)]


def disagreements(ranked: Sequence[PlacementCandidate]) -> list[Remark]:
    """Name the candidate that loses least when simulated, where it is not the first.

    Returns
    -------
    list of Remark
        One line, candidates numbered from 1; empty when the first one loses no more. Slow-downs within 0.1 % are equal.
    """
    slow = [candidate.slowdown for candidate in ranked]
    if not slow or slow[0] <= min(slow) * (1 + _SAME):
        return []
    best = slow.index(min(slow))
    text = f"candidate {best + 1} has the least simulated slow-down, {slow[best]:.4g}; candidate 1 has {slow[0]:.4g}"
    return [Remark("other-best", text, slow[0] / slow[best] - 1, needed=True)]


def rank_correlation(estimates: Sequence[float], simulations: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation, of values that are equal as printed the mean of their ranks.

    Returns
    -------
    float, or None
        From -1 to 1; None of fewer than ``FEWEST_RANKED``, or where all of one kind are equal.
    """
    if len(estimates) < FEWEST_RANKED:
        return None
    ranks = []
    for values in (estimates, simulations):
        _, place, count = np.unique(np.round(values, PRINTED), return_inverse=True, return_counts=True)
        if len(count) == 1:
            return None
        rank = (np.cumsum(count) - (count - 1) / 2)[place]
        ranks.append(rank - rank.mean())
    a, b = ranks
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def differing(ranked: Sequence[PlacementCandidate]) -> dict[int, float]:
    """Return by how much of the estimate simulated slow-downs differ from it, of candidates where that is much.

    Returns
    -------
    dict of int to float
        By the candidate's number, from 1.
    """
    apart = {i: c.slowdown / c.slowdown_estimated - 1 for i, c in enumerate(ranked, 1) if c.prediction == "simulation"}
    return {i: part for i, part in apart.items() if abs(part) > MUCH}


def agreement(ranked: Sequence[PlacementCandidate]) -> list[Remark]:
    """Say how well estimates and simulations of candidates agree: in the order, and in the slow-downs."""
    remarks: list[Remark] = []
    correlation = rank_correlation([c.slowdown_estimated for c in ranked], [c.slowdown for c in ranked])
    if correlation is not None:
        told = f"simulations order the candidates as estimates do with a rank correlation of {correlation:.2f}"
        remarks.append(Remark("rank-correlation", told))
    if apart := differing(ranked):
        worst = max(apart, key=lambda i: abs(apart[i]))
        by = f"{100 * apart[worst]:+.1f} %"
        told = f"simulated slow-downs differ by more than {100 * MUCH:g} % in {_numbers_text([*apart])}"
        told += f", most in candidate {worst}: {by}" if len(apart) > 1 else f": {by}"
        remarks.append(Remark("estimates-differ", told, apart[worst]))
    elif correlation is not None:
        remarks.append(Remark("estimates-differ", f"none differs by more than {100 * MUCH:g} %", MUCH / 2))
    return remarks


def estimated(ranked: Sequence[PlacementCandidate]) -> list[Remark]:
    """Say what estimates of iteration times leave out; nothing where jobs are in no other's way."""
    shared = [[link.score for link in candidate.links if len(link.jobs) > 1] for candidate in ranked]
    if all(not scores or min(scores) > 1 - 1e-9 for scores in shared):
        return []
    text = "slowdowns are estimates, mostly 0.9 to 1.3 times a simulation's (--check)"
    more = "in 80 of 100 clusters; the mean over all positions counts, since jobs drift past each other"
    return [Remark("estimated", text, 0.3, details=more)]


def notes_of(candidates: Sequence[PlacementCandidate], discarded: Sequence[PlacementCandidate]) -> list[Remark]:
    """Say what the scores of all candidates leave out or round."""
    notes: list[Remark] = []
    if discarded:
        text = f"{len(discarded)} of {len(candidates)} candidates have a loop and are discarded; merged keeps them"
        notes.append(Remark("discarded", text, needed=True))
    away = max((c.inconsistency or 0.0 for c in candidates), default=0.0)
    if away:
        many = sum(bool(c.inconsistency) for c in candidates)
        text = f"time-shift inconsistency: up to {away * 1e3:.4g} ms, in the loops of {many} candidates"
        notes.append(Remark("shifts-inconsistent", text))
    rounding = max((c.rounding for c in candidates), default=0.0)
    if rounding > 1e-12:
        text = f"iteration times rounded by up to {rounding * 1e3:.4g} ms to have common multiples"
        notes.append(Remark("periods-rounded", text))
    if any(c.n_cut_off for c in candidates):
        text = "hyperperiod truncated: iteration times have no common multiple below the longest perimeter"
        notes.append(Remark("drifting", text))
    return notes
