"""Tasks of an iteration, spans of computation or communications, and graphs of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from commsim.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Task:
    """One span of a resource: computation, or with an operation a communication.

    Parameters
    ----------
    name : str
        What people call it.
    resources : tuple of str
        What it occupies, each by one task at a time: ``"gpu0.compute"``, ``"gpu0.network"``. What is before the last
        dot is the worker, which tells whose communication is hidden by whose computation. None: it only takes time.
    duration : float, s
        Of a computation; of a communication what it takes beside its cost, such as adding on a GPU.
    operation : str
        A collective operation such as ``all_reduce``, or ``send`` (from the first of the group to the second); empty
        for a computation.
    group : tuple of int
        Ranks that communicate; the first is the root where there is one.
    size : float, bytes
        As nccl-tests counts it: of a reduce-scatter or an all-gather the whole array.
    priority : int
        The smaller goes first, of those that could start.
    after : tuple of int
        Indices of earlier tasks of the graph.

    Raises
    ------
    InputError
        If a number is negative or not finite, a resource is named twice, or a communication has no group.
    """

    name: str
    resources: tuple[str, ...]
    duration: float = 0.0
    operation: str = ""
    group: tuple[int, ...] = ()
    size: float = 0.0
    priority: int = 0
    after: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for field in ("duration", "size"):
            if not 0 <= getattr(self, field) < math.inf:
                raise InputError(f"task {self.name!r}: {field} must be 0 or more, got {getattr(self, field)}")
        if len(set(self.resources)) < len(self.resources):
            raise InputError(f"task {self.name!r}: a resource is named twice in {self.resources}")
        if self.operation and (not self.group or len(set(self.group)) < len(self.group) or min(self.group) < 0):
            raise InputError(f"task {self.name!r}: {self.operation} needs a group of different ranks, got {self.group}")


@dataclass(frozen=True, slots=True)
class Graph:
    """Tasks, each after those that it waits for.

    Raises
    ------
    InputError
        If there is no task, or one waits for itself or for a later one.
    """

    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InputError("a graph needs at least one task, got none")
        for i, task in enumerate(self.tasks):
            if any(not 0 <= j < i for j in task.after):
                raise InputError(f"task {i}, {task.name!r}: is after earlier tasks 0..{i - 1}, got {task.after}")
