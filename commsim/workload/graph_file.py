"""Read the graph of an iteration from TOML or JSON.

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

from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS
from commsim.core.units import parse_size, parse_time
from commsim.files.fields import Fields
from commsim.files.whole_files import read_tree

from .task_graph import Graph, Task


def read_graph(path: str | Path) -> Graph:
    """Read a graph; a task is after others by their names, which stand before it.

    Raises
    ------
    InputError
        Naming file, line and field, if the file is not such a description.
    """
    top = Fields(read_tree(path), path)
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
    return Graph(tuple(tasks))


def _task(table: Fields, numbers: dict[str, int]) -> Task:
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
