"""Gradients on their way to the network: wait-free back-propagation; partitions, priority and credit (ByteScheduler).

One iteration of a worker that is like all others, so that one queue and one link stand for all. The clock starts with
the backward pass and stops when the next one could start. A message takes the link for o + bytes/B, in the order in
which messages were given to it, and is complete L later; credit comes back then.

Without a barrier, a layer's forward pass starts when the layer before it and the layer's own gradients are done. With
perfect preemption the iteration tends to max(compute, communication) and what one partition and one latency add.

References
----------
Peng et al., "A generic communication scheduler for distributed DNN training acceleration" (ByteScheduler), SOSP 2019,
section 4. Zhang et al. (Poseidon), USENIX ATC 2017, section 3.1: wait-free back-propagation.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import LogGP
from commsim.core.errors import InputError

from .backward_trace import BackwardTrace


@dataclass(frozen=True, slots=True)
class Discipline:
    """How gradients are given to the network.

    Parameters
    ----------
    overlap : bool
        Whether a tensor may go as soon as it is ready (wait-free), or only when the backward pass has ended.
    partition : float, bytes
        Largest message; whole tensors unless given.
    priority : bool
        Whether the layers that the forward pass needs first go first, of those that wait; else first come first served.
    credit : float, bytes
        How much may be under way; what is beyond waits in the queue, where priority counts. A message larger than the
        credit goes when nothing else is under way.
    barrier : bool
        Whether the next forward pass waits for all gradients, or each layer for its own.

    Raises
    ------
    InputError
        If a number is not positive.
    """

    overlap: bool = True
    partition: float = math.inf
    priority: bool = False
    credit: float = math.inf
    barrier: bool = True

    def __post_init__(self) -> None:
        for name in ("partition", "credit"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be more than 0 bytes, got {getattr(self, name)}")


WAIT_FREE = Discipline()
BYTE_SCHEDULER = Discipline(partition=4e6, priority=True, credit=16e6, barrier=False)
"""With the defaults of its code, which counts numbers of 4 bytes: partitions of 1 million, credit of 4 million."""


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """When things were done in one iteration.

    Parameters
    ----------
    time : float, s
        From the start of a backward pass to the start of the next.
    compute, communication : float, s
        Of which computing takes this much, and the link is busy this long.
    done : float64[n_tensors], s
        When each gradient was complete.
    n_messages : int
        Partitions.
    """

    time: float
    compute: float
    communication: float
    done: NDArray[np.float64]
    n_messages: int

    @property
    def exposed(self) -> float:
        """Seconds of the iteration in which nothing was computed."""
        return self.time - self.compute


def run_iteration(trace: BackwardTrace, link: LogGP, discipline: Discipline = WAIT_FREE) -> Iteration:
    """Run one iteration.

    Parameters
    ----------
    trace : BackwardTrace
        Gradients and compute times.
    link : LogGP
        What a message costs; for an all-reduce, B is the size over the time that it needs.
    discipline : Discipline
        How gradients are given to the network.
    """
    ready = trace.ready if discipline.overlap else np.full_like(trace.ready, trace.backward_time)
    sizes = _partitions(trace, discipline)
    done, busy = _send(ready, sizes, link, discipline)
    if discipline.barrier:
        time = max(trace.backward_time, float(done.max())) + float(trace.forward.sum())
    else:
        time = trace.backward_time
        for tensor in range(len(done) - 1, -1, -1):
            time = max(time, float(done[tensor])) + float(trace.forward[tensor])
    return Iteration(time, trace.compute_time, busy, done, sum(map(len, sizes)))


def _partitions(trace: BackwardTrace, discipline: Discipline) -> list[list[float]]:
    """Sizes of the messages of each tensor."""
    out = []
    for n_bytes in trace.n_bytes.tolist():
        whole, rest = divmod(n_bytes, discipline.partition) if discipline.partition < n_bytes else (0.0, n_bytes)
        out.append([discipline.partition] * int(whole) + [rest] * (rest > 0 or not whole))
    return out


def _send(
    ready: NDArray[np.float64], sizes: list[list[float]], link: LogGP, discipline: Discipline
) -> tuple[NDArray[np.float64], float]:
    """When each tensor is complete, and how long the link is busy."""
    queue: list[tuple[int, int, float]] = []  # what waits: tensor by urgency, number, bytes
    flying: list[tuple[float, float]] = []  # what is under way: complete at, bytes; first in, first out
    done, n = np.zeros(len(ready)), len(ready)
    credit, free, busy, now, arrived = discipline.credit, 0.0, 0.0, 0.0, 0
    while queue or flying or arrived < n:
        while arrived < n and ready[arrived] <= now:
            urgency = n - 1 - arrived if discipline.priority else arrived
            for number, size in enumerate(sizes[arrived]):
                heapq.heappush(queue, (urgency, number, size))
            arrived += 1
        while flying and flying[0][0] <= now:
            credit += heapq.heappop(flying)[1]
        while queue and (queue[0][2] <= credit or not flying):
            urgency, _, size = heapq.heappop(queue)
            took = link.o + size / link.B
            free, busy, credit = max(free, now) + took, busy + took, credit - size
            done[n - 1 - urgency if discipline.priority else urgency] = free + link.L
            heapq.heappush(flying, (free + link.L, size))
        following = ([float(ready[arrived])] if arrived < n else []) + ([flying[0][0]] if flying else [])
        now = max(now, min(following)) if following else now
    return done, busy
