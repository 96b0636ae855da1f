"""The score of a Kubernetes score plug-in: 0 to 100 for each node, by the time of a job's collectives with it.

A plug-in's Score answers for one node; its NormalizeScore then sees all. Here a node is worth what the job would take
if its pods were spread as they would be with that node: over how many machines, with how many GPUs of each.
In Go, the formula is the same; the times come from cost_model.c by cgo, or from this as an HTTP extender.
"""

from __future__ import annotations

from collections.abc import Mapping

MAX_NODE_SCORE = 100  # framework.MaxNodeScore
OUTSIDE = float("inf")  # a node on which no curve of the file fits


def job_time(model, calls: Mapping[tuple[str, int], int], machines: int, gpus: int, faults: str = "") -> float:
    """Return the seconds of a step's collectives: {(operation, bytes): number of calls}."""
    try:
        return sum(n * model.answer(name, machines, gpus, size, faults)[0] for (name, size), n in calls.items())
    except (KeyError, ValueError):
        return OUTSIDE


def scores(model, calls: Mapping[tuple[str, int], int], shapes: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Return the score of each node: MAX_NODE_SCORE times the best time over its own, as NormalizeScore scales.

    `shapes` has, by node, the machines and GPUs of each that the job would have with it.
    """
    times = {node: job_time(model, calls, *shape) for node, shape in shapes.items()}
    best = min(times.values(), default=OUTSIDE)
    return {
        node: 0 if time == OUTSIDE else max(1, round(MAX_NODE_SCORE * best / time)) if time else MAX_NODE_SCORE
        for node, time in times.items()
    }
