"""Kernels that turn circles until little demand is left above the capacity.

Demand is in small whole units of the capacity: sums of whole numbers are the same in any order, so that they can be
formed many at a time, and equals are equal. Rows are added and copied in loops: assigning to a row has Numba compile
the text of a message about shapes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import kernel

MAX_ROUNDS = 20


@kernel
def excess(total: NDArray[np.int64], demand: NDArray[np.int64]) -> int:
    """Sum the positive values of ``total + demand``."""
    above = 0
    for a in range(total.shape[0]):
        above += max(total[a] + demand[a], 0)
    return above


@kernel
def add(total: NDArray[np.int64], demand: NDArray[np.int64], times: int) -> None:
    """Add a multiple of one row to another."""
    for a in range(total.shape[0]):
        total[a] += times * demand[a]


@kernel
def copy(source: NDArray[np.int64], target: NDArray[np.int64]) -> None:
    """Copy a row."""
    for i in range(target.shape[0]):
        target[i] = source[i]


@kernel
def search_all(
    demand: NDArray[np.int64], reach: int, positions: NDArray[np.int64], capacity: int, enough: int
) -> tuple[int, NDArray[np.int64]]:
    """Try all turns of all jobs but the first, and take the first best ones in lexicographic order.

    Parameters
    ----------
    demand : int64[n_jobs, reach + n_angles]
        Turned by k, job j demands ``demand[j, reach - k:]``, cut to n_angles.
    reach : int
        Largest position, or more.
    positions : int64[n_jobs]
        How many turns each job has.
    capacity : int
        Capacity of the link.
    enough : int
        A sum of excesses at which the search ends.

    Returns
    -------
    int, int64[n_jobs]
        The sum of excesses over the angles, and the turns.
    """
    n_jobs, n = demand.shape[0], demand.shape[1] - reach
    total = np.full((n_jobs, n), -capacity)  # of the jobs before
    at, best_at = np.zeros(n_jobs, np.int64), np.zeros(n_jobs, np.int64)
    best, level = np.iinfo(np.int64).max, 0
    while level >= 0:
        turned = demand[level, reach - at[level] : reach - at[level] + n]
        above = excess(total[level], turned)
        if above < best:  # or else what is still to be added cannot help
            if level < n_jobs - 1:
                copy(total[level], total[level + 1])
                add(total[level + 1], turned, 1)
                level += 1
                at[level] = 0
                continue
            best = above
            copy(at, best_at)
            if best <= enough:
                break
        at[level] += 1
        while level >= 0 and (level == 0 or at[level] >= positions[level]):
            level -= 1
            if level > 0:
                at[level] += 1
    return best, best_at


@kernel
def edges_of(demand: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each row changes: row p at ``at[first[p]]`` to ``at[first[p + 1]]``, each other than before it."""
    first = np.zeros(demand.shape[0] + 1, np.int64)
    for p in range(demand.shape[0]):
        first[p + 1] = first[p]
        for i in range(1, demand.shape[1]):
            first[p + 1] += demand[p, i] != demand[p, i - 1]
    at = np.empty(first[-1], np.int64)
    k = 0
    for p in range(demand.shape[0]):
        for i in range(1, demand.shape[1]):
            if demand[p, i] != demand[p, i - 1]:
                at[k] = i
                k += 1
    return first, at


@kernel
def add_steps(
    steps: NDArray[np.int64],
    total: NDArray[np.int64],
    demand: NDArray[np.int64],
    edges: NDArray[np.int64],
    reach: int,
    weight: int,
) -> None:
    """Add what a link costs with a row at position 0, and how much more each position costs than the one before it.

    From one position to the next an excess changes only at the row's edges, whose angles follow each other.

    Parameters
    ----------
    steps : int64[n_positions]
        Sums over links, which are added to.
    total : int64[n_angles]
        Demand of the other jobs on the link, less its capacity.
    demand : int64[reach + n_angles]
        A row of :func:`search_all`.
    edges : int64[n_edges]
        Where it changes.
    reach : int
        Largest position, or more.
    weight : int
        Weight of the link's excess.
    """
    n = total.shape[0]
    steps[0] += weight * excess(total, demand[reach : reach + n])
    for e in range(edges.shape[0]):
        i = edges[e]
        low, high = demand[i - 1], demand[i]
        k = max(0, reach - i)
        others = total[k + i - reach :]
        more = steps[k + 1 :]
        for a in range(min(others.shape[0], more.shape[0])):
            more[a] += weight * (max(others[a] + low, 0) - max(others[a] + high, 0))


@kernel
def search_in_turn(
    demand: NDArray[np.int64],
    first: NDArray[np.int64],
    on: NDArray[np.int64],
    reach: int,
    positions: NDArray[np.int64],
    link: NDArray[np.int64],
    starts: NDArray[np.int64],
    enough: int,
) -> tuple[int, NDArray[np.int64]]:
    """Turn one job after the other to its best position until none moves; on several links, from several starts.

    Parameters
    ----------
    demand : int64[n_rows, reach + n_angles]
        Demand of a job on links that have the same capacity for it in each row.
    first, on : int64[n_jobs + 1], int64[2, n_passages]
        Job j has the passages ``first[j]`` to ``first[j + 1]``, and `on` is the link and the row of each.
    reach, positions
        Same as in :func:`search_all`.
    link : int64[2, n_links]
        The capacity of each link, and its weight in the sum that is minimised.
    starts : int64[n_starts, n_jobs]
        Turns to begin with. The first job stays where it is.
    enough : int
        A sum at which the search ends.

    Returns
    -------
    int, int64[n_jobs]
        The weighted sum of excesses over links and angles, and the turns.
    """
    n_jobs, n, n_links = len(positions), demand.shape[1] - reach, link.shape[1]
    link_of, row = on[0], on[1]
    total = np.empty((n_links, n), np.int64)
    nothing = np.zeros(n, np.int64)
    edge, edges = edges_of(demand)
    most = 0
    for j in range(n_jobs):
        most = max(most, positions[j])
    steps = np.empty(most, np.int64)
    best, best_at = np.iinfo(np.int64).max, np.zeros(n_jobs, np.int64)
    for s in range(starts.shape[0]):
        at = starts[s].copy()
        for k in range(n_links):
            for a in range(n):
                total[k, a] = -link[0, k]
        for j in range(n_jobs):
            for p in range(first[j], first[j + 1]):
                add(total[link_of[p]], demand[row[p], reach - at[j] : reach - at[j] + n], 1)
        moved, rounds = True, 0
        while moved and rounds < MAX_ROUNDS:
            moved, rounds = False, rounds + 1
            for j in range(1, n_jobs):
                for p in range(first[j], first[j + 1]):
                    add(total[link_of[p]], demand[row[p], reach - at[j] : reach - at[j] + n], -1)
                least, least_at = 0, at[j]  # where it is, which is kept unless another is better
                for p in range(first[j], first[j + 1]):
                    turned = demand[row[p], reach - at[j] : reach - at[j] + n]
                    least += link[1, link_of[p]] * excess(total[link_of[p]], turned)
                if least > 0:
                    for k in range(positions[j]):
                        steps[k] = 0
                    for p in range(first[j], first[j + 1]):
                        own = edges[edge[row[p]] : edge[row[p] + 1]]
                        add_steps(
                            steps[: positions[j]], total[link_of[p]], demand[row[p]], own, reach, link[1, link_of[p]]
                        )
                    cost = 0
                    for k in range(positions[j]):
                        cost += steps[k]
                        if cost < least:
                            least, least_at = cost, k
                moved = moved or least_at != at[j]
                at[j] = least_at
                for p in range(first[j], first[j + 1]):
                    add(total[link_of[p]], demand[row[p], reach - at[j] : reach - at[j] + n], 1)
        cost = 0
        for k in range(n_links):
            cost += link[1, k] * excess(total[k], nothing)
        if cost < best:
            best = cost
            copy(at, best_at)
            if best <= enough:
                break
    return best, best_at
