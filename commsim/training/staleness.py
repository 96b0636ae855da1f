"""Workers and a parameter server, iteration by iteration: bulk synchronous, stale synchronous and asynchronous.

A worker pulls, computes and pushes, again and again. The server applies one push after the other, in the order of their
arrival. A worker may start iteration i only when every worker's iteration i - s - 1 has been applied: s = 0 is bulk
synchronous (BSP), a number is stale synchronous (SSP), and without a bound the workers are asynchronous.

References
----------
Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NeurIPS 2013, section 3.
Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014, section 3.4: bounded delay.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.value import Value, freeze

# Half of the factors are below exp(-50) there; a little beyond, times round to zero.
LARGEST_JITTER = 10
PULLED, ARRIVED, APPLIED = 2, 1, 0  # of things at the same time the first to happen has the smallest number


@dataclass(frozen=True, slots=True, eq=False)
class WorkerProgress(Value):
    """What every worker did when.

    Parameters
    ----------
    started, applied : float64[n_workers, n_iterations], s
        Time at which each iteration's pull began, and at which the server had applied its push.
    lead : int64[n_workers, n_iterations]
        How many iterations the slowest worker was behind at the start; the bound's s at most.
    missed : int64[n_workers, n_iterations]
        Pushes of others that the server applied between the end of a worker's pull and the applying of its own push:
        how stale an asynchronous gradient was. Bulk synchronous ones are of the same round, and belong together.
    """

    started: NDArray[np.float64]
    applied: NDArray[np.float64]
    lead: NDArray[np.int64]
    missed: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, dtype in (("started", np.float64), ("applied", np.float64), ("lead", np.int64), ("missed", np.int64)):
            object.__setattr__(self, name, freeze(getattr(self, name), dtype))

    @property
    def time(self) -> float:
        """Seconds until the last push has been applied."""
        return float(self.applied.max())

    @property
    def throughput(self) -> float:
        """Iterations per second of all workers together, until the first worker is done, so that all are running."""
        end = self.applied[:, -1].min()
        return float((self.applied <= end).sum() / end) if end else math.inf

    @property
    def waited(self) -> NDArray[np.float64]:
        """Seconds that each worker waited for others, float64[n_workers]."""
        return np.asarray((self.started[:, 1:] - self.applied[:, :-1]).sum(axis=1))

    def histogram(self) -> NDArray[np.int64]:
        """How many iterations started 0, 1, 2 ... iterations ahead of the slowest worker."""
        return np.bincount(self.lead.ravel())


def draw_compute(
    n_workers: int, n_iterations: int, mean: ArrayLike, jitter: float = 0.0, seed: int = 0
) -> NDArray[np.float64]:
    """Draw compute times: each worker's mean, times a log-normal factor of mean 1.

    Parameters
    ----------
    mean : float64[n_workers] or float, s
        Mean compute time of each worker; a larger one is a straggler.
    jitter : float
        Standard deviation of the logarithm, at most LARGEST_JITTER.

    Returns
    -------
    float64[n_workers, n_iterations], s
    """
    if n_workers < 1 or n_iterations < 1 or not 0 <= jitter <= LARGEST_JITTER:
        raise InputError(
            f"workers and iterations must be at least 1 and jitter 0 to {LARGEST_JITTER}, got {n_workers}, "
            f"{n_iterations}, {jitter}"
        )
    factor = np.random.default_rng(seed).lognormal(-(jitter**2) / 2, jitter, (n_workers, n_iterations))
    return np.asarray(np.broadcast_to(mean, n_workers)[:, np.newaxis] * factor)


def run_workers(
    compute: ArrayLike, *, pull: float = 0.0, push: float = 0.0, serve: float = 0.0, bound: int | None = None
) -> WorkerProgress:
    """Run all iterations of all workers.

    Parameters
    ----------
    compute : float64[n_workers, n_iterations], s
        Time of each iteration's computation.
    pull, push : float, s
        Time from the server to a worker, and back.
    serve : float, s
        The server's time for one push; pushes queue for it.
    bound : int, optional
        s; by default asynchronous.

    Raises
    ------
    InputError
        If a time is negative or not finite, or the bound is negative.
    """
    compute = np.asarray(compute, np.float64)
    if compute.ndim != 2 or not compute.size:
        raise InputError(f"compute times must be [n_workers, n_iterations], got shape {compute.shape}")
    times = np.append(compute, [pull, push, serve])
    if not ((times >= 0) & np.isfinite(times)).all():
        raise InputError("times of computing, pulling, pushing and serving must be 0 or more and finite")
    if bound is not None and bound < 0:
        raise InputError(f"the bound of staleness must be 0 or more, got {bound}")
    return _Server(compute, pull, push, serve, bound).run()


class _Server:
    """The state of one run."""

    def __init__(self, compute: NDArray[np.float64], pull: float, push: float, serve: float, bound: int | None) -> None:
        self._compute, self._pull, self._push, self._serve = compute, pull, push, serve
        self._n, self._m = compute.shape
        self._bound = self._m if bound is None else bound
        self._clock = np.zeros(self._n, np.int64)  # iterations of each worker that have been applied
        self._waiting = [True] * self._n
        self._free, self._n_applied = 0.0, 0
        self._seen = np.zeros(self._n, np.int64)
        self._events: list[tuple[float, int, int]] = []
        self._started, self._applied = np.empty_like(compute), np.empty_like(compute)
        self._lead, self._missed = (np.empty(compute.shape, np.int64) for _ in range(2))

    def run(self) -> WorkerProgress:
        self._start_all(0.0)
        while self._events:
            now, kind, worker = heapq.heappop(self._events)
            if kind == PULLED:
                self._seen[worker] = self._n_applied
                heapq.heappush(
                    self._events, (now + self._compute[worker, self._clock[worker]] + self._push, ARRIVED, worker)
                )
            elif kind == ARRIVED:
                self._free = max(self._free, now) + self._serve
                heapq.heappush(self._events, (self._free, APPLIED, worker))
            else:
                self._apply(now, worker)
                if not self._events or self._events[0][:2] != (now, APPLIED):  # all that is applied at once opens gates
                    self._start_all(now)
        return WorkerProgress(self._started, self._applied, self._lead, self._missed)

    def _apply(self, now: float, worker: int) -> None:
        i = self._clock[worker]
        self._applied[worker, i] = now
        self._missed[worker, i] = self._n_applied - self._seen[worker]
        self._n_applied += 1
        self._clock[worker] += 1
        self._waiting[worker] = self._clock[worker] < self._m

    def _start_all(self, now: float) -> None:
        """Start every waiting worker that is not too far ahead of the slowest."""
        slowest = self._clock.min()
        for worker in range(self._n):
            i = self._clock[worker]
            if self._waiting[worker] and i - slowest <= self._bound:
                self._waiting[worker] = False
                self._started[worker, i], self._lead[worker, i] = now, i - slowest
                heapq.heappush(self._events, (now + self._pull, PULLED, worker))
