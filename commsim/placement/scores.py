"""Scores of classes of links, and how they are found: circles, start times and phases that jobs achieve."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.limits import MAX_HASHES
from commsim.placement.starts.affinity import components
from commsim.placement.starts.circles import (
    ANGLES,
    QUANTUM,
    Circle,
    CircleSize,
    circle_size,
    mean_rates,
    require_circle,
    stretched,
)
from commsim.placement.starts.link_scores import ROUNDING, best_shifts
from commsim.placement.starts.phase_edges import cut_circle
from commsim.prediction.plans.draws import HASHES, hash_seeds
from commsim.training.sharing.periodic import PeriodicJob, with_starts

from .link_classes import KnownClass, LinkClass, Passages, PlacedLinks, TightLinks
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


@dataclass(slots=True)
class _Found:
    """Circles and scores that were found, by the phases of the jobs (:attr:`Scores.ids`)."""

    ids: dict[tuple[int, float | OwnPath], int] = field(default_factory=dict)
    views: dict[tuple[int, ...], Scores] = field(default_factory=dict)
    on: dict[int, tuple[Sequence[LinkClass], Scores]] = field(default_factory=dict)  # by id, which is kept
    sizes: dict[tuple[int, ...], tuple[CircleSize, list[PeriodicJob]]] = field(default_factory=dict)
    circles: dict[tuple[int, ...], Circle] = field(default_factory=dict)
    # what a job sends, and its phases, by the job and the size of the circle
    rows: dict[tuple[object, ...], tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=dict)
    shifts: dict[tuple[tuple[int, ...], bytes], NDArray[np.float64]] = field(default_factory=dict)
    tables: dict[tuple[int, ...], MetJobs] = field(default_factory=dict)
    descended: set[tuple[int, ...]] = field(default_factory=set)
    simulated: dict[tuple[object, ...], NDArray[np.float64]] = field(default_factory=dict)


def _worst_parts(n_jobs: int, classes: Sequence[LinkClass], on: Passages) -> list[float | OwnPath]:
    """Return the factor that turns a rate of each job into a share of its fullest link, s/byte, or its own path."""
    part = np.zeros(n_jobs)
    np.maximum.at(part, on.member, on.part)
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
        self._joined: dict[int, tuple[Sequence[LinkClass], tuple[TightLinks, ...]]] = {}
        self._several: dict[int, tuple[Sequence[LinkClass], list[LinkClass]]] = {}

    def on(self, classes: Sequence[LinkClass]) -> Scores:
        """Return the scores of the same jobs with the phases that they achieve on these links, each alone."""
        if id(classes) not in self._found.on:
            view, passages = copy.copy(self), Passages.of(classes)
            view._set(_worst_parts(len(self._given), classes, passages))
            view = self._found.views.setdefault(view.ids, view)
            view._know(classes, passages)
            self._found.on[id(classes)] = classes, view
        return self._found.on[id(classes)][1]

    def _ids(self, jobs: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.ids[j] for j in jobs)

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
            self._know([links], Passages.of([links]))
        return self._keys[id(links)]

    def _know(self, classes: Sequence[LinkClass], on: Passages) -> None:
        """Note that of classes of links."""
        if not classes:
            return
        is_tight = np.add.reduceat(on.part * self.peak[on.member], on.first[:-1]) > 1 + 1e-9
        cuts, ids = on.first.tolist(), np.array(self.ids)[on.member].tolist()
        for links, tight, a, b in zip(classes, is_tight.tolist(), cuts, cuts[1:], strict=False):
            key = tuple(ids[a:b]), links.part.tobytes()
            self._keys[id(links)] = KnownClass(links, key, on.member[a:b], tight)

    def size(self, jobs: tuple[int, ...]) -> CircleSize:
        """Size of the circle of some of the jobs."""
        key = self._ids(jobs)
        if key not in self._found.sizes:
            given, s = [self.jobs[j] for j in jobs], self.settings
            found = circle_size([job.period for job in given], s.angles, s.step, s.quantum, s.longest)
            self._found.sizes[key] = found, given
        return self._found.sizes[key][0]

    def circle(self, jobs: tuple[int, ...]) -> Circle:
        """Circle of some of the jobs, those with a fixed start as of then."""
        key = self._ids(jobs)
        if key not in self._found.circles:
            size = self.size(jobs)
            edges, period = size.edges, size.period
            rows = [self._row(j, k, size, edges) for j, k in zip(jobs, period.tolist(), strict=True)]
            demand, phases = (np.concatenate(of, axis=axis) for axis, of in enumerate(zip(*rows, strict=True)))
            first = np.cumsum([0, *(len(self.jobs[j].phases) for j in jobs)])
            self._found.circles[key] = size.circle(demand, phases, first)
        return self._found.circles[key]

    def _row(
        self, j: int, period: float, size: CircleSize, edges: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what a job sends on a circle of this size, float64[1, n], bytes/s, and its phases there."""
        key = self.ids[j], size.perimeter, len(edges), size.n_angles
        if key not in self._found.rows:
            job = self.jobs[j]
            mean = mean_rates([job], np.array([period]), edges)
            self._found.rows[key] = mean, stretched(job, period / job.period)
        return self._found.rows[key]

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
        for size, jobs in self._found.sizes.values():
            for job in jobs if len(jobs) > 2 else ():  # of two jobs all meetings are tried
                shortest = min((phase.duration for phase in job.phases if phase.rate > 0), default=np.inf)
                if shortest < size.step * (1 - 1e-9):
                    found[job.name] = shortest
        return found

    def is_tight(self, links: LinkClass) -> bool:
        """Whether the peaks of the jobs that pass exceed the capacity together: else every shift suits it."""
        return self.known(links).is_tight

    def several(self, classes: Sequence[LinkClass]) -> list[LinkClass]:
        """Return the links of several jobs that can exceed them."""
        if id(classes) not in self._several:
            found = [links for links in classes if len(links.jobs) > 1 and self.is_tight(links)]
            self._several[id(classes)] = classes, found
        return self._several[id(classes)][1]

    def tight(self, classes: Sequence[LinkClass]) -> tuple[TightLinks, ...]:
        """Return them by the jobs that these join."""
        if id(classes) not in self._joined:
            several = self.several(classes)
            found = []
            for part in components([links.jobs for links in several]):
                own = [several[i] for i in part.links]
                found.append(TightLinks(list(part.jobs), own, Passages.of(own)))
            self._joined[id(classes)] = classes, tuple(found)
        return self._joined[id(classes)][1]

    def counts(self, links: LinkClass) -> bool:
        """Whether the links have scores: several jobs share them. One job alone takes as long as they need."""
        return len(links.jobs) > 1
