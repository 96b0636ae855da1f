"""Link scores: the share of demand above a link's capacity at the best start times, and the search for these times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError, wrong_kind
from commsim.core.limits import expect
from commsim.core.units import parse_bandwidth
from commsim.core.value import Value, freeze
from commsim.placement.starts.achieved_phases import achieved
from commsim.placement.starts.circles import ANGLES, LONGEST, QUANTUM, Circle, unify
from commsim.placement.starts.phase_edges import DemandPieces, cut_circle, meet
from commsim.placement.starts.windows import in_the_middle
from commsim.training.sharing.periodic import JobsLike, PeriodicJob, read_jobs, with_starts

# Combinations of rotations, times angles, up to which all are tried.
EXHAUSTIVE = 2**19
# Of the search that rotates one job after the other, whose rounds are estimated.
STARTS, ROUNDS = 3, 2
PER_ANGLE = 1e-9  # seconds of one angle of one rotation: 0.4 to 1 were measured
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0  # its multiples are spread evenly over 0..1
# Part of the capacity, below which an excess is rounding.
ROUNDING = 1e-9


def search(
    circle: Circle, part: NDArray[np.float64], is_held: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], bool]:
    """Find the rotations of one link's jobs with the least mean excess.

    Parameters
    ----------
    part : float64[n_jobs]
        Times which, a job's demand is a part of the capacity.
    is_held : bool[n_jobs], optional
        Jobs that are not rotated; by default the first, since rotating all jobs together changes nothing.

    Returns
    -------
    int64[n_jobs], bool
        The rotations in angles, and whether all were tried.
    """
    if is_held is None or not is_held.any():
        return _search(circle, part, 1)
    order = np.argsort(~is_held, kind="stable")
    rotations = np.empty(len(order), np.int64)
    rotations[order], is_exhaustive = _search(circle.reordered(order), part[order], int(is_held.sum()))
    return rotations, is_exhaustive


def _search(circle: Circle, part: NDArray[np.float64], n_held: int) -> tuple[NDArray[np.int64], bool]:
    """Do that where the jobs that are not rotated come first."""
    from commsim.placement.starts.search_kernel import search_all

    def held(positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate((np.ones(n_held, np.int64), positions[n_held:]))

    positions = held(circle.n_positions)
    if not _is_little(positions, circle.n_angles):
        positions = held(circle.distinct_positions(order=True))
    if not _is_little(positions, circle.n_angles):
        positions = held(circle.distinct_positions(order=False))
        return search_together(
            circle, part[None], np.ones(1, np.int64), different_rotations(positions), positions
        ), False
    unit = _unit(circle, part[None], np.ones(1))
    demand = np.rint(circle.demand * (part * unit)[:, None]).astype(np.int64)
    floor = int(demand[:, circle.reach :].sum()) - int(unit) * circle.n_angles  # no rotation changes the sum
    enough = max(0, floor) + circle.n_angles
    return search_all(demand, circle.reach, positions, int(unit), enough)[1], True


def _is_little(positions: NDArray[np.int64], n_angles: int) -> bool:
    combinations: int = math.prod(positions[1:].tolist())
    return combinations * n_angles <= EXHAUSTIVE


def search_together(
    circle: Circle,
    part: NDArray[np.float64],
    weight: NDArray[np.int64],
    starts: NDArray[np.int64],
    positions: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Find rotations that suit several links at once, one job after the other.

    Parameters
    ----------
    part : float64[n_links, n_jobs]
        Times which, a job's demand is a part of the link's capacity; 0 where it does not pass.
    weight : int64[n_links]
        Weight of each link's mean excess in the sum that is minimised.
    starts : int64[n_starts, n_jobs]
        Turns to begin with.
    positions : int64[n_jobs], optional
        How many rotations of each job are tried; by default those that differ in the long run.

    Returns
    -------
    int64[n_jobs]
        The rotations in angles.
    """
    from commsim.placement.starts.search_kernel import search_in_turn

    job, on = np.nonzero(part.T)
    first = np.searchsorted(job, np.arange(len(circle.period) + 1))
    unit = _unit(circle, part, weight)
    times = part.T[job, on] * unit
    kinds = {pair: i for i, pair in enumerate(dict.fromkeys(zip(job.tolist(), times.tolist(), strict=True)))}
    row = np.array([kinds[pair] for pair in zip(job.tolist(), times.tolist(), strict=True)], np.int64)
    jobs, shares = np.array([j for j, _ in kinds], np.int64), np.array([share for _, share in kinds])
    demand = np.rint(circle.demand[jobs] * shares[:, None]).astype(np.int64)  # a job demands the same of many links
    link = np.stack((np.full(len(weight), int(unit)), weight.astype(np.int64)))
    whole = demand[:, circle.reach :].sum(axis=1)[row]
    floors = np.bincount(on, whole, len(weight)) - unit * circle.n_angles
    enough = int(weight @ np.maximum(floors, 0.0)) + circle.n_angles
    positions = circle.distinct_positions(order=False) if positions is None else positions
    steps = float(len(starts) * circle.n_angles * (np.diff(first) * positions)[1:].sum())
    expect(steps * ROUNDS * PER_ANGLE, f"trying {float(f'{steps:.2g}'):g} angles of circles", "a longer --step")
    return search_in_turn(demand, first, np.stack((on, row)), circle.reach, positions, link, starts, enough)[1]


def _unit(circle: Circle, part: NDArray[np.float64], weight: NDArray[Any]) -> float:
    """Return how many units the capacity has: 2^30, or fewer, so that no sum of the search exceeds 62 bits."""
    peak = max(1.0, float((part @ circle.demand.max(axis=1)).max(initial=0.0)))
    bits = np.log2(peak) + np.log2(circle.n_angles) + np.log2(max(1, int(weight.sum())))
    return float(2.0 ** min(30.0, np.floor(62.0 - bits)))


def different_rotations(positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return starting rotations, int64[STARTS, n_jobs]: none, and others far from each other; the first job stays."""
    far = np.outer(np.arange(STARTS), np.arange(len(positions)) * _GOLDEN) % 1.0
    starts: NDArray[np.int64] = (far * positions).astype(np.int64)
    return starts


@dataclass(frozen=True, slots=True, eq=False)
class LinkScore(Value):
    """How well jobs fit on one link.

    Parameters
    ----------
    score : float
        1 less the mean excess demand at the start times, as a part of the capacity (Eqs. 1 and 2, without angles); 1 if
        nothing is in excess. It can be negative.
    shifts : float64[n_jobs], s
        How much later than given each job should start, less than its period (Eq. 5). That of the first is 0, unless
        jobs have a fixed start, which is then theirs.
    circle : Circle
        Circle that the rotations are for.
    is_exhaustive : bool
        Whether all rotations were tried; else the best of several descents, one job at a time.
    alone : float64[n_jobs], s
        Iteration time of each job alone on the link: longer than its profile's where the link has less than a phase
        asks for.
    windows : float64[n_jobs, 2], s
        First and last start of each job that cost no more, while the others start as they do.
    """

    score: float
    shifts: NDArray[np.float64]
    circle: Circle
    is_exhaustive: bool
    alone: NDArray[np.float64]
    windows: NDArray[np.float64]

    def row(self, jobs: Sequence[PeriodicJob]) -> dict[str, Any]:
        """Return the JSON of a score of these jobs."""
        circle = self.circle
        return {
            "score": round(self.score, 9) + 0.0,
            "shifts_ms": self._by_job(jobs, self.shifts * 1e3),
            "windows_ms": self._by_job(jobs, self.windows * 1e3),
            "slack_ms": self._by_job(jobs, np.diff(self.windows)[:, 0] * 5e2),
            "alone_ms": self._by_job(jobs, self.alone * 1e3),
            "perimeter_ms": round(circle.perimeter * 1e3, 9),
            "is_common_multiple": circle.is_common,
            "angles": circle.n_angles,
            "is_exhaustive": self.is_exhaustive,
            "period_rounding_ms": round(circle.rounding * 1e3, 9),
        }

    @staticmethod
    def _by_job(jobs: Sequence[PeriodicJob], values: NDArray[np.float64]) -> dict[str, Any]:
        rounded = (np.round(values, 9) + 0.0).tolist()
        return dict(zip((job.name for job in jobs), rounded, strict=True))


def score_link(
    jobs: JobsLike,
    capacity: float | str,
    *,
    use: ArrayLike = 1.0,
    angles: int = ANGLES,
    step: float | None = None,
    quantum: float = QUANTUM,
    longest: float = LONGEST,
) -> LinkScore:
    """Rotate the circles of jobs that share a link until as little demand as possible exceeds its capacity.

    A phase that asks for more than the link has counts as what the link delivers alone (:func:`.achieved`).
    Rotating all jobs together changes nothing, so the first stays. All rotations of the others below their periods (Eq.
    4) are tried where that is little work (``search.EXHAUSTIVE``); or else only those that make a difference in the
    long run; or else one job after the other is rotated, from several starts. If demand is still in excess, one job
    after the other is moved to where its phases meet those of others, between angles. Last, each job is moved to the
    middle of the times at which it costs no more. The same input gives the same answer.

    Parameters
    ----------
    jobs : sequence of PeriodicJob or of dict, or path
        Jobs, at least one, as :func:`commsim.read_jobs` takes them. Those with a start stay there.
    capacity : float, bytes/s, or str
        Capacity of the link; text such as ``50Gbps``.
    use : float or float64[n_jobs]
        How many times its rate each job sends over the link.
    angles, step, quantum, longest
        Same as in :func:`commsim.placement.starts.circles.unify`.

    Raises
    ------
    InputError
        If a number is out of its range.

    References
    ----------
    Rajasekaran, Ghobadi and Akella, "CASSINI: network-aware job scheduling in machine learning clusters", NSDI 2024,
    table 1.
    """
    jobs = read_jobs(jobs)
    if isinstance(capacity, str):
        capacity = parse_bandwidth(capacity, "capacity")
    if not isinstance(capacity, (int, float, np.number)) or isinstance(capacity, bool):
        raise wrong_kind("capacity", "a number of bytes/s, or text such as '50Gbps'", capacity)
    if not 0 < capacity < np.inf:
        raise InputError(f"the capacity of a link is positive and finite, got {capacity:g} bytes/s")
    part = np.broadcast_to(np.asarray(use, np.float64), (len(jobs),)) / capacity
    jobs = tuple(achieved(job, float(one)) for job, one in zip(jobs, part, strict=True))
    circle = unify(with_starts(jobs), angles=angles, step=step, quantum=quantum, longest=longest)
    is_held = np.array([job.start is not None for job in jobs])
    shifts, is_exhaustive = best_shifts(circle, part, is_held)
    stays = is_held if is_held.any() else np.arange(len(jobs)) == 0
    free = np.flatnonzero(~stays).tolist() if circle.is_common else []
    shifts, away = in_the_middle(circle, part[None], np.ones(1, np.int64), shifts, free)
    score = float(score_at(circle, part[None], shifts)[0])
    shifts += [job.start or 0.0 for job in jobs]
    windows = shifts[:, None] + np.array(away) * (-1.0, 1.0)
    alone = np.array([job.period for job in jobs])
    return LinkScore(score, freeze(shifts, np.float64), circle, is_exhaustive, alone, freeze(windows, np.float64))


def best_shifts(
    circle: Circle, part: NDArray[np.float64], is_held: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], bool]:
    """Start times of one link's jobs: the best rotations, moved to where edges of phases meet if that is better.

    Returns
    -------
    float64[n_jobs] (s), bool
        The start times, 0 for jobs that are held, and whether all rotations were tried.
    """
    rotations, is_exhaustive = search(circle, part, is_held)
    stays = is_held if is_held.any() else np.arange(len(is_held)) == 0
    return meet(circle, part[None], np.ones(1, np.int64), circle.seconds(rotations), stays), is_exhaustive


def score_at(circle: Circle, part: NDArray[np.float64], shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of links when the jobs start at given times.

    Parameters
    ----------
    part : float64[n_links, n_jobs]
        Same as in :func:`search_together`.
    shifts : float64[n_jobs], s
        One for each job.

    Returns
    -------
    float64[n_links]
    """
    return scores_of(cut_circle(circle, shifts), part)


def scores_of(pieces: DemandPieces, part: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of links by the pieces of their jobs' circle, float64[n_links]."""
    excess = np.maximum(part @ pieces.demand - 1.0, 0.0)
    scores: NDArray[np.float64] = 1.0 - np.where(excess > ROUNDING, excess, 0.0) @ pieces.length
    return scores
