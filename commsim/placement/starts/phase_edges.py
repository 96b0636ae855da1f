"""Circles cut at the edges of phases: exact excess of demand, and start times at which edges of two jobs meet."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import expected_work
from commsim.placement.starts.circle_kernel import OnCircle, costs_of_meetings, cut, meet_in_turn
from commsim.placement.starts.circles import Circle

# Pieces of a circle; where phases have more edges, so many equal ones are looked at, each at a moment
# that is drawn, always the same: evenly spaced ones would miss phases that are spaced alike.
MAX_PIECES = 20_000
# Start times of one job that are tried: those nearest to its own, where there are more.
MAX_MEETINGS = 4096
# Pairs of edges of a circle that may meet; where there are more, start times stay whole angles: some 0.1 s of a search.
MAX_PAIRS = 500_000
ROUNDS = 4  # over all jobs, at most, in which start times are moved
LESS = 1e-9  # by which a mean excess must be less, as a part of the capacity, to move a job


@dataclass(frozen=True, slots=True)
class DemandPieces:
    """Parts of the time in which no demand changes.

    Parameters
    ----------
    length : float64[n_pieces]
        Length of each, as a part of the time.
    demand : float64[n_jobs, n_pieces], bytes/s
        Demand of each job.
    """

    length: NDArray[np.float64]
    demand: NDArray[np.float64]


def cut_circle(circle: Circle, shifts: NDArray[np.float64]) -> DemandPieces:
    """Cut a circle wherever a phase begins or ends when each job starts later by its shift.

    Parameters
    ----------
    shifts : float64[n_jobs], s
        One for each job of the circle.
    """
    with expected_work(_edges(circle) * len(circle.period), first=True):
        edges, demand = cut(_on(circle, shifts), np.arange(len(circle.period)))
    return DemandPieces((edges[1:] - edges[:-1]) / circle.perimeter, demand)


def _edges(circle: Circle) -> float:
    """Return about how many edges phases have on a circle, or more."""
    return 2 * len(circle.phases[0]) * (circle.perimeter / float(circle.period.min(initial=circle.perimeter)) + 2)


def _on(circle: Circle, shifts: NDArray[np.float64]) -> OnCircle:
    """Return a circle's jobs as the kernels see them, compiled for one order of the phases in memory."""
    period, first, phases = np.array(circle.period), np.array(circle.first_phase), np.array(circle.phases, order="C")
    return OnCircle(circle.perimeter, period, first, phases, np.array(shifts, np.float64), _moments(MAX_PIECES))


@functools.cache
def _moments(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).random(n)


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
    own = 2 * np.diff(circle.first_phase)
    if own[~is_held].sum() * (own * (circle.perimeter / circle.period)).sum() > MAX_PAIRS:
        return shifts
    on, shares, weights = _on(circle, shifts), np.array(part, order="C"), np.asarray(weight, np.int64)
    with expected_work(_edges(circle) * (shares.size + 4) * int((~is_held).sum()), first=True):
        meet_in_turn(on, shares, weights, np.array(is_held), MAX_MEETINGS, ROUNDS, LESS)
    return on.shift


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
    on, beside = _on(circle, shifts), np.array(others, np.int64)
    shares, weights = np.array(part, order="C"), np.asarray(weight, np.int64)
    with expected_work(_edges(circle) * (shares.size + 4), first=True):
        times, cost, is_all = costs_of_meetings(on, shares, weights, j, beside, MAX_MEETINGS)
    return times, cost, is_all
