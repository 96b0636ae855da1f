"""Tasks of a step: passes of a pipeline, exchanges of parameters before, of gradients after, and the optimizer last."""

from __future__ import annotations

from dataclasses import replace

from commsim.training.parallel.pipeline_orders import PipelineOrder
from commsim.training.task_graph import Task, TaskGraph


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
    n, p = order.n_stages, order.n_workers
    tasks = [Task(f"gather {i}", (f"gpu{i % p}.data",), gather[i]) for i in range(n)]
    first: dict[int, int] = {}
    last: dict[int, list[int]] = {i: [] for i in range(n)}
    for task in graph.tasks:
        after = tuple(j + n for j in task.after)
        words = task.name.split()
        if words[0] in ("forward", "backward"):
            part = int(words[-1])
            if words[0] == "forward" and part not in first:
                first[part] = len(tasks)
                after = (*after, *(range(part % p, n, p) if apart else (part,)))
            if words[0] == "backward":
                last[part].append(len(tasks))
        tasks.append(replace(task, after=after))
    for w in range(p):
        own = range(w, n, p)
        done = tuple(j for i in own for j in last[i])
        sent = []
        for i in own:
            tasks.append(Task(f"reduce {i}", (f"gpu{w}.data",), reduce[i], after=done if apart else tuple(last[i])))
            sent.append(len(tasks) - 1)
        tasks.append(Task("optimizer", (f"gpu{w}.compute",), update, after=(*sent, *done)))
    return TaskGraph(tuple(tasks))
