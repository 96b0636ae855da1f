"""Kernels that find the best start of one job: what its links are exceeded by in each part of its iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel
from commsim.placement.starts.meeting_kernel import MetJobs, edges_of, perimeter_of, phase_at
from commsim.placement.starts.phase_edges import MAX_PIECES

BINS = 1024  # of an iteration, in which start times are sought
LEAST = 1e-9  # by which an excess may be more and is as good


@kernel
def add_folded(
    jobs: MetJobs,
    moved: int,
    own_part: float,
    member: NDArray[np.int64],
    part: NDArray[np.float64],
    rate: NDArray[np.float64],
    height: NDArray[np.float64],
) -> None:
    """Add, for each time of an iteration of one job, what the excess of a link rises by if it sends then.

    Parameters
    ----------
    moved : int
        The job.
    own_part : float, s/byte
        Its factor on the link.
    member : int64[n]
        Jobs on the link, the moved one as the last.
    rate : float64[n_rates], bytes/s
        Its different rates.
    height : float64[n_rates, BINS + 1]
        Added to: the mean of each bin of its iteration, each less the one before.
    """
    others = member[:-1]
    perimeter, period = perimeter_of(jobs, member), jobs.row[moved]["whole"] * jobs.quantum
    edges = edges_of(jobs, others, perimeter)
    n = len(edges) - 1 if len(edges) else MAX_PIECES
    for i in range(n):
        begin = edges[i] if len(edges) else i * perimeter / MAX_PIECES
        end = edges[i + 1] if len(edges) else (i + 1) * perimeter / MAX_PIECES
        moment = (begin + end) / 2 if len(edges) else begin + jobs.moment[i] * (end - begin)
        load = -1.0
        for k in range(len(others)):
            p = phase_at(jobs, others[k], moment)
            if p >= 0:
                load += part[k] * jobs.phase[p]["rate"]
        for r in range(len(rate)):
            more = (max(load + own_part * rate[r], 0.0) - max(load, 0.0)) / perimeter
            if more <= 0.0:
                continue
            rounds = int((end - begin) / period)
            height[r, 0] += rounds * more
            a = (begin % period) / period * BINS
            b = a + ((end - begin) - rounds * period) / period * BINS
            add_step(height[r], a, more)
            add_step(height[r], b if b < BINS else b - BINS, -more)
            if b >= BINS:
                height[r, 0] += more


@kernel
def add_step(height: NDArray[np.float64], at: float, rise: float) -> None:
    """Add a step, at a position in bins, to differences of the means of bins."""
    k = min(int(at), BINS - 1)
    height[k] += rise * (1.0 - (at - k))
    height[k + 1] += rise * (at - k)


@kernel
def costs_of_starts(
    jobs: MetJobs, moved: int, rate: NDArray[np.float64], height: NDArray[np.float64], cost: NDArray[np.float64]
) -> None:
    """Write what the links are exceeded more by for each start of a job, from what :func:`add_folded` added.

    Parameters
    ----------
    cost : float64[BINS]
        Written, as a part of the time, summed over links.
    """
    row = jobs.row[moved]
    period = row["whole"] * jobs.quantum
    total = np.zeros(BINS + 1)
    for r in range(len(rate)):
        level = 0.0
        for k in range(BINS):
            level += height[r, k]
            total[k + 1] = total[k] + level * period / BINS
        for p in range(row["first_phase"], row["end_phase"]):
            if jobs.phase[p]["rate"] != rate[r]:
                continue
            begin = jobs.phase[p]["offset"] / period * BINS
            length = jobs.phase[p]["duration"] / period * BINS
            for k in range(BINS):
                cost[k] += sum_up_to(total, begin + k + length) - sum_up_to(total, begin + k)


@kernel
def sum_up_to(total: NDArray[np.float64], at: float) -> float:
    """Sum of the bins from 0 up to a position, which may be some iterations later."""
    rounds = int(at / BINS)
    rest = at - rounds * BINS
    k = min(int(rest), BINS - 1)
    value: float = rounds * total[BINS] + total[k] + (rest - k) * (total[k + 1] - total[k])
    return value


@kernel
def meetings_within(
    jobs: MetJobs, moved: int, others: NDArray[np.int64], low: float, span: float, near: float
) -> NDArray[np.float64]:
    """Return the starts of one job, s after `low`, at which an edge of its phases meets one of others.

    Parameters
    ----------
    low, span, near : float, s
        Those near one of the two ends of a span of starts are looked for.

    Returns
    -------
    float64[n]
        NaN as the only one where edges are too many.
    """
    row = jobs.row[moved]
    member = np.empty(len(others) + 1, np.int64)
    member[:-1], member[-1] = others, moved
    perimeter, period = perimeter_of(jobs, member), row["whole"] * jobs.quantum
    edges = edges_of(jobs, others, perimeter)
    found = [np.nan]
    if len(edges):
        found.clear()
        for p in range(row["first_phase"], row["end_phase"]):
            begin = jobs.phase[p]["offset"]
            for own in (begin, begin + jobs.phase[p]["duration"]):
                for edge in edges:
                    at = (edge - own - low) % period
                    if at <= near or span - near <= at <= span:
                        found.append(at)
    return np.array(found)


@kernel
def widest_window(cost: NDArray[np.float64]) -> tuple[int, int]:
    """First bin and number of bins of the longest run of starts of the least cost; all of them begin at 0."""
    least = cost.min() + LEAST
    n, best, length = len(cost), 0, 0
    first = -1
    for k in range(n):
        if cost[k] > least:
            first = k
            break
    if first < 0:
        return 0, n
    run = 0
    for i in range(1, n + 1):
        k = (first + i) % n
        run = run + 1 if cost[k] <= least else 0
        if run > length:
            length, best = run, (k - run + 1) % n
    return best, length
