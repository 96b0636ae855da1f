"""Rating of hosts for the next pod of a job, by the scores of the links that it would share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from commsim.placement.starts.achieved_phases import achieved
from commsim.placement.starts.link_scores import score_link
from commsim.training.sharing.periodic import PeriodicJob

from .beside.kept_jobs import KeptJobs, LinksOf, links_of, parts_of
from .state import ClusterState, JobRecord

# Of a host, in the protocol of Kubernetes.
MAX_POINTS = 10
_MOST_TIERS = 4  # the outer ones of a network of more share the link's points
_REMEMBERED = 20_000  # scores of links


@dataclass(frozen=True, slots=True)
class Rating:
    """What is thought of one host.

    Parameters
    ----------
    n_free : int
        Its GPUs that are free.
    worst : float
        Least score of the links that the job would share with others or overload alone, 1 without any, times its
        iteration time over that which it would achieve there alone. Their mean would rise with each shared link on
        which the jobs fit.
    worst_link : str
        Name of that link.
    is_local : bool
        Whether the whole job would be in one rack.
    points : int
        0 to 10: one for each tier (rack, pod and so on) in one of whose parts the whole job would be, and the rest for
        the worst link.
    """

    n_free: int
    worst: float
    worst_link: str
    is_local: bool
    points: int


@dataclass(frozen=True, slots=True)
class _Others:
    """The jobs beside the one in question, and scores of links by how often that one uses them."""

    kept: KeptJobs
    is_used: NDArray[np.bool_]
    scores: dict[tuple[int, float, float], float] = field(default_factory=dict)


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
        tiers = [len(set(of_tier)) for of_tier in zip(*state.place.values(), strict=True)]
        # a tier of one part has the same place for every job
        self._tiers = [tier for tier, n in enumerate(tiers) if n > 1][:_MOST_TIERS]

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
        free = self._room(job, state.free(job.job.name, job.placed))
        kinds = self._kinds(job, free, pod_gpus)
        firsts: dict[object, str] = {}
        for host, kind in kinds.items():
            firsts.setdefault(kind, host)
        placements = [self._completed(job, pod_gpus, host, free) for host in firsts.values()]
        placed = [
            replace(job.job, n_gpus=len(one), placement=one, placed=(), gpus_per_host=None) for one in placements
        ]  # as many as fit
        uses, others = links_of(state.cluster, placed, state.seeds[0]), self._others(job)
        parts = parts_of(state.cluster, placed, uses, state.seeds[0])
        # bytes have no time without a path: a host is as good as the best one if its path is
        on_path = [achieved(one, part) if one.is_demand else one for one, part in zip(placed, parts, strict=True)]
        least = min((one.period for one in on_path), default=0.0)
        rated = {
            kind: self._rating(one, use, least if one.is_demand else one.period, others)
            for kind, one, use in zip(firsts, on_path, uses, strict=True)
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

    def _room(self, job: JobRecord, free: dict[str, list[str]]) -> dict[str, list[str]]:
        """Return the free GPUs of each host that the job may get there: all, unless it wants a number on each host."""
        if (k := job.job.gpus_per_host) is None:
            return free
        has = Counter(self._state.host_of[node] for node in job.placed)
        return {host: gpus[: k - has[host]] if len(gpus) + has[host] >= k else [] for host, gpus in free.items()}

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
        kept, name = self._state.kept, job.job.name
        kept = kept.changed({}, (name,)) if name in kept.jobs else kept
        is_used = np.zeros(self._state.cluster.network.n_links, np.bool_)
        is_used[kept.used] = True
        return _Others(kept, is_used)

    def _rating(self, job: PeriodicJob, use: LinksOf, usual: float, others: _Others) -> Rating:
        """Rate the place of a job whose iteration takes `usual` seconds where nothing slows it down."""
        scores = self._link_scores(job, use, usual, others)
        places = {self._state.place[self._state.host_of[node]] for node in job.placement or ()}
        is_same = [len({at[tier] for at in places}) == 1 for tier in self._tiers]
        is_local = len({at[0] for at in places}) == 1
        worst = min(scores, key=lambda link: scores[link]) if scores else -1
        least = scores.get(worst, usual / job.period)
        points = round((MAX_POINTS - len(is_same)) * min(max(least, 0.0), 1.0)) + sum(is_same)
        name = self._state.cluster.network.link_name(worst) if scores else ""
        return Rating(0, least, name, is_local, points)

    def _link_scores(self, job: PeriodicJob, use: LinksOf, usual: float, others: _Others) -> dict[int, float]:
        """By link that the job would share with others, or overload alone, its score."""
        scores: dict[int, float] = {}
        links, times = use
        is_full = times * job.peak_rate > self._state.cluster.network.bandwidth[links] * (1 + 1e-9)
        is_met = others.is_used[links] | is_full
        for link, each in zip(links[is_met].tolist(), times[is_met].tolist(), strict=True):
            at = link, each, job.period
            if at not in others.scores:
                sharing = others.kept.sharing(link)
                beside = (others.kept.jobs[name] for name in sharing)
                jobs = [job, *(one.on(0) if one.job.is_demand else one.job for one in beside)]
                capacity = float(self._state.cluster.network.bandwidth[link])
                others.scores[at] = self._link_score(jobs, (each, *sharing.values()), capacity, usual)
            scores[link] = others.scores[at]
        return scores

    def _link_score(
        self, jobs: Sequence[PeriodicJob], times: tuple[float, ...], capacity: float, usual: float
    ) -> float:
        peak = sum(k * job.peak_rate for job, k in zip(jobs, times, strict=True))
        if peak <= capacity * (1 + 1e-9):
            return usual / jobs[0].period
        key = tuple((job.period, job.phases, job.start) for job in jobs), times, capacity, usual
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = score_link(jobs, capacity, use=times)
            self._known[key] = found.score * usual / float(found.alone[0])
        return self._known[key]


def _with_free(rating: Rating, n_free: int) -> Rating:
    return replace(rating, n_free=n_free)
