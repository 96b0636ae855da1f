"""Chakra traces as the graph of an iteration: the collectives of all ranks are brought together again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from commsim.core.errors import InputError
from commsim.files.bounded import read_json
from commsim.workload.task_graph import Graph, Task

from ..programs.matching import deadlock, sorted_after
from .messages import COLLECTIVE, COMP, MEM_LOAD, MEM_STORE, METADATA, NAMES, RECV, RESOURCE, SEND, Node
from .programs import DURATION, nanoseconds, whole
from .traces import Trace

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
class _Draft:
    """A task in the making: of several ranks, if it is a message or a collective."""

    name: str
    operation: str = ""
    group: tuple[int, ...] = ()
    size: float = 0.0
    duration: float = 0.0
    priority: int = 0
    resources: list[str] = field(default_factory=list)
    after: set[int] = field(default_factory=set)


def graph_of_traces(traces: list[Trace], groups: Groups | None = None) -> Graph:
    """Read traces as a graph.

    The n-th collective of a process group in one rank's file is the n-th in the files of its other ranks.

    Parameters
    ----------
    traces : list of Trace
        One per rank.
    groups : dict of str to list of int, optional
        Ranks of the process groups; of one that is not there, the ranks whose files name it.

    Raises
    ------
    InputError
        If ranks disagree about a collective, a message has one end, or ranks wait for each other.
    """
    drafts: list[_Draft] = []
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


def _graph(drafts: list[_Draft]) -> Graph:
    waits = [draft.after for draft in drafts]
    order = sorted_after(waits)
    if order is None:
        raise deadlock(waits, lambda n: f"{drafts[n].operation or 'node'} {drafts[n].name!r:.60}")
    place = {n: i for i, n in enumerate(order)}
    return Graph(tuple(
        Task(d.name, tuple(dict.fromkeys(d.resources)), d.duration, d.operation, d.group, d.size, d.priority,
             tuple(sorted(place[w] for w in d.after))) for d in (drafts[n] for n in order)
    ))  # fmt: skip


def _members(traces: list[Trace], groups: Groups) -> dict[str, tuple[int, ...]]:
    found: dict[str, dict[int, None]] = defaultdict(dict)
    for rank, trace in enumerate(traces):
        for node in trace.nodes:
            if node.kind == COLLECTIVE:
                found[_group_name(node)][rank] = None
    for name in found:
        if name in groups and (max(groups[name]) >= len(traces) or not found[name].keys() <= set(groups[name])):
            raise InputError(f"the process group {name!r:.60} is {groups[name]}, and {list(found[name])} take part")
    return {name: tuple(groups.get(name, ranks)) for name, ranks in found.items()}


def _group_name(node: Node) -> str:
    return str(node.attributes.get("pg_name", ("", ""))[1])


def _draft(rank: int, node: Node, members: dict[str, tuple[int, ...]]) -> tuple[tuple[object, ...], _Draft]:
    """Make a task of a node; the key is the same in the files of all ranks that do it."""
    if node.kind not in (METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLLECTIVE):
        raise InputError(f"rank {rank}: node {node.number} has the type {node.kind}, which is none")
    time = nanoseconds(rank, node) / 1e9
    resource = str(node.attributes.get(RESOURCE, ("", "compute" if node.kind == COMP else "network"))[1])
    mine = [f"rank{rank}.{resource}"]
    _, priority = node.attributes.get("comm_priority", ("", 0))
    first = priority if isinstance(priority, int) else 0
    if node.kind in (COMP, MEM_LOAD, MEM_STORE):
        return (), _Draft(node.name, duration=time, resources=mine, priority=first)
    if node.kind == METADATA:
        return (), _Draft(node.name)
    # how long a message or a collective took when it was seen says nothing of another network
    extra = time if DURATION in node.attributes else 0.0
    size = float(whole(rank, node, "comm_size"))
    if node.kind in (SEND, RECV):
        sends = node.kind == SEND
        src, dst, tag = (whole(rank, node, name) for name in ("comm_src", "comm_dst", "comm_tag"))
        if (src if sends else dst) != rank or src == dst:
            raise InputError(f"rank {rank}: node {node.number} goes from {src} to {dst}")
        draft = _Draft(node.name, "send", (src, dst), size, extra, first, mine if sends else [])
        return ("send", src, dst, tag), draft
    kind, name = whole(rank, node, "comm_type"), _group_name(node)
    if kind not in NAMES:
        raise InputError(f"rank {rank}: node {node.number} has comm_type {kind}; known: 0..9")
    return ("collective", name), _Draft(node.name, NAMES[kind], members[name], size, extra, first, mine)
