"""Graphs of tasks (computation and communication), list scheduling of them, and their TOML or JSON files.

A task starts when all tasks that it is `after` have ended and all its resources are free, and then runs to its end. Of
the tasks that could start at one time the one with the smallest (priority, index) goes first; one that must wait for a
second resource holds none meanwhile. Nothing is drawn at random, so the same graph gives the same times.

References
----------
Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17(2), 1969: list scheduling.

A file::

    [[tasks]]
    name = "backward"
    resources = ["gpu0.compute"]
    duration = "12ms"

    [[tasks]]
    name = "gradients"
    resources = ["gpu0.network"]
    operation = "all_reduce"
    group = [0, 1, 2, 3]
    size = "100MB"
    after = ["backward"]
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import read_tree, write_tree
from commsim.core.operations import OPERATIONS
from commsim.core.units import parse_size, parse_time, write_size, write_time

from .timeline import TaskTimeline

if TYPE_CHECKING:
    from .exchanges import ExchangesOnLinks

__all__ = ["Task", "TaskGraph", "TaskTimeline", "simulate_graph"]


@dataclass(frozen=True, slots=True)
class Task:
    """One span of a resource: computation, or with an operation a communication.

    Parameters
    ----------
    name : str
        What people call it.
    resources : tuple of str
        What it occupies, each by one task at a time: ``"gpu0.compute"``, ``"gpu0.network"``. What is before the last
        dot is the worker, so that only its own computation hides its
        communication. None: it only takes time.
    duration : float, s
        Time of a computation; for a communication what it takes beside its cost, such as adding on a GPU.
    operation : str
        A collective operation such as ``all_reduce``, or ``send`` (from the first of the group to the second); empty
        for a computation.
    group : tuple of int
        Ranks that communicate; the first is the root where there is one.
    size : float, bytes
        Size as nccl-tests counts it: for a reduce-scatter or an all-gather the whole array.
    priority : int
        The smaller goes first, of those that could start.
    after : tuple of int
        Indices of earlier tasks of the graph.
    parts : tuple of (float, float)
        Bytes and density of the pieces of the array, one after the other; nothing where the data is dense. Only sparse
        collectives make use of it.

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
    parts: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for field in ("duration", "size"):
            if not 0 <= getattr(self, field) < math.inf:
                raise InputError(f"task {self.name!r}: {field} must be 0 or more, got {getattr(self, field)}")
        if len(set(self.resources)) < len(self.resources):
            raise InputError(f"task {self.name!r}: a resource is named twice in {self.resources}")
        if self.operation and (not self.group or len(set(self.group)) < len(self.group) or min(self.group) < 0):
            raise InputError(f"task {self.name!r}: {self.operation} needs a group of different ranks, got {self.group}")


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """Tasks, each after those that it waits for.

    Raises
    ------
    InputError
        Without a task, or if one waits for itself or for a later one.
    """

    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InputError("a graph needs at least one task, got none")
        for i, task in enumerate(self.tasks):
            if any(not 0 <= j < i for j in task.after):
                raise InputError(f"task {i}, {task.name!r}: is after earlier tasks 0..{i - 1}, got {task.after}")

    @property
    def n_ranks(self) -> int:
        """One more than the highest rank that communicates."""
        return max((max(task.group) for task in self.tasks if task.group), default=0) + 1


def simulate_graph(
    graph: TaskGraph, time_of: Callable[[Task], float], links: ExchangesOnLinks | None = None
) -> TaskTimeline:
    """Run the graph.

    Parameters
    ----------
    graph : TaskGraph
        What is to be done.
    time_of : callable
        Seconds that a communication costs; it comes on top of the task's `duration`, and is not asked for computations.
        :mod:`commsim.training.cost_by_simulation` makes such functions.
    links : ExchangesOnLinks, optional
        Network on which communications that overlap share links. Default: each takes what it costs by itself.

    Returns
    -------
    TaskTimeline
        When each task started and ended.

    Raises
    ------
    InputError
        If a cost is negative or not finite.
    """
    return _GraphRun(graph, time_of, links).run()


class _GraphRun:
    """The state of one run: events by time, and per resource the tasks that wait for it."""

    def __init__(self, graph: TaskGraph, time_of: Callable[[Task], float], links: ExchangesOnLinks | None) -> None:
        self._tasks, self._time_of, self._graph, self._links = graph.tasks, time_of, graph, links
        self._missing = [len(set(task.after)) for task in graph.tasks]  # a task that is named twice ends once
        self._followers: list[list[int]] = [[] for _ in graph.tasks]
        for i, task in enumerate(graph.tasks):
            for j in set(task.after):
                self._followers[j].append(i)
        self._ends: list[tuple[float, int]] = []
        self._waiting: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._busy: set[str] = set()
        self._candidates: list[tuple[int, int, str]] = []  # priority, index, the resource that it waited for
        self._start, self._end = np.zeros(len(graph.tasks)), np.zeros(len(graph.tasks))

    def run(self) -> TaskTimeline:
        for i in (i for i, missing in enumerate(self._missing) if not missing):
            self._offer(i)
        self._start_all(0.0)
        while (now := self._next_end()) < math.inf:
            while self._ends and self._ends[0][0] == now:  # all that ends at once frees before anything starts
                self._finish(heapq.heappop(self._ends)[1])
            for i in self._links.ended(now) if self._links is not None else ():
                self._exchanged(i, now)
            self._start_all(now)
        return TaskTimeline(self._graph, self._start, self._end)

    def _next_end(self) -> float:
        under_way = math.inf if self._links is None else self._links.next_end()
        return min(under_way, self._ends[0][0] if self._ends else math.inf)

    def _exchanged(self, i: int, now: float) -> None:
        """End an exchange on shared links, or begin what the task does after it."""
        self._end[i] = now + self._tasks[i].duration
        if self._end[i] > now:
            heapq.heappush(self._ends, (float(self._end[i]), i))
        else:
            self._finish(i)

    def _offer(self, i: int, waited_for: str = "") -> None:
        heapq.heappush(self._candidates, (self._tasks[i].priority, i, waited_for))

    def _finish(self, i: int) -> None:
        for resource in self._tasks[i].resources:
            self._busy.discard(resource)
            self._offer_next(resource)
        for j in self._followers[i]:
            self._missing[j] -= 1
            if not self._missing[j]:
                self._offer(j)

    def _offer_next(self, resource: str) -> None:
        """Let the first that waits for a free resource try; if it cannot start, the next one will."""
        if self._waiting[resource]:
            self._offer(heapq.heappop(self._waiting[resource])[1], resource)

    def _start_all(self, now: float) -> None:
        while self._candidates:
            priority, i, waited_for = heapq.heappop(self._candidates)
            task = self._tasks[i]
            blocked = next((resource for resource in task.resources if resource in self._busy), None)
            if blocked is not None:
                heapq.heappush(self._waiting[blocked], (priority, i))
                if waited_for and waited_for not in self._busy:
                    self._offer_next(waited_for)
                continue
            self._busy.update(task.resources)
            self._start[i] = now
            if task.operation and self._links is not None:
                self._links.begin(i, task, now)
                continue
            self._end[i] = now + self._duration(task)
            heapq.heappush(self._ends, (float(self._end[i]), i))

    def _duration(self, task: Task) -> float:
        if not task.operation:
            return task.duration
        cost = self._time_of(task)
        if not 0 <= cost < math.inf:
            raise InputError(f"task {task.name!r}: costs must be 0 or more and finite, got {cost} s")
        return task.duration + cost


def read_graph(path: str | Path) -> TaskGraph:
    """Read a graph; a task is after others by their names, which precede it.

    Raises
    ------
    InputError
        Naming file, line and field, if the file is not such a description.
    """
    top = TableFields(read_tree(path), path)
    top.schema(required=False)
    tables = top.tables("tasks")
    top.finish()
    if not tables:
        top.fail("tasks", "must hold at least one task")
    numbers: dict[str, int] = {}
    tasks = []
    for table in tables:
        tasks.append(_task(table, numbers))
        if tasks[-1].name in numbers:
            table.fail("name", f"must be another name than {tasks[-1].name!r}, which an earlier task has")
        numbers[tasks[-1].name] = len(numbers)
    return TaskGraph(tuple(tasks))


def _task(table: TableFields, numbers: dict[str, int]) -> Task:
    name = table.text("name")
    operation = table.one_of("operation", ("send", *OPERATIONS), "") if "operation" in table else ""
    after = []
    for i, other in enumerate(table.items("after", str, "the name of a task") if "after" in table else []):
        if other not in numbers:
            table.member("after", i, f"must be the name of an earlier task, got {other!r}")
        after.append(numbers[other])
    fields: dict[str, Any] = {
        "resources": tuple(table.items("resources", str, "the name of a resource") if "resources" in table else []),
        "duration": table.quantity("duration", parse_time, 0.0),
        "size": table.quantity("size", parse_size, 0.0),
        "group": tuple(table.items("group", int, "a rank") if "group" in table else []),
        "priority": table.whole("priority", -(2**31), default=0),
    }
    table.finish()
    try:
        return Task(name, operation=operation, after=tuple(after), **fields)
    except InputError as error:
        table.fail(None, f"is wrong: {error}")


def write_graph(graph: TaskGraph, path: str | Path) -> None:
    """Write the graph of an iteration as TOML or JSON; names that an earlier task has get a number behind them."""
    names: dict[str, None] = {}
    for i, task in enumerate(graph.tasks):
        name = task.name or "task"
        names[name if name not in names else f"{name}#{i}"] = None
    named, tasks = list(names), []
    for name, task in zip(named, graph.tasks, strict=True):
        row: dict[str, Any] = {"name": name}
        if task.resources:
            row["resources"] = list(task.resources)
        if task.duration:
            row["duration"] = write_time(task.duration)
        if task.operation:
            row |= {"operation": task.operation, "group": list(task.group), "size": write_size(task.size)}
        if task.priority:
            row["priority"] = task.priority
        if task.after:
            row["after"] = [named[j] for j in task.after]
        tasks.append(row)
    write_tree(path, {"tasks": tasks})
