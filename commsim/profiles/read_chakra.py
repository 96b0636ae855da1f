"""Chakra's traces as the step of all ranks: computations and exchanges, with the dependencies that they have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commsim.core.errors import InputError
from commsim.formats.chakra.codec import GROUPS
from commsim.formats.chakra.graphs import graph_of_traces, read_groups
from commsim.formats.chakra.traces import prefix_of, read_traces

from .graph_of_ranks import SEND, TracedGraph
from .rank import ProcessGroup


def graph_of_files(paths: Sequence[str | Path]) -> TracedGraph:
    """Read all ranks of a trace.

    Parameters
    ----------
    paths : sequence of path
        Files of one trace, or its prefix: all ranks are read, whichever are named. Process groups are those of
        ``PREFIX.groups.json``, where it is.

    Raises
    ------
    InputError
        If the files are of several traces, one is missing or damaged, or nothing is exchanged.
    """
    prefixes = {prefix_of(path) for path in paths}
    if len(prefixes) > 1:
        raise InputError(f"{paths[0]}: give the files of one trace, got {', '.join(sorted(map(str, prefixes))[:3])}")
    prefix = next(iter(prefixes))
    listed = prefix.with_name(prefix.name + GROUPS)
    named = read_groups(listed) if listed.exists() else {}
    traces = read_traces(prefix)
    graph = graph_of_traces(traces, named)
    by_ranks = {tuple(ranks): name for name, ranks in named.items()}
    groups = {name: ProcessGroup(name, "", tuple(ranks), len(ranks)) for name, ranks in named.items()}
    group_of = []
    for task in graph.tasks:
        name = by_ranks.get(task.group, "") if task.operation and task.operation != SEND else ""
        if task.operation and task.operation != SEND and not name:
            name = by_ranks[task.group] = f"group {len(groups)}"
            groups[name] = ProcessGroup(name, "", task.group, len(task.group))
        group_of.append(name)
    if not any(task.operation for task in graph.tasks):
        raise InputError(f"{prefix}: has no collective calls")
    return TracedGraph(graph, tuple(group_of), groups, len(traces), tuple(range(len(traces))))
