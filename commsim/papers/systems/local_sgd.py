"""Local SGD and AD-PSGD: workers that average models now and then, or with one random peer at a time.

References
----------
Stich, "Local SGD converges fast and communicates little", ICLR 2019: models are averaged every H iterations.
Lian et al., "Asynchronous decentralized parallel stochastic gradient descent", ICML 2018, section 3: a worker averages
its model with one neighbour's while it computes; half of the workers ask and the others answer, so that none waits for
each other in a circle.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth, Bytes, Seconds
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.staleness import draw_compute
from commsim.training.task_graph import Task

from . import Answer, training_system

MAX_DRAWS = 1_000_000  # of compute times: a few seconds


@training_system("Stich, ICLR 2019")
def local_sgd(
    *,
    n_workers: int = 16,
    period: int = 8,
    compute: Seconds = 0.1,
    jitter: float = 0.1,
    slow: float = 1.0,
    size: Bytes = 100e6,
    alpha: Seconds = 5e-6,
    bandwidth: Bandwidth = 1.25e9,
    iterations: int = 240,
    seed: int = 0,
) -> Answer:
    """Local SGD: models are averaged every few iterations, beside gradients that are added up in each.

    Parameters
    ----------
    n_workers, period : int
        Workers, and iterations between two averages, H; 1 averages after each.
    compute, jitter, slow : float
        Mean seconds of an iteration, standard deviation of its logarithm, and factor of the first worker's times.
    size : float, bytes
        Size of the model.
    alpha, bandwidth : float, s and bytes/s
        Latency and bandwidth of a ring all-reduce.
    iterations, seed : int
        Number of iterations of each worker, a multiple of the period; seed of the drawn times.

    Returns
    -------
    dict
        Mean time of an iteration, that of synchronous training with the same draws, and bytes sent per iteration.
    """
    if period < 1 or iterations % period:
        raise InputError(f"iterations must be a multiple of the period, got {iterations} and {period}")
    times = _times(n_workers, iterations, compute, jitter, slow, seed)
    average = _all_reduce(n_workers, size, alpha, bandwidth)
    local = times.reshape(n_workers, -1, period).sum(axis=2).max(axis=0).sum() + iterations / period * average
    synchronous = times.max(axis=0).sum() + iterations * average
    return {
        "iteration_s": float(local) / iterations,
        "synchronous_iteration_s": float(synchronous) / iterations,
        "speed_up": float(synchronous / local),
        "all_reduce_s": average,
        "sent_per_iteration_B": 2 * (n_workers - 1) / n_workers * size / period,
    }


@training_system("Lian et al., ICML 2018")
def ad_psgd(
    *,
    n_workers: int = 16,
    compute: Seconds = 0.1,
    jitter: float = 0.1,
    slow: float = 1.0,
    size: Bytes = 100e6,
    alpha: Seconds = 5e-6,
    bandwidth: Bandwidth = 1.25e9,
    iterations: int = 200,
    seed: int = 0,
) -> Answer:
    """AD-PSGD: each worker averages its model with a random peer's while it computes; no worker waits for all.

    Parameters
    ----------
    n_workers : int
        Half of them, rounded up, ask; the others answer.
    compute, jitter, slow : float
        Mean seconds of an iteration, standard deviation of its logarithm, and factor of the first worker's times.
    size : float, bytes
        Size of the model, which both of a pair send at once.
    alpha, bandwidth : float, s and bytes/s
        Latency and bandwidth of one message.
    iterations, seed : int
        Number of iterations of the fastest worker when nothing waits; seed of the drawn times and peers.

    Returns
    -------
    dict
        Iterations per second of all workers, those of synchronous training with the same draws, and averages per
        second.
    """
    if n_workers < 2:
        raise InputError(f"a pair needs 2 workers, got {n_workers}")
    times = _times(n_workers, iterations, compute, jitter, slow, seed)
    average = closed_form_costs(alpha, bandwidth)(_between((0, 1), "send", size))
    end = float(times.sum(axis=1).min())
    done, averages = gossip(times, average, end, seed)
    synchronous = float(times.max(axis=0).sum()) + iterations * _all_reduce(n_workers, size, alpha, bandwidth)
    return {
        "iterations_per_s": int(done.sum()) / end,
        "synchronous_iterations_per_s": n_workers * iterations / synchronous,
        "speed_up": int(done.sum()) / end * synchronous / (n_workers * iterations),
        "averages_per_s": averages / end,
        "slowest_worker": int(done.min()),
        "fastest_worker": int(done.max()),
    }


def gossip(times: NDArray[np.float64], average: float, end: float, seed: int = 0) -> tuple[NDArray[np.int64], int]:
    """Run workers until a time; those with even numbers ask a random one with an odd number in each iteration.

    Parameters
    ----------
    times : float64[n_workers, n_iterations], s
        Time of each iteration's computation.
    average : float, s
        Time that an average takes both of a pair; a worker has one at a time, and an asker's next iteration starts
        after it.
    end : float, s
        End of the run; no later than the first worker has computed all.

    Returns
    -------
    int64[n_workers]
        Iterations that each has done.
    int
        Averages.
    """
    n_workers = len(times)
    draw = np.random.default_rng(seed)
    free = np.zeros(n_workers)  # when an answering worker's port is free
    done, averages = np.zeros(n_workers, np.int64), 0
    starts = [(0.0, worker) for worker in range(n_workers)]
    while starts:
        now, worker = heapq.heappop(starts)
        if done[worker] == times.shape[1]:
            continue
        computed = averaged = now + times[worker, done[worker]]
        if worker % 2 == 0:
            peer = 1 + 2 * int(draw.integers(n_workers // 2))
            averaged = free[peer] = max(now, free[peer]) + average
            averages += averaged <= end
        if max(computed, averaged) <= end:
            done[worker] += 1
            heapq.heappush(starts, (max(computed, averaged), worker))
    return done, int(averages)


def _times(n: int, iterations: int, compute: float, jitter: float, slow: float, seed: int) -> NDArray[np.float64]:
    if not (0 < compute < float("inf") and 1 <= slow < float("inf")):
        raise InputError(f"compute must be positive and slow at least 1, got {compute} and {slow}")
    if n * iterations > MAX_DRAWS:
        raise InputError(f"workers times iterations must be at most {MAX_DRAWS}, got {n} x {iterations}")
    mean = np.full(max(n, 0), compute)
    mean[:1] *= slow
    return draw_compute(n, iterations, mean, jitter, seed)


def _all_reduce(n: int, size: float, alpha: float, bandwidth: float) -> float:
    cost = closed_form_costs(alpha, bandwidth)
    return cost(_between(tuple(range(n)), "all_reduce", size)) if n > 1 else 0.0


def _between(group: tuple[int, ...], operation: str, size: float) -> Task:
    return Task("average", (), 0.0, operation, group, size)
