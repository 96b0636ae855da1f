"""Rating of hosts for the next pod of a job, by the scores of the links that it would share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.placement.affected import after_faults
from commsim.placement.candidate import counted_names
from commsim.placement.link_classes import ScoreSettings
from commsim.placement.link_use import link_uses
from commsim.placement.place import place_jobs
from commsim.placement.score import score_link
from commsim.training.sharing.periodic import PeriodicJob

from .limits import MAX_SEARCHED_GPUS, MAX_SEARCHED_JOBS, require_answer
from .models import Search
from .state import ClusterState, JobRecord, read_known_jobs

# Of a host, in the protocol of Kubernetes.
MAX_POINTS = 10
_REMEMBERED = 20_000  # scores of links


@dataclass(frozen=True, slots=True)
class Rating:
    """What is thought of one host.

    Parameters
    ----------
    n_free : int
        Its GPUs that are free.
    worst : float
        Least score of the links that the job would share with others or overload alone, 1 without any. Their mean would
        rise with each shared link on which the jobs fit.
    worst_link : str
        Name of that link.
    is_local : bool
        Whether the whole job would be in one rack.
    points : int
        0 to 10: nine tenths for the worst link, the last one for being in one rack.
    """

    n_free: int
    worst: float
    worst_link: str
    is_local: bool
    points: int


@dataclass(frozen=True, slots=True)
class _Others:
    """The jobs beside the one in question, by row of `use`; and scores of links by how often that one uses them."""

    jobs: list[PeriodicJob]
    use: NDArray[np.float64]
    is_used: NDArray[np.bool_]
    scores: dict[tuple[int, float], float] = field(default_factory=dict)


class Rater:
    """Rates hosts; remembers the scores of links, which come back in most requests.

    Parameters
    ----------
    state : ClusterState
        What is known.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._known: dict[object, float] = {}

    def rate(self, job: JobRecord, pod_gpus: int) -> dict[str, Rating]:
        """Rate every host of the cluster for the next pod of a job.

        The rest of the job is imagined on free GPUs as near as possible to the host. Hosts of one rack that have the
        same jobs and equally many free GPUs get the rating of the first of them.

        Parameters
        ----------
        job : JobRecord
            The job, and where its pods are so far.
        pod_gpus : int
            GPUs of each of its pods.

        Returns
        -------
        dict of str to Rating
            By host. Hosts without enough free GPUs have 0 points.
        """
        state = self._state
        free = state.free(job.job.name, job.placed)
        kinds = self._kinds(job, free, pod_gpus)
        firsts: dict[object, str] = {}
        for host, kind in kinds.items():
            firsts.setdefault(kind, host)
        placements = [self._completed(job, pod_gpus, host, free) for host in firsts.values()]
        uses = link_uses(state.cluster, placements)
        others = self._others(job)
        rated = {
            kind: self._rating(job, use, placement, others)
            for kind, placement, use in zip(firsts, placements, uses, strict=True)
        }
        none = Rating(0, 0.0, "", False, 0)
        return {
            host: _with_free(rated[kinds[host]] if host in kinds else none, len(gpus)) for host, gpus in free.items()
        }

    def _kinds(self, job: JobRecord, free: dict[str, list[str]], pod_gpus: int) -> dict[str, object]:
        """By host with room, what decides its rating: where it is, who is there, how much is free."""
        host_of = self._state.host_of
        residents: dict[str, list[str]] = {}
        for name, known in {**self._state.jobs, job.job.name: job}.items():
            for host in {host_of[node] for node in known.placed}:
                residents.setdefault(host, []).append(name)
        return {
            host: (self._state.place[host], tuple(residents.get(host, ())), len(gpus))
            for host, gpus in free.items()
            if len(gpus) >= pod_gpus
        }

    def _completed(self, job: JobRecord, pod_gpus: int, host: str, free: dict[str, list[str]]) -> tuple[str, ...]:
        """Return the whole job's placement when its next pod is on `host` and the others are as near as they can be."""
        placed, rest = [*job.placed, *free[host][:pod_gpus]], free[host][pod_gpus:]
        placed += rest[: job.job.n_gpus - len(placed)]
        for other in self._state.nearest(host):
            left = job.job.n_gpus - len(placed)
            if left <= 0:
                break
            if other != host:
                placed += free[other][:left]
        return tuple(placed)

    def _others(self, job: JobRecord) -> _Others:
        names = [name for name in self._state.jobs if name != job.job.name]
        use = np.array([self._state.use[name] for name in names]).reshape(-1, self._state.cluster.network.n_links)
        return _Others([self._state.jobs[name].job for name in names], use, np.any(use > 0, axis=0))

    def _rating(self, job: JobRecord, use: NDArray[np.float64], placement: Sequence[str], others: _Others) -> Rating:
        scores = self._link_scores(job, use, others)
        racks = {self._state.place[self._state.host_of[node]][0] for node in placement}
        worst = min(scores, key=lambda link: scores[link]) if scores else -1
        least = scores.get(worst, 1.0)
        points = round((MAX_POINTS - 1) * min(max(least, 0.0), 1.0)) + (len(racks) == 1)
        name = self._state.cluster.network.link_name(worst) if scores else ""
        return Rating(0, least, name, len(racks) == 1, points)

    def _link_scores(self, job: JobRecord, use: NDArray[np.float64], others: _Others) -> dict[int, float]:
        """By link that the job would share with others, or overload alone, its score."""
        scores: dict[int, float] = {}
        is_full = use * job.job.peak_rate > self._state.cluster.network.bandwidth * (1 + 1e-9)
        for link in np.flatnonzero((use > 0) & (others.is_used | is_full)).tolist():
            at = link, float(use[link])
            if at not in others.scores:
                sharing = np.flatnonzero(others.use[:, link]).tolist()
                jobs = [job.job, *(others.jobs[i] for i in sharing)]
                times = (at[1], *others.use[sharing, link].tolist())
                others.scores[at] = self._link_score(jobs, times, float(self._state.cluster.network.bandwidth[link]))
            scores[link] = others.scores[at]
        return scores

    def _link_score(self, jobs: Sequence[PeriodicJob], times: tuple[float, ...], capacity: float) -> float:
        peak = sum(k * job.peak_rate for job, k in zip(jobs, times, strict=True))
        if peak <= capacity:
            return 1.0
        key = tuple((job.period, job.phases, job.start) for job in jobs), times, capacity
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = score_link(jobs, capacity, use=times).score
        return self._known[key]


def _with_free(rating: Rating, n_free: int) -> Rating:
    return dataclasses.replace(rating, n_free=n_free)


def read_search(asked: Search, state: ClusterState) -> Callable[[], dict[str, Any]]:
    """Read the request of a search.

    Parameters
    ----------
    asked : Search
        The request.
    state : ClusterState
        The jobs that are known and placed stay where they are, unless the request has one of the same name.

    Returns
    -------
    function
        Does the search, and returns the candidates, best first, and notes, as ``commsim place --json`` has them.

    Raises
    ------
    InputError
        Naming the field that is wrong.
    """
    rows = [job if isinstance(job, str) else job.row() for job in asked.jobs]
    wanted = [known.job for known in read_known_jobs(rows, "request", ("jobs",), state.jobs)]
    names = {job.name for job in wanted}
    others = [known for known in state.jobs.values() if known.placed and known.job.name not in names]
    jobs = [_job(known.job, known.placed) for known in others] + wanted
    lines = [
        f"job {known.job.name} has {len(known.placed)} of its {known.job.n_gpus} GPUs: none are kept for the others"
        for known in others
        if len(known.placed) < known.job.n_gpus
    ]
    lines += [
        f"job {known.job.name} is known and has no GPUs yet: none are kept for it; to place both, send its name, too"
        for known in state.jobs.values()
        if not known.placed and known.job.name not in names
    ]
    lines += [
        f"job {job.name} is known on {counted_names(state.jobs[job.name].placed)}, and is placed anew: the request has "
        "neither placement nor placed"
        for job in wanted
        if job.placement is None and not job.placed and job.name in state.jobs and state.jobs[job.name].placed
    ]
    if len(jobs) > MAX_SEARCHED_JOBS or sum(job.n_gpus for job in jobs) > MAX_SEARCHED_GPUS:
        got = f"{len(jobs)} of {sum(job.n_gpus for job in jobs)}"
        most = f"{MAX_SEARCHED_JOBS}, of {MAX_SEARCHED_GPUS} GPUs"
        raise InputError(f"request: jobs are at most {most}, with those that are placed; got {got}")
    options: dict[str, Any] = {"rank_by": asked.rank_by, "loops": asked.loops, "check": asked.check}
    if asked.generators is not None:
        options["generators"] = asked.generators

    def search() -> dict[str, Any]:
        cluster, left, remarks = state.cluster, tuple(jobs), list[Remark]()
        settings = ScoreSettings(seed=asked.seed)
        if asked.fail or asked.scale:
            cluster, left, remarks = after_faults(cluster, jobs, asked.fail, asked.scale, settings)
        ranking = place_jobs(cluster, left, n=asked.candidates, settings=settings, **options)
        tree = ranking.to_dict()
        left_out = ("remarks", *(() if asked.check else ranking.agreement))  # notes has the remarks
        answer = {
            **{key: tree[key] for key in tree if key not in left_out},
            "notes": [*lines, *map(str, remarks), *tree["notes"]],
        }
        require_answer(answer)
        return answer

    return search


def _job(job: PeriodicJob, placed: tuple[str, ...]) -> PeriodicJob:
    """Return a job as it is placed; one that is placed in part counts as no larger than that."""
    return dataclasses.replace(job, placement=placed, placed=(), n_gpus=len(placed)) if placed else job
