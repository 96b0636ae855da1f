"""Chakra traces as the graph of an iteration, and the other way round: computations and collectives of all ranks."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_json
from commsim.formats.programs.operations import deadlock, sorted_after
from commsim.training.task_graph import Task, TaskGraph

from .codec import (
    COLLECTIVE,
    COMP,
    GROUPS,
    MEM_LOAD,
    MEM_STORE,
    METADATA,
    NAMES,
    OPERATIONS,
    RECV,
    RESOURCE,
    SEND,
    Node,
    TraceMetadata,
)
from .programs import DURATION, MAX_WAITS, nanoseconds, whole_attribute
from .trace_file import VERSION, ChakraTrace
from .traces import MAX_RANKS, prefix_of, read_traces, write_traces

Groups = dict[str, list[int]]


def read_groups(path: str | Path) -> Groups:
    """Read which ranks each process group has: ``{"1": [0, 1, 2, 3]}``.

    Raises
    ------
    InputError
        If the file holds something else.
    """
    tree = read_json(path, 2**26)
    if not isinstance(tree, dict) or not all(map(_is_group, tree.values())):
        raise InputError(f"{path}: process groups are a table of lists of different ranks")
    return dict(tree)


def _is_group(ranks: object) -> bool:
    if not isinstance(ranks, list) or not all(type(rank) is int and rank >= 0 for rank in ranks):
        return False
    return len(set(ranks)) == len(ranks) > 0


@dataclass(slots=True)
class _TaskDraft:
    """A task in the making: of several ranks, if it is a message or a collective."""

    name: str
    operation: str = ""
    group: tuple[int, ...] = ()
    size: float = 0.0
    duration: float = 0.0
    priority: int = 0
    resources: list[str] = field(default_factory=list)
    after: set[int] = field(default_factory=set)


def graph_of_traces(traces: list[ChakraTrace], groups: Groups | None = None) -> TaskGraph:
    """Read traces as a graph.

    The n-th collective of a process group in one rank's file is the n-th in the files of its other ranks.

    Parameters
    ----------
    traces : list of ChakraTrace
        One per rank.
    groups : dict of str to list of int, optional
        Ranks of the process groups; of one that is not there, the ranks whose files name it.

    Raises
    ------
    InputError
        If ranks disagree about a collective, a message has one end, or ranks wait for each other.
    """
    drafts: list[_TaskDraft] = []
    shared: dict[tuple[object, ...], int] = {}
    seen: dict[int, int] = defaultdict(int)  # of each draft, how many ranks do it
    members = _members(traces, groups or {})
    for rank, trace in enumerate(traces):
        count: dict[tuple[object, ...], int] = defaultdict(int)
        number: dict[int, int] = {}
        for node in trace.nodes:
            key, draft = _draft(rank, node, members)
            place = shared.get((*key, count[key]), len(drafts)) if key else len(drafts)
            if key:
                shared[*key, count[key]] = place
                count[key] += 1
            if place == len(drafts):
                drafts.append(draft)
            elif (drafts[place].operation, drafts[place].size) != (draft.operation, draft.size):
                raise InputError(
                    f"rank {rank}: node {node.number}, {node.name!r:.60}, is not what the other ranks do there"
                )
            else:
                drafts[place].resources += draft.resources
                drafts[place].duration = max(drafts[place].duration, draft.duration)
            seen[place] += 1
            number[node.number] = place
        for node in trace.nodes:
            drafts[number[node.number]].after |= {number[w] for w in (*node.control, *node.data)}
    for place, draft in enumerate(drafts):
        if draft.group and seen[place] != len(draft.group):
            raise InputError(
                f"{draft.operation} {draft.name!r:.60} is done by {seen[place]} of {len(draft.group)} ranks"
            )
    return _graph(drafts)


def _graph(drafts: list[_TaskDraft]) -> TaskGraph:
    waits = [draft.after for draft in drafts]
    order = sorted_after(waits)
    if order is None:
        raise deadlock(waits, lambda n: f"{drafts[n].operation or 'node'} {drafts[n].name!r:.60}")
    place = {n: i for i, n in enumerate(order)}
    return TaskGraph(tuple(
        Task(d.name, tuple(dict.fromkeys(d.resources)), d.duration, d.operation, d.group, d.size, d.priority,
             tuple(sorted(place[w] for w in d.after))) for d in (drafts[n] for n in order)
    ))  # fmt: skip


def _members(traces: list[ChakraTrace], groups: Groups) -> dict[str, tuple[int, ...]]:
    ranks_of: dict[str, dict[int, None]] = defaultdict(dict)
    for rank, trace in enumerate(traces):
        for node in trace.nodes:
            if node.kind == COLLECTIVE:
                ranks_of[_group_name(node)][rank] = None
    for name in ranks_of:
        if name in groups and (max(groups[name]) >= len(traces) or not ranks_of[name].keys() <= set(groups[name])):
            raise InputError(f"the process group {name!r:.60} is {groups[name]}, and {list(ranks_of[name])} take part")
    return {name: tuple(groups.get(name, ranks)) for name, ranks in ranks_of.items()}


def _group_name(node: Node) -> str:
    return str(node.attributes.get("pg_name", ("", ""))[1])


def _draft(rank: int, node: Node, members: dict[str, tuple[int, ...]]) -> tuple[tuple[object, ...], _TaskDraft]:
    """Make a task of a node; the key is the same in the files of all ranks that do it."""
    if node.kind not in (METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLLECTIVE):
        raise InputError(f"rank {rank}: node {node.number} has the unknown type {node.kind}")
    time = nanoseconds(rank, node) / 1e9
    resource = str(node.attributes.get(RESOURCE, ("", "compute" if node.kind == COMP else "network"))[1])
    resources = [f"rank{rank}.{resource}"]
    _, priority = node.attributes.get("comm_priority", ("", 0))
    first = priority if isinstance(priority, int) else 0
    if node.kind in (COMP, MEM_LOAD, MEM_STORE):
        return (), _TaskDraft(node.name, duration=time, resources=resources, priority=first)
    if node.kind == METADATA:
        return (), _TaskDraft(node.name)
    # how long a message or a collective took when it was seen says nothing of another network
    extra = time if DURATION in node.attributes else 0.0
    size = float(whole_attribute(rank, node, "comm_size"))
    if node.kind in (SEND, RECV):
        sends = node.kind == SEND
        src, dst, tag = (whole_attribute(rank, node, name) for name in ("comm_src", "comm_dst", "comm_tag"))
        if (src if sends else dst) != rank or src == dst:
            raise InputError(f"rank {rank}: node {node.number} goes from {src} to {dst}")
        draft = _TaskDraft(node.name, "send", (src, dst), size, extra, first, resources if sends else [])
        return ("send", src, dst, tag), draft
    kind, name = whole_attribute(rank, node, "comm_type"), _group_name(node)
    if kind not in NAMES:
        raise InputError(f"rank {rank}: node {node.number} has comm_type {kind}; known: 0..9")
    return ("collective", name), _TaskDraft(node.name, NAMES[kind], members[name], size, extra, first, resources)


def traces_of_graph(graph: TaskGraph) -> tuple[list[ChakraTrace], Groups]:
    """Write a graph as traces.

    A graph of one worker, without messages from one rank to another, is what every rank does. Else each worker is one
    rank, which the number at the end of its name says.

    Returns
    -------
    list of ChakraTrace, dict of str to list of int
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


def _waits(graph: TaskGraph) -> list[set[int]]:
    """Tasks that each waits for, looking through those that take no time: ASTRA-sim would give them a nanosecond."""
    waits: list[set[int]] = []
    total = 0
    for task in graph.tasks:
        before: set[int] = set()
        for j in task.after:
            before |= waits[j] if _takes_no_time(graph.tasks[j]) else {j}
        waits.append(before)
        total += len(before)
        if total > MAX_WAITS:
            raise InputError(f"more than {MAX_WAITS} tasks wait for each other")
    return waits


def _check_ranks(graph: TaskGraph, waits: list[set[int]], rank_of: dict[str, int]) -> None:
    """Raise if a rank waits for what another one does: only messages and collectives go between ranks."""
    for task, waited in zip(graph.tasks, waits, strict=True):
        ranks = None if _takes_no_time(task) else _ranks(task, rank_of)
        for j in waited if ranks is not None else ():
            theirs = _ranks(graph.tasks[j], rank_of)
            if theirs is not None and ranks is not None and theirs.isdisjoint(ranks):
                other = graph.tasks[j].name
                raise InputError(f"task {task.name!r} waits for {other!r} of another rank, without a message")


def _workers(graph: TaskGraph) -> dict[str, int]:
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
    ranks = {rank_of[_worker(resource)] for resource in task.resources}
    if len(ranks) != 1:
        raise InputError(f"task {task.name!r} is done by {len(ranks)} workers, and must be by one")
    return ranks


def _trace(
    graph: TaskGraph, waits: list[set[int]], rank: int, rank_of: dict[str, int], names: dict[tuple[int, ...], str]
) -> ChakraTrace:
    nodes = []
    known: list[tuple[int, ...]] = []  # nodes of this rank that represent each task, or for what comes before it
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
    return ChakraTrace(TraceMetadata(VERSION), tuple(nodes))


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


def read_chakra_graph(path: str | Path) -> tuple[TaskGraph, tuple[str, ...]]:
    """Read the traces of all ranks, and the process groups beside them, as a graph; say where the groups are from."""
    groups = Path(f"{prefix_of(path)}{GROUPS}")
    if not groups.exists():
        return graph_of_traces(read_traces(path)), ()
    return graph_of_traces(read_traces(path), read_groups(groups)), (f"process groups are those of {groups}",)


def write_chakra_graph(graph: TaskGraph, path: str | Path) -> tuple[str, ...]:
    """Write a graph as traces, and its process groups beside them; say where the groups are."""
    traces, groups = traces_of_graph(graph)
    prefix = prefix_of(path)
    write_traces(traces, prefix, groups)
    return (f"process groups are in {prefix}{GROUPS}",) if groups else ()
