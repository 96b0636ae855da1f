"""What new jobs cost those that run, and themselves: of each candidate, against the running jobs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from commsim.core.errors import InputError
from commsim.placement.candidate import PlacementCandidate
from commsim.placement.cluster import Cluster
from commsim.placement.ranked_placements import NOTHING_LOST, Least, ranked
from commsim.placement.ranking import PlacementRanking, with_cost
from commsim.placement.scores import ScoreSettings
from commsim.prediction.checks import texts
from commsim.training.sharing.periodic import PeriodicJob


def new_jobs(jobs: Sequence[PeriodicJob]) -> list[PeriodicJob]:
    """Return the jobs that are new beside others: those without a placement, else those without a start.

    Returns
    -------
    list of PeriodicJob
        Empty where all have a placement and a start, or none has what the others lack.
    """
    for new in ([job for job in jobs if job.placement is None], [job for job in jobs if job.start is None]):
        if new:
            return new if len(new) < len(jobs) else []
    return []


def new_and_older(jobs: Sequence[PeriodicJob], new: Sequence[str] | None) -> tuple[list[str], list[PeriodicJob]]:
    """Return the names of the new jobs, by default those of :func:`new_jobs`, and the jobs that run.

    Raises
    ------
    InputError
        If `new` names no job of them, or one that it leaves out has no placement.
    """
    if new is None:
        names = [job.name for job in new_jobs(jobs)]
        return names, [job for job in jobs if names and job.name not in names]
    older = running_beside({"jobs": jobs}, new)
    if waiting := [job.name for job in older if job.placement is None]:
        raise InputError(f"new: job {waiting[0]} has no placement, and is new, too")
    return list(new), older if new else []


def new_in(placed: Mapping[str, Sequence[PeriodicJob]]) -> list[str]:
    """Return the names of the new jobs of one's own placements.

    Returns
    -------
    list of str
        Empty unless the others run in the same places and at the same times in each placement.
    """
    each = list(placed.values())
    new = {job.name for job in new_jobs(each[0])}
    running = [{job.name: (job.placement, job.start) for job in jobs if job.name not in new} for jobs in each]
    return sorted(new) if all(one == running[0] for one in running) else []


def running_beside(placed: Mapping[str, Sequence[PeriodicJob]], new: Sequence[str]) -> list[PeriodicJob]:
    """Return the jobs that run where others are new, which are in the same places each time.

    Raises
    ------
    InputError
        If `new` names no job of them, or a job that runs is in another place, or starts at another time.
    """
    new = texts("resnet50")("new", new)
    first = next(iter(placed.values()))
    if unknown := [name for name in new if name not in {job.name for job in first}]:
        raise InputError(f"new: no job is named {unknown[0]}")
    running = [job for job in first if job.name not in new]
    for name, jobs in placed.items() if new else ():
        at = {job.name: (job.placement, job.start) for job in jobs}
        if moved := [job.name for job in running if at[job.name] != (job.placement, job.start)]:
            raise InputError(f"{name}: job {moved[0]} runs, as it is not new, and must stay where it is")
    return running


class RunningJobs:
    """Jobs that run, without those that are new: predicted once by each means, when that is asked for.

    Parameters
    ----------
    cluster : Cluster
        Cluster on which they run.
    jobs : sequence of PeriodicJob
        Jobs, all with a placement; none where all are new.
    settings : ScoreSettings
        How scores are found.
    """

    def __init__(self, cluster: Cluster, jobs: Sequence[PeriodicJob], settings: ScoreSettings) -> None:
        self._cluster, self._jobs, self._settings = cluster, tuple(jobs), settings
        self._found: dict[str, PlacementCandidate] = {}

    def _by(self, prediction: str) -> PlacementCandidate:
        """Return how they run, by ``estimate`` or ``simulation``."""
        if prediction not in self._found:
            check, now = prediction == "simulation", [("now", self._jobs)]
            found = ranked(self._cluster, self._jobs, now, "merged", "stretch", check, self._settings)
            self._found[prediction] = found.candidates[0]
        return self._found[prediction]

    def least(self, n_new: int) -> Least:
        """Return what all lose where new jobs, so many, cost nothing."""
        if not self._jobs:
            return NOTHING_LOST
        now, n = self._by("estimate"), len(self._jobs)
        return Least(*((value * n + n_new) / (n + n_new) for value in (now.slowdown_estimated, now.stretch)))

    def with_costs(self, ranking: PlacementRanking) -> PlacementRanking:
        """Hold each candidate against the running jobs alone, estimates against estimates."""
        found = tuple(
            with_cost(one, self._by(one.prediction).predicted if self._jobs else {}) for one in ranking.candidates
        )
        return replace(ranking, candidates=found)


def paid_after(restart: float, now: float, after: float, moved: float) -> float | None:
    """Time after which all jobs together have done more than without a move, in s; None where they never do.

    Parameters
    ----------
    restart : float, s
        Time for which the job that moves stands still.
    now, after : float
        Periods over iteration times, summed over all jobs, without the move and with it.
    moved : float
        Period over iteration time of the job that moves, after it.
    """
    return restart * moved / (after - now) if after > now else None
