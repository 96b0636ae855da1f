"""Classes of links on which the same jobs demand the same shares, and their scores."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.limits import MAX_HASHES
from commsim.core.network import Network
from commsim.placement.starts.affinity import components
from commsim.placement.starts.circles import ANGLES, QUANTUM, Circle, require_circle, unify
from commsim.placement.starts.link_scores import ROUNDING, best_shifts
from commsim.placement.starts.phase_edges import cut_circle
from commsim.prediction.plans.draws import HASHES, hash_seeds
from commsim.training.sharing.periodic import PeriodicJob, with_starts

from .starts.achieved_phases import achieved
from .starts.job_uses import OwnPath
from .starts.meeting_kernel import MetJobs
from .starts.met_jobs import LONGEST, met_jobs


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """How scores are found.

    Parameters
    ----------
    angles, step, quantum, longest
        Same as in :func:`commsim.placement.starts.circles.unify`; but since there are many links, circles are at most
        2.4 s long, which hold a dozen iterations of most jobs.
    seed : int
        Seed of the hash in routing, and of candidates that are drawn.
    hashes : int
        Number of hashes of paths that are drawn where paths are hashed: a placement is what it is with the median one.
    simulated : int
        Jobs times phases of a component up to which an estimate simulates it: a millisecond by default; 0 for none.
    """

    angles: int = ANGLES
    step: float | None = None
    quantum: float = QUANTUM
    longest: float = LONGEST
    seed: int = 0
    hashes: int = HASHES
    simulated: int = 150

    def __post_init__(self) -> None:
        if not 1 <= self.hashes <= MAX_HASHES:
            raise InputError(f"hashes must be 1..{MAX_HASHES}, got {self.hashes}")
        require_circle(self.angles, self.step, self.quantum, self.longest)  # also where no jobs meet on a link

    @property
    def hash_seeds(self) -> tuple[int, ...]:
        """Seeds of the hashes that are drawn; the first is `seed` itself."""
        return (self.seed, *hash_seeds(self.seed, self.hashes))


@dataclass(frozen=True, slots=True)
class LinkClass:
    """Links on which the same jobs demand the same parts of the capacity.

    Parameters
    ----------
    jobs : tuple of int
        Those that pass.
    part : float64[n_jobs], s/byte
        Factor that turns a rate of each of these jobs into a share of the capacity.
    links : int64[n_links]
        Numbers of the links.
    """

    jobs: tuple[int, ...]
    part: NDArray[np.float64]
    links: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Met:
    """How the jobs of a class of links meet there.

    Parameters
    ----------
    score : float
        Score of each link.
    times : tuple of float, s
        Iteration time of each job, with what it loses there.
    """

    score: float
    times: tuple[float, ...]


class PlacedLinks(list[LinkClass]):
    """Classes of the links of one placement.

    Parameters
    ----------
    classes : sequence of LinkClass
    own : mapping of int to OwnPath
        What the phases of jobs need on their own paths, of jobs whose phases have different groups.
    """

    def __init__(self, classes: Sequence[LinkClass], own: Mapping[int, OwnPath]) -> None:
        super().__init__(classes)
        self.own = own


def link_classes(network: Network, use: NDArray[np.float64], own: Mapping[int, OwnPath] | None = None) -> PlacedLinks:
    """Group the links that carry anything.

    Parameters
    ----------
    use : float64[n_jobs, n_links]
        How many times its rate each job sends over each link.
    own : mapping of int to OwnPath, optional
        As :func:`.own_paths` finds it.
    """
    job, link = np.nonzero(use)
    times = np.round(use[job, link], 9)
    order = np.argsort(link, kind="stable")
    order = order[times[order] > 0]
    if not order.size:
        return PlacedLinks([], own or {})
    job, link = job[order], link[order]
    part = times[order] / network.bandwidth[link]
    used, first = np.unique(link, return_index=True)
    ends = [*first[1:].tolist(), len(link)]
    classes: dict[tuple[bytes, bytes], tuple[slice, list[int]]] = {}  # in the order of links
    for number, begin, end in zip(used.tolist(), first.tolist(), ends, strict=True):
        of_link = slice(begin, end)
        classes.setdefault((job[of_link].tobytes(), part[of_link].tobytes()), (of_link, []))[1].append(number)
    found = [
        LinkClass(tuple(job[of_link].tolist()), part[of_link], np.array(links)) for of_link, links in classes.values()
    ]
    return PlacedLinks(found, own or {})


class KnownClass(NamedTuple):
    """A class of links, what decides how its jobs meet, their numbers, and whether they can exceed it."""

    links: LinkClass
    key: tuple[tuple[int, ...], bytes]
    member: NDArray[np.int64]
    is_tight: bool


# By component: its jobs, and its classes of links.
TightLinks: TypeAlias = tuple[tuple[list[int], list[LinkClass]], ...]


@dataclass(slots=True)
class _Found:
    """Circles and scores that were found, by the phases of the jobs (:attr:`Scores.ids`)."""

    ids: dict[tuple[int, float | OwnPath], int] = field(default_factory=dict)
    views: dict[tuple[int, ...], Scores] = field(default_factory=dict)
    on: dict[int, tuple[Sequence[LinkClass], Scores]] = field(default_factory=dict)  # by id, which is kept
    circles: dict[tuple[int, ...], tuple[Circle, list[PeriodicJob]]] = field(default_factory=dict)
    shifts: dict[tuple[tuple[int, ...], bytes], NDArray[np.float64]] = field(default_factory=dict)
    tables: dict[tuple[int, ...], MetJobs] = field(default_factory=dict)
    met: dict[tuple[tuple[int, ...], bytes, bytes], Met] = field(default_factory=dict)
    descended: set[tuple[int, ...]] = field(default_factory=set)
    simulated: dict[tuple[object, ...], NDArray[np.float64]] = field(default_factory=dict)


def _worst_parts(n_jobs: int, classes: Sequence[LinkClass]) -> list[float | OwnPath]:
    """Return the factor that turns a rate of each job into a share of its fullest link, s/byte, or its own path."""
    part = np.zeros(n_jobs)
    for links in classes:
        own = list(links.jobs)
        part[own] = np.maximum(part[own], links.part)
    found: list[float | OwnPath] = [*part.tolist()]
    for job, path in classes.own.items() if isinstance(classes, PlacedLinks) else ():
        found[job] = path
    return found


class Scores:
    """Circles and best rotations that were found before, for candidates that differ in little.

    Parameters
    ----------
    jobs : sequence of PeriodicJob
        Jobs whose numbers the classes use.
    settings : ScoreSettings
        How to look.
    """

    def __init__(self, jobs: Sequence[PeriodicJob], settings: ScoreSettings) -> None:
        self.is_held = np.array([job.start is not None for job in jobs], np.bool_)
        self.start = np.array([job.start or 0.0 for job in jobs])
        self.settings, self._given, self._found = settings, tuple(jobs), _Found()
        self._set([0.0] * len(jobs))

    def _set(self, parts: Sequence[float | OwnPath]) -> None:
        """Take the phases that jobs achieve where their rates are these parts of their fullest links."""
        pairs = [(job, achieved(job, part)) for job, part in zip(self._given, parts, strict=True)]
        keys = [(j, 0.0 if job is now else part) for (j, (job, now)), part in zip(enumerate(pairs), parts, strict=True)]
        self.ids = tuple(self._found.ids.setdefault(key, len(self._found.ids)) for key in keys)
        self.started = tuple(now for _, now in pairs)
        self.jobs = with_starts(self.started)
        self.period = np.array([job.period for job in self.jobs])
        self.peak = np.array([job.peak_rate for job in self.jobs])
        self.mean = np.array([job.n_bytes / job.period for job in self.jobs])
        # by id of classes of links that are asked for again at other start times; kept, so that no other has the id
        self._keys: dict[int, KnownClass] = {}
        self._joined: dict[int, tuple[Sequence[LinkClass], TightLinks]] = {}

    def on(self, classes: Sequence[LinkClass]) -> Scores:
        """Return the scores of the same jobs with the phases that they achieve on these links, each alone."""
        if id(classes) not in self._found.on:
            view = copy.copy(self)
            view._set(_worst_parts(len(self._given), classes))
            self._found.on[id(classes)] = classes, self._found.views.setdefault(view.ids, view)
        return self._found.on[id(classes)][1]

    def _ids(self, jobs: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.ids[j] for j in jobs)

    @property
    def met(self) -> dict[tuple[tuple[int, ...], bytes, bytes], Met]:
        """What was found of links, by the jobs' phases, parts and start times."""
        return self._found.met

    @property
    def simulated(self) -> dict[tuple[object, ...], NDArray[np.float64]]:
        """Iteration times, s, that were simulated of jobs on some links, by what decides these."""
        return self._found.simulated

    @property
    def descended(self) -> set[tuple[int, ...]]:
        """Jobs whose best rotations may not have been found."""
        return self._found.descended

    def key(self, links: LinkClass) -> tuple[tuple[int, ...], bytes]:
        """Return what decides how the jobs of a class of links meet."""
        return self.known(links).key

    def known(self, links: LinkClass) -> KnownClass:
        """Return what does not depend on start times."""
        if id(links) not in self._keys:
            member = np.array(links.jobs, np.int64)
            is_tight = float(links.part @ self.peak[member]) > 1 + 1e-9
            key = self._ids(links.jobs), links.part.tobytes()
            self._keys[id(links)] = KnownClass(links, key, member, is_tight)
        return self._keys[id(links)]

    def circle(self, jobs: tuple[int, ...]) -> Circle:
        """Circle of some of the jobs, those with a fixed start as of then."""
        key = self._ids(jobs)
        if key not in self._found.circles:
            given, s = [self.jobs[j] for j in jobs], self.settings
            circle = unify(given, angles=s.angles, step=s.step, quantum=s.quantum, longest=s.longest)
            self._found.circles[key] = circle, given
        return self._found.circles[key][0]

    @property
    def met_jobs(self) -> MetJobs:
        """Jobs as the kernels see them."""
        if self.ids not in self._found.tables:
            s = self.settings
            self._found.tables[self.ids] = met_jobs(self.started, s.quantum, s.longest)
        return self._found.tables[self.ids]

    def shifts(self, links: LinkClass) -> NDArray[np.float64]:
        """Best shifts on a class of links by itself, float64[n_jobs], s; 0 for jobs with a fixed start."""
        key, known = self.key(links), self._found.shifts
        if key not in known:
            circle = self.circle(links.jobs)
            known[key], is_exhaustive = best_shifts(circle, links.part, self.is_held[list(links.jobs)])
            if not is_exhaustive and not self._is_least(links, known[key]):
                self.descended.add(links.jobs)
        return known[key]

    def _is_least(self, links: LinkClass, shifts: NDArray[np.float64]) -> bool:
        """Whether no shifts can have less excess than those found: the mean demand leaves as much."""
        pieces = cut_circle(self.circle(links.jobs), shifts)
        load = links.part @ pieces.demand - 1.0
        return float(np.maximum(load, 0.0) @ pieces.length) <= max(0.0, float(load @ pieces.length)) + ROUNDING

    def blurred(self) -> dict[str, float]:
        """Shortest phase, in s, of each job that has one shorter than an angle of a circle with several other jobs."""
        found = {}
        for circle, jobs in self._found.circles.values():
            for job in jobs if len(jobs) > 2 else ():  # of two jobs all meetings are tried
                shortest = min((phase.duration for phase in job.phases if phase.rate > 0), default=np.inf)
                if shortest < circle.step * (1 - 1e-9):
                    found[job.name] = shortest
        return found

    def is_tight(self, links: LinkClass) -> bool:
        """Whether the peaks of the jobs that pass exceed the capacity together: else every shift suits it."""
        return self.known(links).is_tight

    def tight(self, classes: Sequence[LinkClass]) -> TightLinks:
        """Return the links of several jobs that can exceed them, by the jobs that these join."""
        if id(classes) not in self._joined:
            several = [links for links in classes if len(links.jobs) > 1 and self.is_tight(links)]
            parts = components([links.jobs for links in several])
            found = tuple((list(part.jobs), [several[i] for i in part.links]) for part in parts)
            self._joined[id(classes)] = classes, found
        return self._joined[id(classes)][1]

    def counts(self, links: LinkClass) -> bool:
        """Whether the links have scores: several jobs share them. One job alone takes as long as they need."""
        return len(links.jobs) > 1
