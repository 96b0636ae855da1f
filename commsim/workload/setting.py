"""What every policy of data-parallel training is given: the gradients, the workers, and what communication costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from commsim.core.errors import InputError

from .backward_trace import BackwardTrace
from .task_graph import Task

MAX_WORKERS = 2**20
COMPUTE, NETWORK = "worker.compute", "worker.network"
"""Resources of the one worker that stands for all: they do the same at the same time."""


def free_addition(n_bytes: float) -> float:  # noqa: ARG001 - the usual `add_time`
    """Seconds of adding two vectors: none."""
    return 0.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Workers of which each computes the same batch.

    Parameters
    ----------
    trace : BackwardTrace
        Gradients and compute times of one iteration.
    n_workers : int
        Ranks 0 to n - 1, one GPU each.
    time_of : callable
        Seconds that a communication costs, as :func:`commsim.workload.task_graph.play` takes it.
    compression : float
        Gradients are sent as this many times fewer bytes, and taken to be added in that form.
    add_time : callable
        From bytes of a vector to the seconds of adding it to another; free unless given.

    Raises
    ------
    InputError
        If there is no worker or too many, or the compression is less than 1.
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
        group: tuple[int, ...] | None = None,
        priority: int = 0,
    ) -> Task:
        """Task of a collective on gradients: compressed on the wire, and added in n - 1 parts of S / n bytes.

        Parameters
        ----------
        n_bytes : float, bytes
            Before compression; the whole array.
        group : tuple of int, optional
            All workers unless given.
        """
        group = self.workers if group is None else group
        n = len(group)
        adds = n - 1 if operation in ("all_reduce", "reduce_scatter") else 0
        added = adds * self.add_time(n_bytes / n) if adds else 0.0
        return Task(name, (NETWORK,), added, operation, group, n_bytes / self.compression, priority, after)
