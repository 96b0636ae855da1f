"""Tasks of a step: passes of a pipeline, exchanges of parameters before, of gradients after, and the optimizer last."""

from __future__ import annotations

from dataclasses import replace

from commsim.training.parallel.pipeline_orders import PipelineOrder
from commsim.training.task_graph import Task, TaskGraph


def worker_of(task: Task) -> int:
    """Return the worker of a pipeline that computes or exchanges."""
    return int(task.resources[0].partition(".")[0].removeprefix("gpu"))


def with_exchanges(
    graph: TaskGraph, order: PipelineOrder, gather: list[float], reduce: list[float], update: float, *, apart: bool
) -> TaskGraph:
    """Put the exchanges of parameters and gradients, and the optimizer, around the passes of a pipeline.

    Parameters
    ----------
    graph, order
        Passes.
    gather, reduce : list of float, s
        Time of each part's exchange before its first and after its last pass.
    update : float, s
        Optimizer of each worker.
    apart : bool
        Whether nothing is computed while parameters and gradients are exchanged.
    """
    held = sorted((i, w) for w, parts in enumerate(order.parts) for i in parts)
    tasks = [Task(f"gather {i}", (f"gpu{w}.data",), gather[i]) for i, w in held]
    gathers = {place: number for number, place in enumerate(held)}
    first = set[tuple[int, int]]()
    last: dict[tuple[int, int], list[int]] = {place: [] for place in held}
    for task in graph.tasks:
        after = tuple(j + len(held) for j in task.after)
        words = task.name.split()
        if words[0] in ("forward", "backward"):
            part, w = int(words[-1]), worker_of(task)
            if words[0] == "forward" and (part, w) not in first:
                first.add((part, w))
                after = (*after, *(gathers[i, w] for i in (order.parts[w] if apart else (part,))))
            if words[0] == "backward":
                last[part, w].append(len(tasks))
        tasks.append(replace(task, after=after))
    for w, own in enumerate(order.parts):
        done = tuple(j for i in own for j in last[i, w])
        sent = []
        for i in own:
            tasks.append(Task(f"reduce {i}", (f"gpu{w}.data",), reduce[i], after=done if apart else tuple(last[i, w])))
            sent.append(len(tasks) - 1)
        tasks.append(Task("optimizer", (f"gpu{w}.compute",), update, after=(*sent, *done)))
    return TaskGraph(tuple(tasks))
