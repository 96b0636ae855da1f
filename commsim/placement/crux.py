"""Crux: job priorities from GPU intensity, and their compression to the network's priority levels.

Two jobs on one link show why intensity is not enough: letting the one go first may gain it more time on the link
than it takes from the other. So priority is P = k * I, with the reference job's k = 1, and k of another job the ratio
of the two gains: it goes first exactly if that does more work.

Compression to levels: jobs are the nodes of a graph: an edge goes from the one that goes first to the other where two
share a link, and weighs the intensity of the first. Levels keep the order along edges. Every edge between different
levels counts; the most is a Max-K-Cut. Given an order of the jobs in which every edge goes forward, the best cut of
that order into runs is found by dynamic programming; the orders are drawn.

References
----------
Cao et al., "Crux: GPU-efficient communication scheduling for deep learning training", SIGCOMM 2024, sections 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.training.sharing.periodic import PeriodicJob

# Of the longer of two jobs, for how many they are compared unless a window is given.
ITERATIONS = 100
ROUNDING = 1e-9  # part of the window: a smaller gain counts as none


@dataclass(frozen=True, slots=True)
class CruxJob:
    """What Crux knows of a job.

    Parameters
    ----------
    name : str
        Name of the job.
    gpus : int
        Number of GPUs that compute at the same time.
    work : float
        Done in one iteration, in FLOP or in any unit that is the same for all jobs.
    compute_time, network_time : float, s
        Times of one iteration; the network's is that of its most loaded link without other jobs.
    overlap : float, s
        Part of the computation that runs beside the communication, from its start; the rest begins when both have
        ended.
    """

    name: str
    gpus: int
    work: float
    compute_time: float
    network_time: float
    overlap: float = 0

    def __post_init__(self) -> None:
        times = (self.work, self.compute_time, self.network_time)
        if not all(0 <= value < math.inf for value in times) or not self.compute_time + self.network_time > 0:
            raise InputError(f"{self.name}: work and times must be 0 or more, finite, and not all times 0, got {times}")
        if not 0 <= self.overlap <= self.compute_time:
            limit = f"at most its computation, {self.compute_time} s"
            raise InputError(f"{self.name}: overlap must be 0 or more and {limit}, got {self.overlap}")

    @property
    def intensity(self) -> float:
        """Work per second on the network; infinite for a job that needs none."""
        return self.work / self.network_time if self.network_time else math.inf


def crux_job(job: PeriodicJob, bandwidth: ArrayLike, use: ArrayLike) -> CruxJob:
    """Describe a placed job to Crux; its work is counted in seconds of GPUs.

    Parameters
    ----------
    bandwidth, use : float64[n_links]
        Capacities, and how many times its rate the job puts on each link.
    """
    compute = job.compute_time
    network_time = float(np.max(job.n_bytes * np.asarray(use) / np.asarray(bandwidth), initial=0.0))
    if not compute and not network_time:
        raise InputError(f"{job.name}: neither computes nor uses a link")
    return CruxJob(job.name, job.n_gpus, job.n_gpus * compute, compute, network_time, min(job.overlap, compute))


def times_on_link(jobs: Sequence[CruxJob], window: float) -> tuple[list[float], list[float]]:
    """How long jobs send, and compute, on one link where the first always goes first, and so on.

    All begin to send at 0, and beside it to do the part of their computation that overlaps. A job does the rest when it
    has sent all of an iteration and that part is done, and then sends again; a job that sends is interrupted at once by
    one of higher priority. Numbers may be of any kind: fractions give an exact answer.

    Returns
    -------
    network, compute : list of float, s
        Of each job, until the end of the window.
    """
    if not 0 < window < math.inf:
        raise InputError(f"the window must be positive and finite, got {window}")
    left = [job.network_time for job in jobs]  # to send
    computes_until = [job.overlap for job in jobs]
    finishing = [False for _ in jobs]  # the iteration: all is sent, and what overlaps is done
    network, compute = [0 * job.network_time for job in jobs], [0 * job.compute_time for job in jobs]
    now = 0 * window
    while now < window:
        for j, job in enumerate(jobs):
            while not left[j] and computes_until[j] <= now:  # again where a part of the iteration takes no time
                finishing[j] = not finishing[j]
                left[j] = left[j] if finishing[j] else job.network_time
                computes_until[j] = now + (job.compute_time - job.overlap if finishing[j] else job.overlap)
        sender = next((j for j, rest in enumerate(left) if rest), None)
        ends = [end for end in computes_until if end > now] + ([] if sender is None else [now + left[sender]])
        then = min(*ends, window)
        for j, end in enumerate(computes_until):
            compute[j] += then - now if end > now else 0
        if sender is not None:
            network[sender] += then - now
            left[sender] = 0 * left[sender] if then == now + left[sender] else left[sender] - (then - now)
        now = then
    return network, compute


def utilisation(jobs: Sequence[CruxJob], window: float) -> float:
    """Part of the window in which the GPUs of all jobs compute, when they share one link in this order of priority."""
    _, compute = times_on_link(jobs, window)
    busy = sum(job.gpus * time for job, time in zip(jobs, compute, strict=True))
    return busy / (window * sum(job.gpus for job in jobs))


def correction(job: CruxJob, reference: CruxJob, window: float | None = None) -> float:
    """Seconds on the link that going first gains the job, per second that going first gains the reference job.

    Returns
    -------
    float
        1 where neither gains anything; infinite where only the job does, 0 where only the other does.
    """
    if window is None:
        window = ITERATIONS * max(one.compute_time + one.network_time for one in (job, reference))
    first, second = times_on_link([job, reference], window)[0]
    after, before = times_on_link([reference, job], window)[0]
    own, other = (gain if gain > ROUNDING * window else 0.0 for gain in (first - before, after - second))
    if own and other:
        return own / other
    return math.inf if own else 0.0 if other else 1.0


def priorities(jobs: Sequence[CruxJob], window: float | None = None) -> NDArray[np.float64]:
    """Priority of each job: its intensity, corrected by the comparison with the job that is longest on the network.

    Parameters
    ----------
    window : float, s
        Time over which two jobs are compared; by default many of their iterations.

    Returns
    -------
    float64[n_jobs]
        The larger goes first.
    """
    if not jobs:
        raise InputError("priorities need at least one job, got none")
    reference = max(jobs, key=lambda job: job.network_time)  # of equals the first
    return np.array([
        job.intensity * (correction(job, reference, window) if job is not reference and job.network_time else 1.0)
        for job in jobs
    ])  # fmt: skip


def contention(
    intensity: ArrayLike, priority: ArrayLike, use: Sequence[NDArray[np.float64]] | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights of the graph of jobs that meet.

    Parameters
    ----------
    intensity, priority : float64[n_jobs]
        Intensity and priority of each job; of equal priorities the first goes first.
    use : float64[n_jobs, n_links]
        How many times its rate each job puts on every link.

    Returns
    -------
    float64[n_jobs, n_jobs]
        At [i, j] the intensity of i, if i goes before j and they share a link; else 0.
    """
    intensity, priority = np.asarray(intensity, np.float64), np.asarray(priority, np.float64)
    used = np.asarray(use) > 0
    meet = (used.astype(np.int64) @ used.T.astype(np.int64)) > 0
    order = np.argsort(-priority, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    before = place[:, np.newaxis] < place
    return np.where(meet & before, intensity[:, np.newaxis], 0.0)


def cut_weight(weights: NDArray[np.float64], levels: ArrayLike) -> float:
    """Sum of the weights of the edges whose ends are on different levels."""
    levels = np.asarray(levels)
    return float(weights[levels[:, np.newaxis] != levels].sum())


def best_runs(weights: NDArray[np.float64], order: Sequence[int], n_levels: int) -> NDArray[np.int64]:
    """Cut an order into at most `n_levels` runs such that the edges between them weigh most.

    f(i, k) = max over j of f(j, k - 1) + the edges from the first j jobs to those from j up to i: O(n^2) per level.

    Parameters
    ----------
    weights : float64[n_jobs, n_jobs]
        Weights of the edges.
    order : sequence of int
        Jobs, such that every edge goes forward.
    n_levels : int
        Number of levels, at least 1.

    Returns
    -------
    int64[n_jobs]
        Level of each job, 0 for those that go first.
    """
    n = len(order)
    inside = np.zeros((n + 1, n + 1))  # weight of the edges from the first a to the first b jobs
    inside[1:, 1:] = weights[np.ix_(order, order)].cumsum(axis=0).cumsum(axis=1)
    gain = inside - np.diagonal(inside)[:, np.newaxis]  # [j, i]: from the first j to those from j up to i
    gain[np.tril_indices(n + 1, -1)] = -np.inf
    best = np.zeros(n + 1)
    starts = []
    for _ in range(n_levels - 1):
        through = best[:, np.newaxis] + gain
        starts.append(through.argmax(axis=0))
        best = through.max(axis=0)
    levels = np.zeros(n, np.int64)
    end = n
    for level in range(n_levels - 1, 0, -1):
        start = int(starts[level - 1][end])
        levels[np.asarray(order[start:end], np.int64)] = level
        end = start
    return np.unique(levels, return_inverse=True)[1].astype(np.int64)  # no empty levels between


def compress(weights: NDArray[np.float64], n_levels: int, *, n_orders: int = 10, seed: int = 0) -> NDArray[np.int64]:
    """Give every job a level, so that the order along edges is kept and the cut is as heavy as any order drawn allows.

    Parameters
    ----------
    weights : float64[n_jobs, n_jobs]
        Weights from :func:`contention`.
    n_levels : int
        How many there are.
    n_orders : int
        How many orders are drawn.
    seed : int
        Seed of the orders.

    Returns
    -------
    int64[n_jobs]
        Level of each job, 0 for those that go first.

    Raises
    ------
    InputError
        Without a level or an order, or edges go round in a circle.
    """
    if n_levels < 1 or n_orders < 1:
        raise InputError(f"levels and orders must be at least 1, got {n_levels} and {n_orders}")
    random = np.random.default_rng(seed)
    n_levels = min(n_levels, max(1, len(weights)))  # no job needs more
    drawn = [best_runs(weights, _drawn_order(weights, random), n_levels) for _ in range(n_orders)]
    return max(drawn, key=lambda levels: cut_weight(weights, levels))  # of equals the first


def _drawn_order(weights: NDArray[np.float64], random: np.random.Generator) -> list[int]:
    """Draw an order in which every edge goes forward."""
    edge = weights > 0
    waits_for = edge.sum(axis=0)
    available = np.flatnonzero(waits_for == 0).tolist()
    order: list[int] = []
    while available:
        job = available.pop(int(random.integers(len(available))))
        order.append(job)
        waits_for[edge[job]] -= 1
        available += np.flatnonzero(edge[job] & (waits_for == 0)).tolist()
    if len(order) != len(weights):
        raise InputError("jobs cannot be ordered: the edges go round in a circle")
    return order
