"""Queue of gradients at the network: wait-free back-propagation; partitions, priority and credit (ByteScheduler).

One iteration of a worker that is like all others, so that one queue and one link represent all. The clock starts with
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
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import LogGP
from commsim.core.errors import InputError

from .backward_trace import BackwardTrace

MAX_MESSAGES = 1_000_000


@dataclass(frozen=True, slots=True)
class Discipline:
    """How gradients are given to the network.

    Parameters
    ----------
    overlap : bool
        Whether a tensor may go as soon as it is ready (wait-free), or only when the backward pass has ended.
    partition : float, bytes
        Largest message; by default whole tensors.
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
# With the defaults of its code, which counts numbers of 4 bytes: partitions of 1 million, credit of 4 million.
BYTE_SCHEDULER = Discipline(partition=4e6, priority=True, credit=16e6, barrier=False)


@dataclass(frozen=True, slots=True, eq=False)
class IterationTimes:
    """When things were done in one iteration.

    Parameters
    ----------
    time : float, s
        Time from the start of a backward pass to the start of the next.
    compute, communication : float, s
        Parts of the time in which the worker computes, and in which the link is busy.
    done : float64[n_tensors], s
        Time at which each gradient was complete.
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


def run_iteration(trace: BackwardTrace, link: LogGP, discipline: Discipline = WAIT_FREE) -> IterationTimes:
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
    messages = send_in_order(trace, discipline, lambda size: link.o + size / link.B, link.L)
    done = np.zeros(len(trace.ready))
    for message in messages:
        done[message.tensor] = message.complete  # the last one of a tensor is the last to be complete
    busy = sum(link.o + message.n_bytes / link.B for message in messages)
    if discipline.barrier:
        time = max(trace.backward_time, float(done.max())) + trace.update_time + float(trace.forward.sum())
    else:
        time = trace.backward_time
        for tensor in range(len(done) - 1, -1, -1):
            time = max(time, float(done[tensor])) + float(trace.update[tensor] + trace.forward[tensor])
    return IterationTimes(time, trace.compute_time, busy, done, len(messages))


@dataclass(frozen=True, slots=True)
class TensorMessage:
    """A tensor or a part of one, on the link.

    Parameters
    ----------
    tensor, part : int
        Numbers in the trace, and among the tensor's parts.
    n_bytes : float, bytes
        Size.
    start, complete : float, s
        Time at which the link began with it, and at which it had arrived.
    """

    tensor: int
    part: int
    n_bytes: float
    start: float
    complete: float


def send_in_order(
    trace: BackwardTrace, discipline: Discipline, time_of: Callable[[float], float], latency: float = 0.0
) -> list[TensorMessage]:
    """Decide the order of all messages of one iteration on one link.

    Parameters
    ----------
    time_of : callable
        Function from bytes to the seconds in which the link is busy with a message of so many.
    latency : float, s
        Time from when the link has done with a message to when it is complete.

    Returns
    -------
    list of TensorMessage
        In the order in which the link takes them.
    """
    ready_times = trace.ready if discipline.overlap else np.full_like(trace.ready, trace.backward_time)
    sizes = _partitions(trace, discipline)
    queue: list[tuple[int, int, float]] = []  # what waits: tensor by urgency, number, bytes
    flying: list[tuple[float, float]] = []  # what is under way: complete at, bytes; first in, first out
    sent: list[TensorMessage] = []
    n, credit, free, now, arrived = len(ready_times), discipline.credit, 0.0, 0.0, 0
    while queue or flying or arrived < n:
        while arrived < n and ready_times[arrived] <= now:
            urgency = n - 1 - arrived if discipline.priority else arrived
            for number, size in enumerate(sizes[arrived]):
                heapq.heappush(queue, (urgency, number, size))
            arrived += 1
        while flying and flying[0][0] <= now:
            credit += heapq.heappop(flying)[1]
        while queue and (queue[0][2] <= credit or not flying):
            urgency, number, size = heapq.heappop(queue)
            start = max(free, now)
            free, credit = start + time_of(size), credit - size
            tensor = n - 1 - urgency if discipline.priority else urgency
            sent.append(TensorMessage(tensor, number, size, start, free + latency))
            heapq.heappush(flying, (free + latency, size))
        following = ([float(ready_times[arrived])] if arrived < n else []) + ([flying[0][0]] if flying else [])
        now = max(now, min(following)) if following else now
    return sent


def _partitions(trace: BackwardTrace, discipline: Discipline) -> list[list[float]]:
    """Sizes of the messages of each tensor."""
    if float((trace.n_bytes / discipline.partition).sum()) > MAX_MESSAGES:
        raise InputError(f"partitions of {discipline.partition} bytes are more than {MAX_MESSAGES} messages")
    out = []
    for n_bytes in trace.n_bytes.tolist():
        whole, rest = divmod(n_bytes, discipline.partition) if discipline.partition < n_bytes else (0.0, n_bytes)
        out.append([discipline.partition] * int(whole) + [rest] * (rest > 0 or not whole))
    return out
