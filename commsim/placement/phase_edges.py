"""Circles cut at the edges of phases: exact excess of demand, and start times at which edges of two jobs meet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.training.sharing.periodic import PeriodicJob

from .circles import Circle

# Pieces of a circle; where phases have more edges, so many equal ones are looked at, each at a moment
# that is drawn, always the same: evenly spaced ones would miss phases that are spaced alike.
MAX_PIECES = 20_000
# Start times of one job that are tried: those nearest to its own, where there are more.
MAX_MEETINGS = 4096
# Pairs of edges of a circle that may meet; where there are more, start times stay whole angles: some 0.1 s of a search.
MAX_PAIRS = 500_000
MAX_STATES = 1024  # that jobs can have together; of more, so many are drawn
ROUNDS = 4  # over all jobs, at most, in which start times are moved
_SAME = 1e-12  # part of the perimeter by which edges differ that were written to meet
LESS = 1e-9  # by which a mean excess must be less, as a part of the capacity, to move a job


@dataclass(frozen=True, slots=True)
class DemandPieces:
    """Parts of the time in which no demand changes.

    Parameters
    ----------
    length : float64[n_pieces]
        Length of each, as a part of the time.
    phase : int64[n_jobs, n_pieces]
        Number of the phase in which each job sends, among its own; -1 where it computes.
    demand : float64[n_jobs, n_pieces], bytes/s
        Demand of each job.
    """

    length: NDArray[np.float64]
    phase: NDArray[np.int64]
    demand: NDArray[np.float64]


def cut_circle(circle: Circle, shifts: NDArray[np.float64]) -> DemandPieces:
    """Cut a circle wherever a phase begins or ends when each job starts later by its shift.

    Parameters
    ----------
    shifts : float64[n_jobs], s
        One for each job of the circle.
    """
    edges, phase, demand = _cut_edges(circle, shifts, range(len(circle.period)))
    return DemandPieces((edges[1:] - edges[:-1]) / circle.perimeter, phase, demand)


def _cut_edges(
    circle: Circle, shifts: NDArray[np.float64], jobs: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Return edges in s, and phases and demands of some of the jobs between them."""
    of = np.asarray(jobs, np.int64)
    n_phases = circle.first_phase[of + 1] - circle.first_phase[of]
    if float(2 * n_phases @ (circle.perimeter / circle.period[of] + 2)) <= MAX_PIECES:
        edges = _edges(circle, shifts, of, n_phases)
        moments = (edges[1:] + edges[:-1]) / 2
    else:
        edges = np.linspace(0.0, circle.perimeter, MAX_PIECES + 1)
        moments = edges[:-1] + np.random.default_rng(0).random(MAX_PIECES) * edges[1]
    if (n_phases == 1).all():  # as most jobs have: all at once
        offset, duration, rate = circle.phases[:, circle.first_phase[of], None]
        is_on = (moments - (shifts[of, None] + offset)) % circle.period[of, None] < duration
        return edges, is_on.astype(np.int64) - 1, is_on * rate
    phase = np.full((len(of), len(moments)), -1)
    demand = np.zeros((len(of), len(moments)))
    for i, j in enumerate(of.tolist()):
        offset, duration, rate = circle.phases_of(j)
        if not len(offset):
            continue
        late = (moments - (shifts[j] + offset[0])) % float(circle.period[j])  # since the first phase began
        at = np.searchsorted(offset - offset[0], late, "right") - 1
        is_on = late - (offset[at] - offset[0]) < duration[at]
        phase[i], demand[i] = np.where(is_on, at, -1), is_on * rate[at]
    return edges, phase, demand


def anywhere(jobs: Sequence[PeriodicJob]) -> DemandPieces:
    """Return all that jobs can do at once, by how much of the time they do it if they start at any time.

    Where jobs have many phases, some of it is drawn, always the same.
    """
    shape = [len(job.phases) + 1 for job in jobs]
    part = [np.array([phase.duration / job.period for phase in job.phases]) for job in jobs]
    part = [np.concatenate(([max(0.0, 1.0 - of.sum())], of)) for of in part]
    if math.prod(shape) <= MAX_STATES:
        state = np.indices(shape).reshape(len(shape), -1)
        length = np.prod([of[at] for of, at in zip(part, state, strict=True)], axis=0)
    else:  # each job passes evenly through its iteration, and independently of the others
        draw, n = np.random.default_rng(0), MAX_STATES
        at = [(draw.permutation(n) + 0.5) / n for _ in jobs]
        state = np.array([np.searchsorted(np.cumsum(of[:-1]), u, "right") for of, u in zip(part, at, strict=True)])
        length = np.full(n, 1.0 / n)
    rates = [np.array([0.0, *(phase.rate for phase in job.phases)]) for job in jobs]
    demand = np.array([of[at] for of, at in zip(rates, state, strict=True)])
    return DemandPieces(length, state - 1, demand)


def _edges(
    circle: Circle, shifts: NDArray[np.float64], jobs: NDArray[np.int64], n_phases: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the edges of phases in ascending order, from 0 to the perimeter, each once."""
    row = _ranges(n_phases) + np.repeat(circle.first_phase[jobs], n_phases)
    job = np.repeat(jobs, n_phases)
    offset, duration, _ = circle.phases[:, row]
    period = np.concatenate((circle.period[job], circle.period[job]))
    own = (np.concatenate((offset, offset + duration)) + np.concatenate((shifts[job], shifts[job]))) % period
    n_rounds = np.ceil(circle.perimeter / period).astype(np.int64)
    each = np.repeat(own, n_rounds) + _ranges(n_rounds) * np.repeat(period, n_rounds)
    return _apart(np.concatenate(([0.0, circle.perimeter], each[each <= circle.perimeter])), circle.perimeter)


def _ranges(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers from 0 up to each count, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)


def _apart(times: NDArray[np.float64], perimeter: float) -> NDArray[np.float64]:
    """Sort times of at least 0, and leave out those that are the same as the one before."""
    times = np.sort(times)
    is_other = np.ones(len(times), np.bool_)
    np.greater(times[1:] - times[:-1], _SAME * perimeter, out=is_other[1:])
    return times[is_other]


def meet(
    circle: Circle,
    part: NDArray[np.float64],
    weight: NDArray[np.int64],
    shifts: NDArray[np.float64],
    is_held: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Move one job after the other to where an edge of its phases meets another job's, while the excess gets less.

    The excess is linear between two such start times of a job, so one of them is best for it; of two jobs, in all.
    Nobody moves where phases have more edges than can be tried (``MAX_PAIRS``).

    Parameters
    ----------
    part : float64[n_links, n_jobs]
        Factors that turn rates of the jobs into shares of the capacities; 0 where a job does not pass.
    weight : int64[n_links]
        Weight of each link's mean excess in the sum that gets less.
    shifts : float64[n_jobs], s
        Start times to begin with.
    is_held : bool[n_jobs]
        Jobs that stay where they are.

    Returns
    -------
    float64[n_jobs], s
    """
    pieces = cut_circle(circle, shifts)
    load = part @ pieces.demand - 1.0
    least = weight @ np.maximum(load @ pieces.length, 0.0)  # where bytes fill every gap
    if weight @ (np.maximum(load, 0.0) @ pieces.length) <= least + LESS:
        return shifts
    own = 2 * np.diff(circle.first_phase)
    if own[~is_held].sum() * (own * (circle.perimeter / circle.period)).sum() > MAX_PAIRS:
        return shifts
    shifts, jobs = shifts.copy(), np.arange(len(shifts))
    may_move = ~is_held
    for _ in range(ROUNDS):
        for j in np.flatnonzero(~is_held).tolist():
            on = part[:, j] > 0
            others = np.flatnonzero((part[on] > 0).any(axis=0) & (jobs != j)).tolist()
            may_move[j] &= bool(others)
            if not may_move[j]:
                continue
            best, is_best = _best_meeting(circle, part[on], weight[on], shifts, j, others)
            if best != shifts[j]:
                may_move[:] = True
            may_move[j], shifts[j] = best != shifts[j] and not is_best, best  # not before another one has moved
        if not may_move[~is_held].any():
            break
    return shifts


def _best_meeting(
    circle: Circle,
    part: NDArray[np.float64],
    weight: NDArray[np.int64],
    shifts: NDArray[np.float64],
    j: int,
    others: Sequence[int],
) -> tuple[float, bool]:
    """Return the start time of a job that has the least excess beside the others: its own, unless one has less.

    The second value is whether all were tried, so that from there no other one has less.
    """
    times, cost, is_best = costs_of_starts(circle, part, weight, shifts, j, others)
    if cost[1:].min(initial=np.inf) < cost[0] - LESS * circle.perimeter:
        near = cost[1:] <= cost[1:].min() + 1e-3 * LESS * circle.perimeter
        return float(times[1 + int(near.argmax())]), is_best
    return float(shifts[j]), is_best


def costs_of_starts(
    circle: Circle,
    part: NDArray[np.float64],
    weight: NDArray[np.int64],
    shifts: NDArray[np.float64],
    j: int,
    others: Sequence[int],
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Excess that a job adds at its own start time, and wherever its phases meet those of others.

    Returns
    -------
    float64[n], float64[n], bool
        Start times, s, the own one first and the others in ascending order; the excess in capacities times seconds; and
        whether these are all times at which phases meet.
    """
    edges, _, demand = _cut_edges(circle, shifts, others)
    period = float(circle.period[j])
    offset, duration, rate = circle.phases_of(j)
    own = np.concatenate((offset, offset + duration))
    times = (edges[:, None] - own) % period
    times = _apart(np.where(period - times < _SAME * circle.perimeter, 0.0, times).ravel(), circle.perimeter)
    is_all = len(times) <= MAX_MEETINGS
    if not is_all:
        away = np.abs((times - shifts[j] + period / 2) % period - period / 2)
        times = np.sort(times[np.argsort(away, kind="stable")[:MAX_MEETINGS]])
    times = np.concatenate((shifts[j : j + 1], times))
    beside = part[:, others] @ demand - 1.0
    least = np.maximum(beside, 0.0)
    cost = np.zeros(len(times))
    for one in sorted(set(rate.tolist())):
        more = weight @ (np.maximum(beside + part[:, j, None] * one, 0.0) - least)
        at, total = _folded(edges, more, period)
        for start, length in zip(offset[rate == one].tolist(), duration[rate == one].tolist(), strict=True):
            begin = (times + start) % period
            end = begin + length
            cost += np.interp(np.where(end > period, end - period, end), at, total) - np.interp(begin, at, total)
            cost += np.where(end > period, total[-1], 0.0)
    return times, cost, is_all


def _folded(
    edges: NDArray[np.float64], height: NDArray[np.float64], period: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add up what a step function has in all iterations of a job, and sum it up from the start of one.

    Returns
    -------
    float64[n], float64[n]
        Times from 0 to the period, and the sums up to then; linear between them.
    """
    at = edges % period
    order = np.argsort(at, kind="stable")
    times = np.concatenate(([0.0], at[order], [period]))
    rise = np.empty(len(edges))
    rise[0], rise[-1] = height[0], 0.0 - height[-1]
    np.subtract(height[1:], height[:-1], out=rise[1:-1])
    steps = np.concatenate(([0.0], np.cumsum(rise[order])))
    lasting = times[1:] - times[:-1]
    level = (height @ (edges[1:] - edges[:-1]) - steps @ lasting) / period  # at 0: nothing may be lost
    return times, np.concatenate(([0.0], np.cumsum((level + steps) * lasting)))
