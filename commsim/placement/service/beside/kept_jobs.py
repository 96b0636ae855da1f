"""Jobs that run, with the links that they use under each hash: found once, and kept while other jobs come and go."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.placement.cluster import Cluster
from commsim.placement.link_use import numbers_of
from commsim.placement.scores import ScoreSettings
from commsim.placement.starts.achieved_phases import achieved
from commsim.placement.starts.job_uses import OwnPath, job_uses, own_paths
from commsim.placement.starts.meeting_kernel import MetJobs
from commsim.placement.starts.met_jobs import met_jobs, shifted
from commsim.prediction.plans.draws import HASHES
from commsim.routing.routing import is_hashed
from commsim.training.sharing.periodic import PeriodicJob

from .beside_kernel import Found, JobTimes, Uses, add_excess, meet_again, start_costs, starts_within, sum_up
from .start_kernel import BINS, LEAST, widest_window

# Links of a job, and how many times its rate each carries.
LinksOf: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64]]
_CHUNK = 32  # placements whose links are found together
_SMEARED = 2  # bins over which an edge of the excess is spread: one for each of the two that meet
_MOST_ENDS = 512  # starts at which phases meet near the ends of a window


@dataclass(frozen=True, slots=True)
class KeptJob:
    """A job with places, its start time in the offsets of its phases.

    Parameters
    ----------
    job : PeriodicJob
        The job as it is placed, with its `start`.
    links : tuple of LinksOf
        Its links under each hash.
    parts : tuple of float (s/byte) or OwnPath
        What decides the phases that it achieves under each hash (:func:`parts_of`).
    """

    job: PeriodicJob
    links: tuple[LinksOf, ...]
    parts: tuple[float | OwnPath, ...]

    def on(self, h: int) -> PeriodicJob:
        """Return the job with the phases that it achieves alone under a hash."""
        return achieved(self.job, self.parts[h])


@dataclass(frozen=True, slots=True)
class _OfHash:
    """Uses of links under one hash, what was found there, and links whose jobs have changed since then."""

    uses: Uses
    found: Found
    times: JobTimes
    changed: NDArray[np.int64]
    is_old: bool = False


def seeds_of(cluster: Cluster, seed: int = 0, hashes: int | None = None) -> tuple[int, ...]:
    """Return the seeds of the hashes that are looked at: one where nothing is hashed, or as many as asked for."""
    settings = ScoreSettings(seed=seed, hashes=hashes or HASHES)
    return settings.hash_seeds if is_hashed(cluster.network.routing) else (seed,)


def links_of(cluster: Cluster, jobs: Sequence[PeriodicJob], seed: int) -> list[LinksOf]:
    """Return the links of placed jobs, some jobs at a time: all links of all would not fit in memory.

    Raises
    ------
    InputError
        If the network has no such node, or no path.
    """
    found: list[LinksOf] = []
    for at in range(0, len(jobs), _CHUNK):
        for use in job_uses(cluster, jobs[at : at + _CHUNK], seed):
            links = np.flatnonzero(use)
            found.append((links.astype(np.int64), np.round(use[links], 9)))
    return found


def with_links(cluster: Cluster, jobs: Sequence[PeriodicJob], seeds: Sequence[int]) -> dict[str, KeptJob]:
    """Return placed jobs with their links, by name."""
    rows = list(zip(*(links_of(cluster, jobs, seed) for seed in seeds), strict=True))
    parts = zip(
        *(parts_of(cluster, jobs, links, seed) for links, seed in zip(zip(*rows, strict=True), seeds, strict=True)),
        strict=True,
    )
    return {job.name: KeptJob(job, of, own) for job, of, own in zip(jobs, rows, parts, strict=True)}


def parts_of(
    cluster: Cluster, jobs: Sequence[PeriodicJob], links: Sequence[LinksOf], seed: int
) -> list[float | OwnPath]:
    """Return what decides the phases that placed jobs achieve alone: their fullest link, s/byte, or their own paths."""
    own = own_paths(cluster, jobs, seed)
    bandwidth = cluster.network.bandwidth
    return [own.get(j, float((times / bandwidth[used]).max(initial=0.0))) for j, (used, times) in enumerate(links)]


class KeptJobs:
    """Jobs that are placed; never changed, a change makes another one.

    Parameters
    ----------
    cluster : Cluster
        Cluster that they are on.
    jobs : mapping of str to KeptJob
        Jobs by name.
    of_hash : tuple
        What is known of each hash.
    """

    def __init__(self, cluster: Cluster, jobs: Mapping[str, KeptJob], of_hash: tuple[_OfHash, ...]) -> None:
        self.cluster, self.jobs, self._of_hash = cluster, jobs, of_hash
        self._met: dict[int, MetJobs] = {}
        self._achieved: dict[int, list[PeriodicJob]] = {}
        self._simulated: dict[tuple[int, int], NDArray[np.float64]] = {}

    @classmethod
    def none(cls, cluster: Cluster, seeds: Sequence[int]) -> KeptJobs:
        """Return those of an empty cluster."""
        return cls(cluster, {}, tuple(_empty() for _ in seeds))

    def met(self, h: int) -> MetJobs:
        """Return the jobs as the kernels see them under one hash."""
        if h not in self._met:
            self._met[h] = met_jobs(self.achieved(h))
        return self._met[h]

    def achieved(self, h: int) -> list[PeriodicJob]:
        """Return the jobs with the phases that they achieve alone under one hash."""
        if h not in self._achieved:
            self._achieved[h] = [kept.on(h) for kept in self.jobs.values()]
        return self._achieved[h]

    def simulated(self, h: int, group: int, simulate: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the times of a group of jobs, s, that are simulated once; it has the number of one of its jobs."""
        if (h, group) not in self._simulated:
            self._simulated[h, group] = simulate()
        return self._simulated[h, group]

    @functools.cached_property
    def period(self) -> NDArray[np.float64]:
        """Iteration time of each job where nothing slows it down, float64[n_jobs], s."""
        return np.array([kept.job.period for kept in self.jobs.values()], np.float64)

    @functools.cached_property
    def taken(self) -> NDArray[np.int64]:
        """GPUs of each node that the jobs have, int64[n_nodes]."""
        number = numbers_of(self.cluster.network)
        nodes = [number[name] for one in self.jobs.values() for name in one.job.placement or ()]
        return np.bincount(np.array(nodes, np.int64), minlength=self.cluster.network.n_nodes)

    def changed(self, added: Mapping[str, KeptJob], removed: Sequence[str] = ()) -> KeptJobs:
        """Return the jobs after a change: some added or replaced, others removed.

        Jobs that come without a start get the best one beside those before them; so do their `start`.
        """
        stay = {name: kept for name, kept in self.jobs.items() if name not in added and name not in removed}
        jobs = self._with_starts(stay, added)
        number = {name: i for i, name in enumerate(jobs)}
        to = np.array([number.get(name, -1) if name in stay else -1 for name in self.jobs], np.int64)
        new = [(number[name], jobs[name].links) for name in added]
        bandwidth = self.cluster.network.bandwidth
        of_hash = tuple(
            _merged(of, to, [(j, *links[h]) for j, links in new], len(jobs), bandwidth)
            for h, of in enumerate(self._of_hash)
        )
        return KeptJobs(self.cluster, jobs, of_hash)

    def _with_starts(self, stay: Mapping[str, KeptJob], added: Mapping[str, KeptJob]) -> dict[str, KeptJob]:
        """Give a start to each added job that has none, one after the other."""
        late = [name for name, kept in added.items() if kept.job.start is None and kept.job.phases]
        jobs = {**stay, **{name: kept for name, kept in added.items() if name not in late}}
        bandwidth = self.cluster.network.bandwidth
        rows = [(j, *kept.links[0]) for j, kept in enumerate((*jobs.values(), *(added[name] for name in late)))]
        uses = uses_of(rows, bandwidth)
        shift = np.append(np.zeros(len(jobs)), np.full(len(late), np.nan))  # nobody meets those that have none yet
        met = met_jobs([*(kept.on(0) for kept in jobs.values()), *(added[name].on(0) for name in late)])
        for j, name in enumerate(late, len(jobs)):
            shift[j], _ = best_start(shifted(met, shift), [(uses, uses_of([rows[j]], bandwidth))], j)
            jobs[name] = replace(added[name], job=replace(added[name].job, start=float(shift[j])))
        return {name: jobs[name] for name in (*stay, *added)}

    def of(self, h: int) -> tuple[Uses, Found, JobTimes]:
        """Return uses and times under one hash, once all that changed is found anew."""
        of = self._of_hash[h]
        if of.is_old:
            meet_again(self.met(h), of.uses, of.found, np.searchsorted(of.uses.link, of.changed))
            sum_up(self.met(h), of.uses, of.found, of.times)
            found = replace(of, changed=of.changed[:0], is_old=False)
            self._of_hash = (*self._of_hash[:h], found, *self._of_hash[h + 1 :])
        return of.uses, of.found, of.times

    @property
    def used(self) -> NDArray[np.int64]:
        """Links that carry anything under the first hash."""
        return self._of_hash[0].uses.link

    def sharing(self, link: int, h: int = 0) -> dict[str, float]:
        """Return the jobs on a link by name, and how many times its rate each sends over it."""
        uses, rate = self._of_hash[h].uses, float(self.cluster.network.bandwidth[link])
        at = int(np.searchsorted(uses.link, link))
        if at >= len(uses.link) or uses.link[at] != link:
            return {}
        span = slice(int(uses.first[at]), int(uses.first[at + 1]))
        names = [self._names[j] for j in uses.job[span].tolist()]
        return dict(zip(names, np.round(uses.part[span] * rate, 9).tolist(), strict=True))

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.jobs)


def best_start(met: MetJobs, hashes: Sequence[tuple[Uses, Uses]], moved: int) -> tuple[float, float]:
    """Find the start of one job with the least excess, summed over its links under some hashes.

    Parameters
    ----------
    met : MetJobs
        All jobs.
    hashes : sequence of (Uses, Uses)
        For each hash the uses of links by jobs that are kept, and by those that are added, with the one that is moved.
    moved : int
        The job.

    Returns
    -------
    float, float
        The start, in whole microseconds, in the middle of the longest window of equally good ones; and how long that
        window is, s: a whole iteration where every start is as good.
    """
    cost, period = np.zeros(BINS), float(met.row["period"][moved])
    for uses, more in hashes:
        start_costs(met, uses, more, moved, cost)
    first, length = widest_window(cost)
    if length == BINS:
        return 0.0, period
    begin, end = _exact_window(met, hashes, moved, first, length) or (first / BINS, (first + length - 1) / BINS)
    start = round((begin + end) / 2 * period % period, 6)
    return start if start < period else 0.0, (end - begin) * period


def _exact_window(
    met: MetJobs, hashes: Sequence[tuple[Uses, Uses]], moved: int, first: int, length: int
) -> tuple[float, float] | None:
    """Return the ends of the window that some bins show, as parts of an iteration: there edges of phases meet.

    The excess is linear between two such starts. Each end is near the first or the last of `length` bins.
    None where phases have too many edges, or too many meet there.
    """
    period = float(met.row["whole"][moved]) * met.quantum
    low, near = (first - _SMEARED) * period / BINS, _SMEARED * period / BINS
    span = (length - 1) * period / BINS + 2 * near
    at = np.concatenate([starts_within(met, uses, more, moved, low, span, near) for uses, more in hashes])
    if np.isnan(at).any():
        return None
    # edges that meet in several ways differ in their last digits; between two ends that are apart all starts are alike
    at = np.unique(np.append(np.round(at, 12), [span / 2] if length > 1 else []))
    if not 0 < len(at) <= _MOST_ENDS:
        return None
    cost = np.zeros(len(at))
    for uses, more in hashes:
        add_excess(met, uses, more, moved, low + at, cost)
    is_least = cost <= cost.min() + LEAST
    ends = np.flatnonzero(np.diff(np.concatenate([[False], is_least, [False]])))
    begin, end = max(ends.reshape(-1, 2), key=lambda run: at[run[1] - 1] - at[run[0]])
    return float((low + at[begin]) / period), float((low + at[end - 1]) / period)


def uses_of(rows: Sequence[tuple[int, NDArray[np.int64], NDArray[np.float64]]], bandwidth: NDArray[np.float64]) -> Uses:
    """Return the uses of links by jobs: number, links, and how many times its rate each carries."""
    if not rows or not any(len(links) for _, links, _ in rows):
        return _empty().uses
    job = np.repeat([j for j, _, _ in rows], [len(links) for _, links, _ in rows]).astype(np.int64)
    link, times = (np.concatenate([row[k] for row in rows]) for k in (1, 2))
    return _by_link(link, job, times / bandwidth[link])[0]


def _by_link(
    link: NDArray[np.int64], job: NDArray[np.int64], part: NDArray[np.float64]
) -> tuple[Uses, NDArray[np.intp], NDArray[np.int64]]:
    """Return entries by link and job, their order, and the link of each."""
    order = np.lexsort((job, link))
    link = link[order]
    is_first = np.ones(len(link), np.bool_)
    np.not_equal(link[1:], link[:-1], out=is_first[1:])
    first = np.append(np.flatnonzero(is_first), len(link)).astype(np.int64)
    return Uses(link[is_first].astype(np.int64), first, job[order].astype(np.int64), part[order]), order, link


def _empty() -> _OfHash:
    no, none = np.zeros(0, np.int64), np.zeros(0)
    uses = Uses(no, np.zeros(1, np.int64), no, none)
    found = Found(none, none, np.zeros(1, np.int64), no, no)
    return _OfHash(uses, found, JobTimes(none, none, none, none), no)


def _merged(
    of: _OfHash,
    to: NDArray[np.int64],
    new: Sequence[tuple[int, NDArray[np.int64], NDArray[np.float64]]],
    n_jobs: int,
    bandwidth: NDArray[np.float64],
) -> _OfHash:
    """Return the uses with new numbers of jobs: without those that are gone (-1 in `to`), with those that are new."""
    old = of.uses
    link, stays = np.repeat(old.link, np.diff(old.first)), to[old.job] >= 0
    come = uses_of(new, bandwidth)
    come_link = np.repeat(come.link, np.diff(come.first))
    changed = np.unique(np.concatenate((of.changed, link[~stays], come_link)))
    uses, order, _ = _by_link(
        np.concatenate((link[stays], come_link)), np.concatenate((to[old.job[stays]], come.job)),
        np.concatenate((old.part[stays], come.part)),
    )  # fmt: skip
    nothing = np.zeros(len(come.job))
    held, drift = (np.concatenate((was[stays], nothing))[order] for was in (of.found.held, of.found.drift))
    by_job = np.argsort(uses.job, kind="stable")
    first_of = np.searchsorted(uses.job[by_job], np.arange(n_jobs + 1)).astype(np.int64)
    found = Found(held, drift, first_of, by_job.astype(np.int64), np.arange(n_jobs))
    times = JobTimes(*(np.zeros(n_jobs) for _ in range(4)))
    changed = changed[np.isin(changed, uses.link)]
    return _OfHash(uses, found, times, changed.astype(np.int64), is_old=True)
