"""Pipeline parallelism: the graph of one iteration, and how much of it is bubble.

Each worker computes in the order of its schedule; activations and their gradients go to the next stage's worker as
messages, full duplex, while both compute; at the end the gradients of each stage are all-reduced among its copies.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.training.task_graph import Task, TaskGraph, TaskTimeline

from .pipeline_orders import TWO_WAYS, PipelineOrder, StagePass, ideal_bubble

MAX_PIPELINES = 2**20


@dataclass(frozen=True, slots=True)
class StageCosts:
    """What the passes of one micro-batch take.

    Parameters
    ----------
    forward, backward : float or sequence of float, s
        Time of each stage of the model, or of all stages alike.
    activation : float, bytes
        Size of what one stage sends to the next, and of the gradient back; with 0 no messages are sent.
    weights : float, bytes
        Gradients of one stage; with 0, or one copy of each stage, nothing is reduced.
    data_parallel : int
        Pipelines beside each other, which share the gradients.
    """

    forward: float | Sequence[float]
    backward: float | Sequence[float]
    activation: float = 0.0
    weights: float = 0.0
    data_parallel: int = 1

    def __post_init__(self) -> None:
        for name in ("forward", "backward", "activation", "weights"):
            values = np.atleast_1d(np.asarray(getattr(self, name), np.float64))
            if not ((values >= 0) & (values < math.inf)).all():
                raise InputError(f"{name} must be 0 or more and finite, got {getattr(self, name)}")
        if self.data_parallel < 1:
            raise InputError(f"data parallel must be at least 1, got {self.data_parallel}")
        if self.data_parallel > MAX_PIPELINES:
            raise InputError(f"data parallel must be at most {MAX_PIPELINES}, got {self.data_parallel}")


def pipeline_graph(order: PipelineOrder, costs: StageCosts) -> TaskGraph:
    """Graph of one iteration of one pipeline; with data parallelism the others are like it.

    Parameters
    ----------
    order : PipelineOrder
        Order from :mod:`commsim.training.parallel.pipeline_orders`.
    costs : StageCosts
        Times and sizes.

    Returns
    -------
    TaskGraph
        Worker w is ``gpu{w}``, rank w; its copies in the other pipelines are ranks w + D, w + 2D and so on.

    Raises
    ------
    InputError
        If there are neither one nor as many times as stages.
    """
    return _Writer(order, costs).write()


def bubble(timeline: TaskTimeline, n_workers: int) -> float:
    """Share of the workers' time in which they do not compute."""
    computes = np.array([not task.operation for task in timeline.graph.tasks])
    busy = float((timeline.end - timeline.start)[computes].sum())
    return 1 - busy / (n_workers * timeline.iteration_time) if timeline.iteration_time else 0.0


def pipeline_row(order: PipelineOrder, timeline: TaskTimeline) -> dict[str, Any]:
    """Return the JSON row of a schedule that was simulated."""
    formula = ideal_bubble(order.name, order.n_workers, order.n_micro_batches, order.n_stages // order.n_workers)
    return {
        "schedule": order.name,
        "stages": order.n_workers,
        "micro_batches": order.n_micro_batches,
        "iteration_s": timeline.iteration_time,
        "bubble": bubble(timeline, order.n_workers),
        "bubble_formula": float(formula),
        "exposed_comm_s": timeline.exposed_communication,
        "messages": sum(task.operation == "send" for task in timeline.graph.tasks),
        "weight_copies": 2 if order.name in TWO_WAYS else 1,
        "peak_activations": list(order.peak_activations),
    }


class _Writer:
    """Writes tasks so that each comes after all that it waits for."""

    def __init__(self, order: PipelineOrder, costs: StageCosts) -> None:
        self._order, self._costs = order, costs
        self._time = {False: _per_stage(order, costs.forward, "forward"),
                      True: _per_stage(order, costs.backward, "backward")}  # fmt: skip
        self._home = {(step.replica, step.stage): w for w, steps in enumerate(order.steps) for step in steps}
        self._tasks: list[Task] = []
        self._done: dict[StagePass, int] = {}

    def write(self) -> TaskGraph:
        queues = [list(reversed(steps)) for steps in self._order.steps]
        last: list[int | None] = [None] * len(queues)
        while any(queues):
            left = sum(map(len, queues))
            for w, queue in enumerate(queues):
                while queue and self._can_run(queue[-1]):
                    last[w] = self._compute(w, queue.pop(), last[w])
            if sum(map(len, queues)) == left:
                raise InputError(f"{self._order.name}: no worker can go on, the order of the passes is a deadlock")
        self._all_reduces()
        return TaskGraph(tuple(self._tasks))

    def _before(self, step: StagePass) -> StagePass | None:
        """Return the pass whose output this one needs."""
        if not step.backward:
            return StagePass(step.micro_batch, step.stage - 1, False, step.replica) if step.stage else None
        turns = step.stage == self._order.n_stages - 1
        return StagePass(step.micro_batch, step.stage + (not turns), not turns, step.replica)

    def _can_run(self, step: StagePass) -> bool:
        before = self._before(step)
        return before is None or before in self._done

    def _compute(self, worker: int, step: StagePass, last: int | None) -> int:
        before = self._before(step)
        after = [] if before is None else [self._arrival(before, worker)]
        name = f"{'backward' if step.backward else 'forward'} {step.micro_batch} stage {step.stage}"
        after += [] if last is None else [last]
        self._tasks.append(
            Task(name, (f"gpu{worker}.compute",), float(self._time[step.backward][step.stage]), after=tuple(after))
        )
        self._done[step] = len(self._tasks) - 1
        return len(self._tasks) - 1

    def _arrival(self, step: StagePass, to: int) -> int:
        """Index of what brings a pass's output to a worker: a message, or the pass itself."""
        source = self._home[step.replica, step.stage]
        if source == to or not self._costs.activation:
            return self._done[step]
        name = f"{'gradient' if step.backward else 'activation'} {step.micro_batch} from stage {step.stage}"
        resources = (f"gpu{source}.out", f"gpu{to}.in")
        self._tasks.append(
            Task(name, resources, operation="send", group=(source, to), size=self._costs.activation,
                 after=(self._done[step],))
        )  # fmt: skip
        return len(self._tasks) - 1

    def _all_reduces(self) -> None:
        """Write one all-reduce per stage, as soon as the last of its backward passes is done on all its workers."""
        passes: dict[int, list[StagePass]] = defaultdict(list)
        for step in self._done:
            if step.backward:
                passes[step.stage].append(step)
        for stage in range(self._order.n_stages):
            homes = sorted({self._home[step.replica, stage] for step in passes[stage]})
            group = tuple(w + d * self._order.n_workers for d in range(self._costs.data_parallel) for w in homes)
            if self._costs.weights and len(group) > 1:
                ports = tuple(f"gpu{w}.{way}" for w in homes for way in ("out", "in"))
                after = tuple(self._done[step] for step in passes[stage])
                self._tasks.append(
                    Task(f"all-reduce stage {stage}", ports, operation="all_reduce", group=group,
                         size=self._costs.weights, priority=1, after=after)
                )  # fmt: skip


def _per_stage(order: PipelineOrder, seconds: float | Sequence[float], name: str) -> Sequence[float]:
    values = np.atleast_1d(np.asarray(seconds, np.float64))
    if values.ndim != 1 or len(values) not in (1, order.n_stages):
        raise InputError(f"{name} must be one time, or one for each of {order.n_stages} stages, got {seconds}")
    return [float(value) for value in np.broadcast_to(values, order.n_stages)]
