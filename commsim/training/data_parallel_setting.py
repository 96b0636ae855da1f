"""Setting of data-parallel training: gradients, workers, communication costs, buckets of gradients and their graph.

The iteration starts with the backward pass and ends with the forward pass after it, so that what a policy leaves
exposed lies between the two. The optimiser runs before the forward pass; where the trace does not know its time, that
belongs to the forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from commsim.core.errors import InputError

from .backward_trace import BackwardTrace
from .task_graph import Task, TaskGraph

MAX_WORKERS = 2**20
# Resources of the one worker that represents all: they do the same at the same time.
COMPUTE, NETWORK = "worker.compute", "worker.network"
MAX_BATCHES = 10_000


def free_addition(n_bytes: float) -> float:  # noqa: ARG001 - the usual `add_time`
    """Seconds of adding two vectors: none."""
    return 0.0


@dataclass(frozen=True, slots=True)
class TrainingSetting:
    """Workers that compute batches of the same size.

    Parameters
    ----------
    trace : BackwardTrace
        Gradients and compute times of one iteration.
    n_workers : int
        Ranks 0 to n - 1, one GPU each.
    time_of : callable
        Seconds that a communication costs, as :func:`commsim.training.task_graph.simulate_graph` takes it.
    compression : float
        Gradients are sent as this many times fewer bytes, and taken to be added in that form.
    add_time : callable
        Function from bytes of a vector to the seconds of adding it to another; by default 0.

    Raises
    ------
    InputError
        Without a worker, with too many, or if the compression is less than 1.
    """

    trace: BackwardTrace
    n_workers: int
    time_of: Callable[[Task], float]
    compression: float = 1.0
    add_time: Callable[[float], float] = free_addition

    def __post_init__(self) -> None:
        if not 1 <= self.n_workers <= MAX_WORKERS:
            raise InputError(f"workers must be at least 1 and at most {MAX_WORKERS}, got {self.n_workers}")
        if not 1 <= self.compression < math.inf:
            raise InputError(f"compression must be 1 or more, got {self.compression}")

    @property
    def workers(self) -> tuple[int, ...]:
        """All ranks."""
        return tuple(range(self.n_workers))

    def exchange(
        self,
        name: str,
        operation: str,
        n_bytes: float,
        after: tuple[int, ...],
        *,
        tensors: Iterable[int] = (),
        group: tuple[int, ...] | None = None,
        priority: int = 0,
    ) -> Task:
        """Task of a collective on gradients: compressed on the wire, and added in n - 1 parts of S / n bytes.

        Parameters
        ----------
        n_bytes : float, bytes
            Size of the whole array before compression.
        tensors : iterable of int
            What the array is made of, or is a part of, in this order: it has their densities.
        group : tuple of int, optional
            Ranks that take part; by default all workers.
        """
        group = self.workers if group is None else group
        n = len(group)
        adds = n - 1 if operation in ("all_reduce", "reduce_scatter") else 0
        added = adds * self.add_time(n_bytes / n) if adds else 0.0
        sent = n_bytes / self.compression
        parts = self.trace.parts(tensors, sent)
        return Task(name, (NETWORK,), added, operation, group, sent, priority, after, parts)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Gradients of one exchange.

    Parameters
    ----------
    tensors : tuple of int
        Numbers in the trace.
    operation : str
        How they are exchanged.
    not_before : float, s
        Earliest time from the start of the backward pass; the tensors must be ready anyway.
    """

    tensors: tuple[int, ...]
    operation: str = "all_reduce"
    not_before: float = 0.0

    def n_bytes(self, setting: TrainingSetting) -> float:
        """Size of the exchange: bytes of all its tensors, of every worker where they are gathered."""
        n_bytes = float(sum(setting.trace.n_bytes[t] for t in self.tensors))
        return n_bytes * setting.n_workers if self.operation == "all_gather" else n_bytes


def fill_buckets(trace: BackwardTrace, tensors: Iterable[int], *limits: float) -> Iterator[Bucket]:
    """Fill buckets in the given order; the tensor that reaches the limit closes its bucket.

    Parameters
    ----------
    limits : float, bytes
        Limit of the first bucket, the second and so on; the last one holds for all that follow.
    """
    inside: list[int] = []
    n, n_bytes = 0, 0.0
    for tensor in tensors:
        inside.append(tensor)
        n_bytes += float(trace.n_bytes[tensor])
        if n_bytes >= limits[min(n, len(limits) - 1)]:
            yield Bucket(tuple(inside))
            inside, n, n_bytes = [], n + 1, 0.0
    if inside:
        yield Bucket(tuple(inside))


def bucketed_graph(
    setting: TrainingSetting,
    buckets: Sequence[Bucket],
    *,
    overlap: bool = True,
    unused: frozenset[int] = frozenset(),
    micro_iterations: int = 1,
) -> TaskGraph:
    """Graph of an iteration whose buckets are exchanged in order, and all before the forward pass.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs.
    buckets : sequence of Bucket
        Buckets in the order in which they are exchanged, one after the other.
    overlap : bool
        Whether a bucket may go when its tensors are ready, or only when the backward pass has ended.
    unused : frozenset of int
        Tensors for which no bucket waits.
    micro_iterations : int
        Batches per exchange; the gradients of all but the last are added up where they are made.

    Raises
    ------
    InputError
        Without a batch, or with too many.
    """
    if not 1 <= micro_iterations <= MAX_BATCHES:
        raise InputError(f"an iteration has at least 1 batch, got {micro_iterations}, and at most {MAX_BATCHES}")
    trace, last = setting.trace, len(setting.trace.n_bytes) - 1
    tasks = [
        Task(f"batch {i} without exchange", (COMPUTE,), trace.compute_time, after=(i - 1,) if i else ())
        for i in range(micro_iterations - 1)
    ]
    started = len(tasks) - 1
    tasks += backward_tasks(trace, started)
    begun = (started,) * (started >= 0)
    exchanged: tuple[int, ...] = ()
    for i, bucket in enumerate(buckets):
        waits = [t for t in bucket.tensors if t not in unused] if overlap else [last]
        after = (*exchanged, *((started + 1 + max(waits),) if waits else begun))
        if bucket.not_before > 0:
            timer = Task(f"bucket {i} may go", (), bucket.not_before, after=begun)
            tasks.append(timer)
            after = (*after, len(tasks) - 1)
        tasks.append(
            setting.exchange(f"bucket {i}", bucket.operation, bucket.n_bytes(setting), after, tensors=bucket.tensors)
        )
        exchanged = (len(tasks) - 1,)
    return TaskGraph((*tasks, *forward_tasks(trace, len(tasks), (*exchanged, started + 1 + last))))


def forward_tasks(trace: BackwardTrace, number: int, after: tuple[int, ...], share: float = 1.0) -> list[Task]:
    """Tasks of the optimiser, where the trace knows it, and of the whole forward pass after it.

    Parameters
    ----------
    number : int
        Number of the first of them in the graph.
    after : tuple of int
        What the first waits for.
    share : float
        Part of the parameters that a worker updates.
    """
    tasks = [Task("optimiser", (COMPUTE,), trace.update_time * share, after=after)] * bool(trace.update_time)
    waits = (number,) if tasks else after
    return [*tasks, Task("forward", (COMPUTE,), float(trace.forward.sum()), after=waits)]


def backward_tasks(trace: BackwardTrace, after: int = -1) -> list[Task]:
    """Tasks of the backward pass, one per tensor and each after the one before.

    Parameters
    ----------
    after : int
        Number of the task that the first waits for and that theirs follow; -1 if they are the graph's first.
    """
    gaps = trace.gaps.tolist()
    return [
        Task(f"backward {trace.name(i)}", (COMPUTE,), gap, after=(after + i,) if after + i >= 0 else ())
        for i, gap in enumerate(gaps)
    ]
