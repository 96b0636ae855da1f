"""Rating of hosts for the next pod of a job, by the scores of the links that it would share."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.placement.score import score_link
from commsim.training.sharing.periodic import PeriodicJob

from .kept_jobs import KeptJobs, LinksOf, links_of
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
        free = state.free(job.job.name, job.placed)
        kinds = self._kinds(job, free, pod_gpus)
        firsts: dict[object, str] = {}
        for host, kind in kinds.items():
            firsts.setdefault(kind, host)
        placements = [self._completed(job, pod_gpus, host, free) for host in firsts.values()]
        uses = links_of(state.cluster, placements, state.seeds[0])
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
        kept, name = self._state.kept, job.job.name
        kept = kept.changed({}, (name,)) if name in kept.jobs else kept
        is_used = np.zeros(self._state.cluster.network.n_links, np.bool_)
        is_used[kept.used] = True
        return _Others(kept, is_used)

    def _rating(self, job: JobRecord, use: LinksOf, placement: Sequence[str], others: _Others) -> Rating:
        scores = self._link_scores(job, use, others)
        places = {self._state.place[self._state.host_of[node]] for node in placement}
        is_same = [len({at[tier] for at in places}) == 1 for tier in self._tiers]
        is_local = len({at[0] for at in places}) == 1
        worst = min(scores, key=lambda link: scores[link]) if scores else -1
        least = scores.get(worst, 1.0)
        points = round((MAX_POINTS - len(is_same)) * min(max(least, 0.0), 1.0)) + sum(is_same)
        name = self._state.cluster.network.link_name(worst) if scores else ""
        return Rating(0, least, name, is_local, points)

    def _link_scores(self, job: JobRecord, use: LinksOf, others: _Others) -> dict[int, float]:
        """By link that the job would share with others, or overload alone, its score."""
        scores: dict[int, float] = {}
        links, times = use
        is_full = times * job.job.peak_rate > self._state.cluster.network.bandwidth[links] * (1 + 1e-9)
        is_met = others.is_used[links] | is_full
        for at in zip(links[is_met].tolist(), times[is_met].tolist(), strict=True):
            link = at[0]
            if at not in others.scores:
                sharing = others.kept.sharing(link)
                jobs = [job.job, *(others.kept.jobs[name].job for name in sharing)]
                others.scores[at] = self._link_score(
                    jobs, (at[1], *sharing.values()), float(self._state.cluster.network.bandwidth[link])
                )
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
            found = score_link(jobs, capacity, use=times)
            self._known[key] = found.score * jobs[0].period / float(found.alone[0])
        return self._known[key]


def _with_free(rating: Rating, n_free: int) -> Rating:
    return dataclasses.replace(rating, n_free=n_free)
