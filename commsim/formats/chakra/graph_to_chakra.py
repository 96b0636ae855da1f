"""The graph of an iteration as Chakra traces: computations and collectives, one file per rank."""

from __future__ import annotations

import re
from typing import Any

from commsim.core.errors import InputError
from commsim.workload.task_graph import Graph, Task

from .messages import COLLECTIVE, COMP, OPERATIONS, RECV, RESOURCE, SEND, Metadata, Node
from .programs import DURATION, MAX_WAITS
from .traces import MAX_RANKS, VERSION, Trace

Groups = dict[str, list[int]]


def traces_of_graph(graph: Graph) -> tuple[list[Trace], Groups]:
    """Write a graph as traces.

    A graph of one worker, without messages from one rank to another, is what every rank does. Else each worker is one
    rank, which the number at the end of its name says.

    Returns
    -------
    list of Trace, dict of str to list of int
        One per rank, and the ranks of every process group by name.

    Raises
    ------
    InputError
        If it cannot be said which rank does a task, or a rank waits for what another one does.
    """
    rank_of = _workers(graph)
    ranks = {r for task in graph.tasks for r in task.group} | set(rank_of.values())
    n_ranks = max(ranks, default=0) + 1
    if n_ranks > MAX_RANKS:
        raise InputError(f"ranks are numbered up to {MAX_RANKS}, got {n_ranks - 1}")
    names: dict[tuple[int, ...], str] = {}
    for task in graph.tasks:
        if task.operation and task.operation != "send":
            names.setdefault(task.group, str(len(names) + 1))
    waits = _waits(graph)
    _check_ranks(graph, waits, rank_of)
    traces = [_trace(graph, waits, rank, rank_of, names) for rank in range(n_ranks)]
    return traces, {name: list(group) for group, name in names.items()}


def _takes_no_time(task: Task) -> bool:
    return not task.operation and not task.duration


def _waits(graph: Graph) -> list[set[int]]:
    """Tasks that each waits for, looking through those that take no time: ASTRA-sim would give them a nanosecond."""
    waits: list[set[int]] = []
    total = 0
    for task in graph.tasks:
        found: set[int] = set()
        for j in task.after:
            found |= waits[j] if _takes_no_time(graph.tasks[j]) else {j}
        waits.append(found)
        total += len(found)
        if total > MAX_WAITS:
            raise InputError(f"more than {MAX_WAITS} tasks wait for each other")
    return waits


def _check_ranks(graph: Graph, waits: list[set[int]], rank_of: dict[str, int]) -> None:
    """Raise if a rank waits for what another one does: only messages and collectives go between ranks."""
    for task, waited in zip(graph.tasks, waits, strict=True):
        ranks = None if _takes_no_time(task) else _ranks(task, rank_of)
        for j in waited if ranks is not None else ():
            theirs = _ranks(graph.tasks[j], rank_of)
            if theirs is not None and ranks is not None and theirs.isdisjoint(ranks):
                other = graph.tasks[j].name
                raise InputError(f"task {task.name!r} waits for {other!r} of another rank, and no message says so")


def _workers(graph: Graph) -> dict[str, int]:
    """Rank of every worker; none for a graph of one worker, whose tasks all ranks do."""
    workers = sorted({_worker(resource) for task in graph.tasks for resource in task.resources})
    if len(workers) < 2 and all(task.operation != "send" for task in graph.tasks):
        return {}
    rank_of: dict[str, int] = {}
    for worker in workers:
        number = re.search(r"(\d{1,9})$", worker)
        if number is None or int(number[1]) in rank_of.values():
            raise InputError(f"the worker {worker!r} must end with the number of its rank, which no other one has")
        rank_of[worker] = int(number[1])
    return rank_of


def _worker(resource: str) -> str:
    return resource.rpartition(".")[0]


def _ranks(task: Task, rank_of: dict[str, int]) -> set[int] | None:
    """Ranks that do a task; None for all."""
    if task.operation:
        return set(task.group)
    if not rank_of:
        return None
    found = {rank_of[_worker(resource)] for resource in task.resources}
    if len(found) != 1:
        raise InputError(f"task {task.name!r} is done by {len(found)} workers, and must be by one")
    return found


def _trace(
    graph: Graph, waits: list[set[int]], rank: int, rank_of: dict[str, int], names: dict[tuple[int, ...], str]
) -> Trace:
    nodes = []
    known: list[tuple[int, ...]] = []  # nodes of this rank that stand for each task, or for what comes before it
    for i, task in enumerate(graph.tasks):
        if _takes_no_time(task):
            known.append(())
            continue
        ranks = _ranks(task, rank_of)
        before = tuple(sorted({n for j in waits[i] for n in known[j]}))
        if ranks is not None and rank not in ranks:
            known.append(() if rank_of else before)
            continue
        known.append((i,))
        nodes.append(_node(i, task, rank, before, names))
    return Trace(Metadata(VERSION), tuple(nodes))


def _node(i: int, task: Task, rank: int, before: tuple[int, ...], names: dict[tuple[int, ...], str]) -> Node:
    attributes: dict[str, tuple[str, Any]] = {"is_cpu_op": ("bool_val", False)}
    time = round(task.duration * 1e9)
    micros = -(-time // 1000)
    if task.resources:
        attributes[RESOURCE] = "string_val", task.resources[0].rpartition(".")[2]
    if time:
        attributes[DURATION] = "int64_val", time
    if task.priority:
        attributes["comm_priority"] = "int32_val", task.priority
    if not task.operation:
        return Node(i, task.name, COMP, data=before, duration=micros, attributes=attributes)
    attributes["comm_size"] = "int64_val", round(task.size)
    if task.operation == "send":
        src, dst = task.group
        attributes |= {"comm_src": ("int32_val", src), "comm_dst": ("int32_val", dst), "comm_tag": ("int32_val", i)}
        kind = SEND if rank == src else RECV
        return Node(i, task.name, kind, data=before, duration=micros, attributes=attributes)
    if task.operation not in OPERATIONS:
        raise InputError(f"task {task.name!r}: Chakra has no {task.operation}; known: {', '.join(OPERATIONS)}")
    attributes["comm_type"] = "int64_val", OPERATIONS[task.operation]
    attributes["pg_name"] = "string_val", names[task.group]
    return Node(i, task.name, COLLECTIVE, data=before, duration=micros, attributes=attributes)
