"""Candidate placements: scores, start times, predicted iteration times, and their check by simulation."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import HOST, Network
from commsim.core.value import Value
from commsim.training.sharing.periodic import PeriodicJob
from commsim.training.sharing.shared_run import MEASURED

from .cluster import Cluster
from .starts.job_uses import job_uses

# Nodes of a job that are shown.
MAX_SHOWN = 6
SHORTENED = " ..."
_NUMBER = re.compile(r"(?<!\d)\d{1,9}\Z", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class ContendedLink(Value):
    """A link that carries more than one job, or one that alone asks more than the link has.

    Parameters
    ----------
    link : str
        Its name in the network.
    jobs : tuple of str
        Names of the jobs, in the order in which they were given.
    score : float
        Score when the jobs start as the candidate says.
    demand : float, bytes/s
        What they send over it together, on average.
    is_contended : bool
        Whether their peaks together exceed its capacity; if not it is shared, and no start time matters.
    """

    link: str
    jobs: tuple[str, ...]
    score: float
    demand: float
    is_contended: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class PlacementCandidate(Value):
    """Where jobs would run.

    Parameters
    ----------
    generator : str
        What made it.
    placement : dict of str to tuple of str
        The nodes of each job, one per GPU in the order of ranks.
    links : tuple of ContendedLink
        Links in the order of the network's.
    shifts : dict of str to float, s
        How much later each job should start its next iteration.
    has_loop : bool
        Whether links could contradict each other about that.
    inconsistency : float, optional, s
        Largest distance between a job's start and what one of its links would choose on its own; None where that was
        not sought.
    predicted : dict of str to float, s
        Iteration time of each job.
    alone : dict of str to float, s
        Iteration time of each job in its place without the others: longer than its period where it alone asks more than
        a link has.
    prediction : {"estimate", "simulation"}
        Source of `predicted`; :func:`commsim.placement.iteration_times.estimate` says what an estimate is.
    rounding : float, s
        Largest change of a period, to find common multiples.
    n_cut_off : int
        Links whose jobs have no common multiple below the longest perimeter, so that they were seen for part of it.
    periods : dict of str to float, s
        Iteration time of each job where nothing slows it down.
    slowdown_estimated : float
        Slowdown by the estimate, also where `predicted` is simulated.
    slowdown_best, slowdown_worst : float, optional
        Least and largest estimate at the start times over the hashes that choose paths; None where one hash was asked
        for or nothing is hashed.
    stretch_worst : float, optional
        Largest stretch over them.
    hash_seed : int, optional
        Seed of the hash that all else is of: the one with the median stretch, the lower one of an even number.
    windows : dict of str to (float, float), s
        First and last start of each job that cost no more, while the others start as they do; of jobs on contended
        links whose iteration times have a common multiple. A window may begin before 0.
    cost : dict, optional
        What new jobs cost, where it was asked for: ``own``, the iteration time of each new job over its period;
        ``added``, what each running job loses, as a part of its period, of those that lose anything; and ``total``, of
        all ``own`` less 1 and all ``added``.
    own_value : float, optional
        What a ranking of the user's says of it, where one ranks.
    """

    generator: str
    placement: Mapping[str, tuple[str, ...]]
    links: tuple[ContendedLink, ...]
    shifts: Mapping[str, float]
    has_loop: bool
    inconsistency: float | None
    predicted: Mapping[str, float]
    alone: Mapping[str, float]
    prediction: str
    rounding: float
    n_cut_off: int
    periods: Mapping[str, float]
    slowdown_estimated: float
    slowdown_best: float | None = None
    slowdown_worst: float | None = None
    stretch_worst: float | None = None
    hash_seed: int | None = None
    windows: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    cost: Mapping[str, Any] | None = None
    own_value: float | None = None

    @property
    def slowdown(self) -> float:
        """Mean over the jobs of the predicted iteration time over that in this place without other jobs."""
        return float(np.mean([self.predicted[job] / time for job, time in self.alone.items()] or [1.0]))

    @property
    def stretch(self) -> float:
        """Mean over the jobs of the predicted iteration time over the period: by others, and by links too slow alone.

        Candidates rank by it: a place where a job is slow by itself is no better because others cost it little.
        """
        return float(np.mean([self.predicted[job] / period for job, period in self.periods.items()] or [1.0]))

    @property
    def worst_job(self) -> tuple[str, float]:
        """Name and slowdown of the job that is slowed down the most, which the mean may hide; of equals the first."""
        slow = {job: self.predicted[job] / time for job, time in self.alone.items()}
        return max(slow.items(), key=lambda one: round(one[1], 9), default=("", 1.0))

    @property
    def n_contended(self) -> int:
        """Number of links that can be overloaded."""
        return sum(link.is_contended for link in self.links)

    @property
    def score_mean(self) -> float:
        """Mean of the links' scores, which the paper ranks by; 1 without links. More links that fit raise it."""
        return sum(link.score for link in self.links) / len(self.links) if self.links else 1.0

    @property
    def score_min(self) -> float:
        """Score of the worst link, which the mean may hide."""
        return min((link.score for link in self.links), default=1.0)

    @property
    def score_weighted(self) -> float:
        """Mean of the links' scores, weighted by what the jobs send over each."""
        total = sum(link.demand for link in self.links)
        return sum(link.score * link.demand for link in self.links) / total if total else 1.0

    def slack(self, job: str) -> float:
        """Seconds by which a job may start earlier and later in its window."""
        first, last = self.windows[job]
        return min(self.shifts[job] - first, last - self.shifts[job])

    def value(self, rank_by: str) -> float:
        """Return what ranks: the stretch, or a score of the links."""
        return self.stretch if rank_by == "stretch" else float(getattr(self, f"score_{rank_by}"))

    def row(self) -> dict[str, Any]:
        """One JSON row."""
        return {
            "generator": self.generator,
            "placement": {job: list(nodes) for job, nodes in self.placement.items()},
            "slowdown": _rounded(self.slowdown),
            "slowdown_estimated": _rounded(self.slowdown_estimated),
            "slowdown_best": None if self.slowdown_best is None else _rounded(self.slowdown_best),
            "slowdown_worst": None if self.slowdown_worst is None else _rounded(self.slowdown_worst),
            "hash_seed": self.hash_seed,
            "stretch": _rounded(self.stretch),
            "worst_job": self.worst_job[0],
            "worst_job_slowdown": _rounded(self.worst_job[1]),
            "score_mean": _rounded(self.score_mean),
            "score_min": _rounded(self.score_min),
            "score_weighted": _rounded(self.score_weighted),
            "links": [
                {"link": link.link, "jobs": list(link.jobs), "score": _rounded(link.score)} for link in self.links
            ],
            "shifts_ms": {job: _rounded(shift * 1e3) for job, shift in self.shifts.items()},
            "windows_ms": {
                job: [_rounded(first * 1e3), _rounded(last * 1e3)] for job, (first, last) in self.windows.items()
            },
            "slack_ms": {job: _rounded(self.slack(job) * 1e3) for job in self.windows},
            "predicted_iteration_ms": {job: _rounded(time * 1e3) for job, time in self.predicted.items()},
            "alone_iteration_ms": {job: _rounded(time * 1e3) for job, time in self.alone.items()},
            "prediction": self.prediction,
            "has_loop": self.has_loop,
            "inconsistency_ms": None if self.inconsistency is None else _rounded(self.inconsistency * 1e3),
            "period_rounding_ms": _rounded(self.rounding * 1e3),
            "links_cut_off": self.n_cut_off,
            **({} if self.own_value is None else {"own_value": _rounded(self.own_value)}),
            **({} if self.cost is None else {"cost": self.cost}),
        }


def _rounded(value: float) -> float:
    """Leave out the last digits, which are noise of the sums."""
    return round(value, 9) + 0.0


def simulated(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    candidate: PlacementCandidate,
    *,
    iterations: int = MEASURED,
    seed: int = 0,
) -> PlacementCandidate:
    """Run the jobs together, with max-min fair sharing and the candidate's shifts, and predict from that.

    Parameters
    ----------
    jobs : sequence of PeriodicJob
        Jobs of the candidate's placements.
    iterations : int
        Number of iterations of each job; the second half is averaged, when the start has no more effect
        (:attr:`.SharedRun.settled`).
    seed : int
        Seed of the routes' hash, as when the candidate was scored.

    Returns
    -------
    PlacementCandidate
        With the mean iteration time of each job.
    """
    from commsim.training.sharing.shared_links import simulate_jobs

    from .starts.demand import delivered

    placed = [dataclasses.replace(job, placement=candidate.placement[job.name], placed=()) for job in jobs]
    use = job_uses(cluster, placed, seed)
    shifts = [candidate.shifts[job.name] for job in jobs]
    sent = delivered(cluster, placed, use, seed)
    run = simulate_jobs(cluster.network, sent, list(use), shifts=shifts, iterations=iterations)
    times = {job.name: float(mean) for job, mean in zip(jobs, run.settled.mean(axis=1), strict=True)}
    return dataclasses.replace(candidate, predicted=times, prediction="simulation")


def counted_names(nodes: Sequence[str], most: int = MAX_SHOWN) -> str:
    """Return names of nodes with how often each comes, in order: ``h0x4 h2x4``; those that follow as ``h0-7x4``.

    Numbers with zeros before them are in brackets, as Slurm has them: ``n[008-011]x4``.

    Parameters
    ----------
    nodes : sequence of str
        Node of each rank.
    most : int
        Number of names and ranges beyond which ``...`` stands for the others.
    """
    runs: list[tuple[str, str, int]] = []
    for name, ranks in itertools.groupby(nodes):  # in rank order, which whoever reads it back gets again
        n = len(list(ranks))
        first, last, times = runs[-1] if runs else ("", "", 0)
        if times == n and _follows(name, last):
            runs[-1] = first, name, n
        else:
            runs.append((name, name, n))
    shown = [_span(first, last) + (f"x{n}" if n > 1 else "") for first, last, n in runs[:most]]
    return " ".join(shown) + (SHORTENED if len(runs) > most else "")


def _span(first: str, last: str) -> str:
    """Write names that follow each other, so that ``spelled_out`` of :mod:`commsim.core.names.hostlist` reads them."""
    if first == last:
        return first
    low, high = _number(first), _number(last)
    if low[0] == "0" and len(low) > 1:
        return f"{first.removesuffix(low)}[{low}-{high}]"
    return f"{first}-{high}"


def _follows(name: str, other: str) -> bool:
    """Whether a name has the number after that of another, as h8 after h7 or n010 after n009, and else its text."""
    before = _number(other)
    return bool(before) and name == f"{other.removesuffix(before)}{int(before) + 1:0{len(before)}d}"


def _number(name: str) -> str:
    """Return the number at the end of a name, with zeros before it."""
    match = _NUMBER.search(name)
    return match[0] if match else ""


def simulated_times(
    jobs: Sequence[PeriodicJob], capacity: float, shifts: NDArray[np.float64], iterations: int = MEASURED
) -> dict[str, float]:
    """Mean iteration time of each job, in seconds, when all send over one link with max-min fair sharing.

    Parameters
    ----------
    capacity : float, bytes/s
        Capacity of the link.
    shifts : float64[n_jobs], s
        Time at which each job starts.
    iterations : int
        Number of iterations of each job; the second half is averaged.
    """
    from commsim.training.sharing.shared_links import simulate_jobs

    link = Network("one link", ("from", "to"), [HOST, HOST], [0], [1], capacity, 0.0)
    run = simulate_jobs(link, jobs, [np.ones(1)] * len(jobs), shifts=shifts, iterations=iterations)
    return {job.name: float(mean) for job, mean in zip(jobs, run.settled.mean(axis=1), strict=True)}
