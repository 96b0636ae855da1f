"""The graph of an iteration as the TOML or JSON that ``commsim workload`` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commsim.core.formats.files import write_tree
from commsim.core.units import write_size, write_time
from commsim.workload.task import Graph


def write_graph(graph: Graph, path: str | Path) -> None:
    """Write a graph; a task whose name an earlier one has gets its number behind it."""
    names: dict[str, None] = {}
    tasks = []
    for i, task in enumerate(graph.tasks):
        name = task.name or "task"
        names[name if name not in names else f"{name}#{i}"] = None
    named = list(names)
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
