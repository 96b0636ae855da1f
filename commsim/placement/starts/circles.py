"""Circles: the demand of periodic jobs on one common circle of time, cut into angles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.value import Value
from commsim.training.sharing.periodic import PeriodicJob

# Into which a circle is cut at least: one is 5 degrees.
ANGLES = 72
MAX_ANGLES = 1440
# Seconds to which periods are rounded, so that they have a common multiple.
QUANTUM = 1e-3
# Seconds: the longest perimeter.
LONGEST = 10.0
_CELLS = 2**20  # phases times points in time whose rates are found at once
_LEAST_POSITIONS = 24  # of the job with the shortest period, unless the number of angles runs out


@dataclass(frozen=True, slots=True, eq=False)
class Circle(Value):
    """Unified circle: each job appears as often as its period fits into the perimeter.

    Parameters
    ----------
    perimeter : float, s
        Least common multiple of the rounded periods; or ``LONGEST``, when that is shorter.
    step : float, s
        Time of one angle.
    period : float64[n_jobs], s
        Rounded periods.
    reach : int
        How many steps before 0 `demand` begins, so that a job can be rotated by any part of its period.
    demand : float64[n_jobs, reach + n_angles], bytes/s
        What each job sends, averaged exactly over each step of time (no samples: a phase that covers half of an angle
        counts half). The excess of averages is never above the average excess, so that scores err upwards, by less
        the more angles there are.
    phases : float64[3, n_phases]
        Offsets (s), durations (s) and rates (bytes/s) of all jobs' phases, stretched with their periods, by offset.
    first_phase : int64[n_jobs + 1]
        Job j has the phases ``first_phase[j]`` to ``first_phase[j + 1]``.
    rounding : float, s
        Largest change of a period.
    is_common : bool
        Whether the perimeter is a multiple of all periods. Where it is not, time is cut off at the perimeter, and the
        jobs that do not fit a whole number of times are seen for one part of an iteration more or less.
    multiples : int64[n_jobs]
        Rounded periods in what they are rounded to.
    """

    perimeter: float
    step: float
    period: NDArray[np.float64]
    reach: int
    demand: NDArray[np.float64]
    phases: NDArray[np.float64]
    first_phase: NDArray[np.int64]
    rounding: float
    is_common: bool
    multiples: NDArray[np.int64]

    @property
    def n_angles(self) -> int:
        """Number of angles."""
        return int(self.demand.shape[1]) - self.reach

    @property
    def n_positions(self) -> NDArray[np.int64]:
        """How many angles each job can be rotated by before it looks the same again: its own period's (Eq. 4)."""
        positions: NDArray[np.int64] = np.ceil(self.period / self.step - 1e-9).astype(np.int64)
        return positions

    def reordered(self, order: NDArray[np.intp]) -> Circle:
        """Circle of the same jobs in another order."""
        period, demand, multiples = self.period[order], self.demand[order], self.multiples[order]
        each = [self.phases_of(j) for j in order.tolist()]
        first = np.cumsum([0, *(of.shape[1] for of in each)])
        phases = np.concatenate(each, axis=1)
        return replace(self, period=period, demand=demand, phases=phases, first_phase=first, multiples=multiples)

    def phases_of(self, j: int) -> NDArray[np.float64]:
        """Offsets, durations and rates of the j-th job's phases, float64[3, n_phases]."""
        return self.phases[:, self.first_phase[j] : self.first_phase[j + 1]]

    def distinct_positions(self, order: bool) -> NDArray[np.int64]:
        """How many of these make a difference in the long run, int64[n_jobs].

        A job with period p among others whose common multiple is q meets them in the same way after p, and after q, so
        after their greatest common divisor.

        Parameters
        ----------
        order : bool
            Whether only the jobs before count as others, as they do when all rotations of later jobs are tried too.
        """
        whole = self.multiples.tolist()
        others = [whole[:j] if order else whole[:j] + whole[j + 1 :] for j in range(len(whole))]
        shared = [math.gcd(p, math.lcm(*rest)) if rest else 1 for p, rest in zip(whole, others, strict=True)]
        span = self.period * np.array(shared) / self.multiples
        positions: NDArray[np.int64] = np.maximum(np.ceil(span / self.step - 1e-9), 1).astype(np.int64)
        return positions

    def seconds(self, rotations: NDArray[np.int64]) -> NDArray[np.float64]:
        """Shifts that belong to rotations (Eq. 5), float64[n_jobs], s."""
        shifts: NDArray[np.float64] = rotations * self.step % self.period
        return shifts

    def rotated(self, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Demand when each job starts later by its shift, in seconds, rounded to angles.

        Returns
        -------
        float64[n_jobs, n_angles], bytes/s
        """
        first = self.reach - np.rint((shifts % self.period) / self.step).astype(np.int64)
        n = self.n_angles
        return np.array([row[a : a + n] for row, a in zip(self.demand, first.tolist(), strict=True)])


def unify(
    jobs: Sequence[PeriodicJob],
    *,
    angles: int = ANGLES,
    step: float | None = None,
    quantum: float = QUANTUM,
    longest: float = LONGEST,
) -> Circle:
    """Put jobs on one circle.

    Parameters
    ----------
    jobs : sequence of PeriodicJob
        Jobs, at least one. Their phases are stretched with their periods where these are rounded.
    angles : int
        Number of angles that the circle is cut into; more, up to ``MAX_ANGLES``, where the shortest period would cover
        fewer than 24 of them, since otherwise long common multiples blur what they show.
    step : float, s, optional
        Time of one angle instead; the perimeter is divided into whole ones that are not longer.
    quantum, longest : float, s
        Unit that periods are rounded to, and the longest perimeter.

    Raises
    ------
    InputError
        If a number is out of its range.

    References
    ----------
    Rajasekaran, Ghobadi and Akella, "CASSINI: network-aware job scheduling in machine learning clusters", NSDI 2024,
    section 3.
    """
    if not jobs:
        raise InputError("a circle needs at least one job")
    require_circle(angles, step, quantum, longest)
    periods = np.array([job.period for job in jobs], np.float64)
    size = circle_size(periods.tolist(), angles, step, quantum, longest)
    period = size.period
    demand = mean_rates(jobs, period, size.edges)
    phases = np.concatenate([stretched(*one) for one in zip(jobs, (period / periods).tolist(), strict=True)], axis=1)
    first_phase = np.cumsum([0, *(len(job.phases) for job in jobs)])
    return size.circle(demand, phases, first_phase)


class CircleSize(NamedTuple):
    """What a circle is without what its jobs send.

    Parameters
    ----------
    perimeter, quantum : float, s
        Perimeter, and what periods are rounded to.
    n_angles : int
        Number of angles.
    multiples : tuple of int
        Periods in quanta.
    rounding : float, s
        Same as in :class:`Circle`, as is `is_common`.
    """

    perimeter: float
    quantum: float
    n_angles: int
    multiples: tuple[int, ...]
    rounding: float
    is_common: bool

    @property
    def period(self) -> NDArray[np.float64]:
        """Rounded periods, float64[n_jobs], s."""
        return np.array(self.multiples, np.int64).astype(np.float64) * self.quantum

    @property
    def step(self) -> float:
        """Time of one angle, s."""
        return self.perimeter / self.n_angles

    @property
    def reach(self) -> int:
        """How many steps before 0 the demand begins."""
        return math.ceil(max(self.multiples) * self.quantum / self.step) + 1

    @property
    def edges(self) -> NDArray[np.float64]:
        """Times between which demand is averaged, float64[reach + n_angles + 1], s."""
        edges: NDArray[np.float64] = np.arange(-self.reach, self.n_angles + 1).astype(np.float64) * self.step
        return edges

    def circle(
        self, demand: NDArray[np.float64], phases: NDArray[np.float64], first_phase: NDArray[np.int64]
    ) -> Circle:
        """Return the circle of jobs that send this; fields are those of :class:`Circle`."""
        period, whole = self.period, np.array(self.multiples, np.int64)
        for array in (period, demand, phases, first_phase, whole):
            array.setflags(write=False)
        return Circle(
            self.perimeter, self.step, period, self.reach, demand, phases, first_phase, self.rounding, self.is_common,
            whole,
        )  # fmt: skip


def circle_size(
    periods: Sequence[float], angles: int, step: float | None, quantum: float, longest: float
) -> CircleSize:
    """Return the size of the circle of jobs with these periods, s; the rest is as of :func:`unify`.

    Raises
    ------
    InputError
        If a period is too long to be counted, or the circle has too many steps.
    """
    require_counted(max(periods), quantum)
    whole = tuple(max(1, round(period / quantum)) for period in periods)
    multiple = math.lcm(*whole)
    longest = max(longest, max(whole) * quantum)  # a circle has room for every period
    is_common = multiple * quantum <= longest * (1 + 1e-9)
    perimeter = multiple * quantum if is_common else longest
    n = _angles(perimeter, min(whole) * quantum, angles, step)
    rounding = max(abs(number * quantum - period) for number, period in zip(whole, periods, strict=True))
    return CircleSize(perimeter, quantum, n, whole, rounding, is_common)


def require_counted(period: float, quantum: float, most: int = 2**31) -> None:
    """Refuse an iteration, s, that has more units than are counted.

    Raises
    ------
    InputError
        Naming it.
    """
    if period / quantum > most:
        raise InputError(f"an iteration of {period:g} s is too long to be counted in {quantum:g} s")


def stretched(job: PeriodicJob, longer: float) -> NDArray[np.float64]:
    """Offsets (s), durations (s) and rates (bytes/s) of a job's phases that are `longer` times as long, by offset."""
    rows = [(phase.offset * longer, phase.duration * longer, phase.rate) for phase in job.phases]
    return np.array(sorted(rows), np.float64).reshape(-1, 3).T


def rates_at(job: PeriodicJob, times: ArrayLike) -> NDArray[np.float64]:
    """Rate at which each host of the job sends at given times after the start of any of its iterations.

    Parameters
    ----------
    times : float64[...], s
        Any, also negative ones: the traffic repeats.

    Returns
    -------
    float64[...], bytes/s
    """
    times = np.asarray(times, np.float64)
    rates = np.zeros(times.shape)
    for phase in job.phases:
        rates += np.where(np.mod(times - phase.offset, job.period) < phase.duration, phase.rate, 0.0)
    return rates


def mean_rates(
    jobs: Sequence[PeriodicJob], period: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mean rate of jobs between points in time.

    Parameters
    ----------
    period : float64[n_jobs], s
        Period that each job is stretched to.
    edges : float64[n + 1], s
        Edges in ascending order.

    Returns
    -------
    float64[n_jobs, n], bytes/s
    """
    demand = np.zeros((len(jobs), len(edges) - 1))
    rows = [(j, phase) for j, job in enumerate(jobs) for phase in job.phases]
    if not rows:
        return demand
    owner = np.array([j for j, _ in rows])
    stretch = (period / np.array([job.period for job in jobs]))[owner]
    table = np.array([(phase.offset * more, phase.duration * more, phase.rate, period[j])
                      for (j, phase), more in zip(rows, stretch.tolist(), strict=True)])  # fmt: skip
    at_once = max(1, _CELLS // len(edges))
    for first in range(0, len(rows), at_once):
        part = slice(first, first + at_once)
        offset, duration, rate, length = table[part].T[:, :, None]
        rounds = np.floor((edges - offset) / length)
        late = edges - offset - rounds * length
        on = np.diff(rounds * duration + np.minimum(late, duration), axis=1)  # seconds of the phase, from edge to edge
        np.add.at(demand, owner[part], rate * np.maximum(on, 0.0))
    return demand / np.diff(edges)


def _angles(perimeter: float, shortest: float, angles: int, step: float | None) -> int:
    if step is not None:
        n = max(1, math.ceil(perimeter / step - 1e-9))
        if n > 2**20:
            raise InputError(
                f"a circle of {perimeter:g} s has {n} steps of {step:g} s, and at most {2**20} are counted"
            )
        return n
    needed = math.ceil(_LEAST_POSITIONS * perimeter / shortest / angles - 1e-9) * angles
    return max(angles, min(needed, MAX_ANGLES))


def require_circle(angles: int, step: float | None, quantum: float, longest: float) -> None:
    """Refuse what no circle has, as :func:`unify` does; `step`, `quantum` and `longest` are s.

    Raises
    ------
    InputError
        Naming it.
    """
    if not 1 <= angles <= 2**20:
        raise InputError(f"a circle is cut into 1..{2**20} angles, got {angles}")
    for name, value in (("step", 1.0 if step is None else step), ("quantum", quantum), ("longest", longest)):
        if not 0 < value < math.inf:
            raise InputError(f"the {name} of a circle is a positive time, got {value:g} s")
