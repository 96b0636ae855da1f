"""Kernels that cut a circle at the edges of phases, and find what a job adds to its excess from each start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel, long_loops

SAME = 1e-12  # part of the perimeter by which edges differ that were written to meet

F = NDArray[np.float64]
I = NDArray[np.int64]  # noqa: E741


class OnCircle(NamedTuple):
    """Jobs of a circle, and when each starts.

    Parameters
    ----------
    perimeter : float, s
    period : float64[n_jobs], s
    first_phase : int64[n_jobs + 1]
    phases : float64[3, n_phases]
        Offset (s), duration (s) and rate (bytes/s) of each, by job and offset.
    shift : float64[n_jobs], s
    moment : float64[n_pieces]
        Where in each of equal pieces the circle is looked at, if phases have more edges than there are pieces.
    """

    perimeter: float
    period: F
    first_phase: I
    phases: F
    shift: F
    moment: F


@kernel
def apart(times: F, perimeter: float) -> F:
    """Sort times, and leave out those that are the same as the one before."""
    times.sort()
    kept, before = 0, -np.inf
    for i in range(len(times)):
        now = times[i]
        if now - before > SAME * perimeter:
            times[kept] = now
            kept += 1
        before = now
    return times[:kept].copy()


@kernel
def edges_of(circle: OnCircle, jobs: I) -> tuple[F, bool]:
    """Return the times from 0 to the perimeter at which phases begin or end; equal ones and False if they are many."""
    room, count = 2, 0.0
    for j in jobs:
        n_phases = circle.first_phase[j + 1] - circle.first_phase[j]
        count += 2 * n_phases * (circle.perimeter / circle.period[j] + 2)
        room += 2 * n_phases * int(np.ceil(circle.perimeter / circle.period[j]))
    n_pieces = len(circle.moment)
    if count > n_pieces:
        equal = np.empty(n_pieces + 1)
        for i in range(n_pieces):
            equal[i] = i * (circle.perimeter / n_pieces)
        equal[n_pieces] = circle.perimeter
        return equal, False
    times, n = np.empty(room), 2
    times[0], times[1] = 0.0, circle.perimeter
    for j in jobs:
        period = circle.period[j]
        n_rounds = int(np.ceil(circle.perimeter / period))
        for p in range(circle.first_phase[j], circle.first_phase[j + 1]):
            offset = circle.phases[0, p]
            for edge in (offset, offset + circle.phases[1, p]):
                own = (edge + circle.shift[j]) % period
                for k in range(n_rounds):
                    if own + k * period <= circle.perimeter:
                        times[n] = own + k * period
                        n += 1
    return apart(times[:n], circle.perimeter), True


@kernel
def cut(circle: OnCircle, jobs: I) -> tuple[F, F]:
    """Return edges in s, and the demand of each job between them."""
    edges, are_edges = edges_of(circle, jobs)
    n = len(edges) - 1
    demand = np.zeros((len(jobs), n))
    for k in range(len(jobs)):
        j = jobs[k]
        first, end, period = circle.first_phase[j], circle.first_phase[j + 1], circle.period[j]
        for i in range(n if end > first else 0):
            moment = (edges[i + 1] + edges[i]) / 2 if are_edges else edges[i] + circle.moment[i] * edges[1]
            late = (moment - (circle.shift[j] + circle.phases[0, first])) % period  # since the first phase began
            p = end - 1
            while circle.phases[0, p] - circle.phases[0, first] > late:
                p -= 1
            if late - (circle.phases[0, p] - circle.phases[0, first]) < circle.phases[1, p]:
                demand[k, i] = circle.phases[2, p]
    return edges, demand


@kernel
def meetings(circle: OnCircle, j: int, edges: F, most: int) -> tuple[F, bool]:
    """Start times of a job at which its phases meet edges of others: those nearest to its own, if they are too many."""
    period, shift = circle.period[j], circle.shift[j]
    first, end = circle.first_phase[j], circle.first_phase[j + 1]
    times, n = np.empty(len(edges) * 2 * (end - first)), 0
    for i in range(len(edges)):
        for p in range(first, end):
            offset = circle.phases[0, p]
            for own in (offset, offset + circle.phases[1, p]):
                time = (edges[i] - own) % period
                times[n] = 0.0 if period - time < SAME * circle.perimeter else time
                n += 1
    times = apart(times, circle.perimeter)
    is_all = len(times) <= most
    if not is_all:
        away = np.abs((times - shift + period / 2) % period - period / 2)
        times = times[np.argsort(away, kind="mergesort")[:most]]
        times.sort()
    found = np.empty(len(times) + 1)
    found[0] = shift
    for i in range(len(times)):
        found[i + 1] = times[i]
    return found, is_all


@kernel
def folded(edges: F, height: F, period: float) -> tuple[F, F]:
    """Add up what a step function has in all iterations of a job, and sum it up from the start of one.

    Returns
    -------
    float64[n], float64[n]
        Times from 0 to the period, and the sums up to then; linear between them.
    """
    n = len(edges)
    at = edges % period
    order = np.argsort(at, kind="mergesort")
    times, steps, whole = np.zeros(n + 2), np.zeros(n + 1), 0.0
    for i in range(n):
        k = order[i]
        times[i + 1] = at[k]
        before, after = height[k - 1] if k else 0.0, height[k] if k < n - 1 else 0.0
        steps[i + 1] = steps[i] + (after - before)
    times[n + 1] = period
    for i in range(n - 1):
        whole += height[i] * (edges[i + 1] - edges[i])
    for i in range(n + 1):
        whole -= steps[i] * (times[i + 1] - times[i])
    level, total = whole / period, np.zeros(n + 2)  # at 0: nothing may be lost
    for i in range(n + 1):
        total[i + 1] = total[i] + (level + steps[i]) * (times[i + 1] - times[i])
    return times, total


@kernel
def sum_until(time: float, times: F, total: F) -> float:
    """Return what is summed up at a time, between two of its times linearly; it is not before the first."""
    low, high = 0, len(times)
    while high - low > 1:
        middle = (low + high) // 2
        if times[middle] <= time:
            low = middle
        else:
            high = middle
    if high == len(times) or times[low] == time:
        return float(total[low])
    slope = (total[high] - total[low]) / (times[high] - times[low])
    return float(slope * (time - times[low]) + total[low])


@long_loops
@kernel
def costs_of_meetings(circle: OnCircle, part: F, weight: I, j: int, others: I, most: int) -> tuple[F, F, bool]:
    """Excess that a job adds at its own start, and wherever its phases meet those of others.

    Parameters
    ----------
    part : float64[n_links, n_jobs], s/byte
        Factors that turn rates of the jobs into shares of the capacities.
    weight : int64[n_links]
        Weight of each link's excess in the sum.
    j : int
        The job.
    others : int64[n]
        Those beside it.
    most : int
        Starts that are tried at most.

    Returns
    -------
    float64[n], float64[n], bool
        Starts, s, the own one first and the others ascending; the excess in capacities times seconds; and whether they
        are all at which phases meet.
    """
    edges, demand = cut(circle, others)
    times, is_all = meetings(circle, j, edges, most)
    period, n_links, n = circle.period[j], len(part), len(edges) - 1
    beside = np.full((n_links, n), -1.0)
    for link in range(n_links):
        for k in range(len(others)):
            share = part[link, others[k]]
            if share > 0.0:
                for i in range(n):
                    beside[link, i] += share * demand[k, i]
    cost, first, end = np.zeros(len(times)), circle.first_phase[j], circle.first_phase[j + 1]
    rates = circle.phases[2, first:end].copy()
    rates.sort()
    for r in range(len(rates)):
        rate = rates[r]
        if r and rates[r - 1] == rate:
            continue
        more = np.zeros(n)
        for link in range(n_links):
            own = part[link, j] * rate
            for i in range(n):
                load = beside[link, i]
                more[i] += weight[link] * (max(load + own, 0.0) - max(load, 0.0))
        at, total = folded(edges, more, period)
        for p in range(first, end):
            if circle.phases[2, p] != rate:
                continue
            for i in range(len(times)):
                begin = (times[i] + circle.phases[0, p]) % period
                stop = begin + circle.phases[1, p]
                if stop > period:
                    cost[i] += total[-1]
                    stop -= period
                cost[i] += sum_until(stop, at, total) - sum_until(begin, at, total)
    return times, cost, is_all


@kernel
def exceeds_its_least(circle: OnCircle, part: F, weight: I, least_gain: float) -> bool:
    """Whether the weighted mean excess of the links is more than what bytes that fill every gap leave.

    Parameters
    ----------
    part, weight
        Same as in :func:`costs_of_meetings`.
    least_gain : float
        By how much, at least, as a part of the capacity.
    """
    edges, demand = cut(circle, np.arange(len(circle.period)))
    least, now = 0.0, 0.0
    for link in range(len(part)):
        mean, above = 0.0, 0.0
        for i in range(len(edges) - 1):
            load = -1.0
            for j in range(len(circle.period)):
                load += part[link, j] * demand[j, i]
            length = (edges[i + 1] - edges[i]) / circle.perimeter
            mean += load * length
            above += max(load, 0.0) * length
        least += weight[link] * max(mean, 0.0)
        now += weight[link] * above
    return now > least + least_gain


@kernel
def others_of(part: F, j: int) -> tuple[I, I]:
    """Return the links that a job passes, and the other jobs there."""
    n_links, n_jobs = part.shape
    on, others, n_on, n_others = np.empty(n_links, np.int64), np.empty(n_jobs, np.int64), 0, 0
    for link in range(n_links):
        if part[link, j] > 0.0:
            on[n_on] = link
            n_on += 1
    for k in range(n_jobs):
        for i in range(n_on):
            if k != j and part[on[i], k] > 0.0:
                others[n_others] = k
                n_others += 1
                break
    return on[:n_on], others[:n_others]


@long_loops
@kernel
def meet_in_turn(
    circle: OnCircle, part: F, weight: I, is_held: NDArray[np.bool_], most: int, rounds: int, least_gain: float
) -> None:
    """Move one job after the other to its least excess of all starts at which its phases meet those of others.

    Parameters
    ----------
    circle : OnCircle
        Jobs, whose starts are written.
    part, weight, most
        Same as in :func:`costs_of_meetings`.
    is_held : bool[n_jobs]
        Jobs that stay where they are.
    rounds : int
        Rounds over all jobs, at most.
    least_gain : float
        Part of the capacity by which a mean excess must be less, to move a job.
    """
    if not exceeds_its_least(circle, part, weight, least_gain):
        return
    n_jobs, may_move = len(is_held), ~is_held
    for _ in range(rounds):
        moved = False
        for j in range(n_jobs):
            if not may_move[j]:
                continue
            on, others = others_of(part, j)
            may_move[j] = False
            if not len(others):
                continue
            parts, weights = np.empty((len(on), n_jobs)), np.empty(len(on), np.int64)
            for i in range(len(on)):
                weights[i] = weight[on[i]]
                for k in range(n_jobs):
                    parts[i, k] = part[on[i], k]
            times, cost, is_all = costs_of_meetings(circle, parts, weights, j, others, most)
            best = np.inf
            for i in range(1, len(cost)):
                best = min(best, cost[i])
            if best < cost[0] - least_gain * circle.perimeter:
                at = 1
                while cost[at] > best + 1e-3 * least_gain * circle.perimeter:
                    at += 1
                if times[at] != circle.shift[j]:
                    for k in range(n_jobs):  # before another one has moved, it need not be tried again
                        may_move[k] = not is_held[k]
                    may_move[j] = not is_all
                    circle.shift[j] = times[at]
        for k in range(n_jobs):
            moved = moved or may_move[k]
        if not moved:
            return
