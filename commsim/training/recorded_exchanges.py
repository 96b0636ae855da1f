"""Exchanges of one rank in a timeline, with all groups that do the same: what a job's demand is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .cost_by_simulation import SEND
from .timeline import computing_of, hidden_beside

if TYPE_CHECKING:
    from commsim.placement.starts.demand import RecordedExchange

    from .cost_by_simulation import NetworkCosts
    from .task_graph import Task
    from .timeline import TaskTimeline


def rank_of_link(timeline: TaskTimeline, costs: NetworkCosts, link: int) -> int:
    """Return the rank that sends most in the communications that use a link; of equal ones the first."""
    sent = defaultdict[int, float](float)
    for task in timeline.graph.tasks:
        if link in costs.link_bytes(task):
            for rank in _senders(task):
                sent[rank] += costs.sent_by_each(task)
    on = {rank: n for rank, n in sent.items() if _is_near(costs, rank, link)} or sent
    return min(on, key=lambda rank: (-on[rank], rank))


def exchanges_of(timeline: TaskTimeline, costs: NetworkCosts, rank: int) -> list[RecordedExchange]:
    """Return what one rank sends, with the groups of all ranks that do the same."""
    from commsim.placement.starts.demand import RecordedExchange, pattern_of

    tasks = timeline.graph.tasks
    sending = [i for i, task in enumerate(tasks) if len(task.group) > 1 and rank in _senders(task)]
    if not sending:
        return []
    known: dict[Task, RecordedExchange] = {}
    computing = computing_of(timeline, rank)
    same = _groups_by_kind(timeline)
    found = []
    for i in sending:
        start, end = float(timeline.start[i]), float(timeline.end[i])
        task = replace(tasks[i], name="", resources=(), after=(), priority=0, duration=0.0)
        if task not in known:
            groups = _disjoint(task, same[_kind(task)])
            links = _all_bytes(costs, task, groups)
            seeds = tuple(costs.hash_seed(replace(task, group=group)) for group in groups)
            known[task] = RecordedExchange(0.0, 0.0, (pattern_of(task.operation), groups), costs.sent_by_each(task),
                                           link_bytes=links, seeds=seeds)  # fmt: skip
        found.append(replace(known[task], start=start, end=end, hidden=hidden_beside(computing, start, end)))
    return found


def _senders(task: Task) -> tuple[int, ...]:
    return task.group[:1] if task.operation == SEND else task.group


def _is_near(costs: NetworkCosts, rank: int, link: int) -> bool:
    """Whether a link begins at the machine of a rank, or at its node."""
    network, node = costs.network, costs.nodes[rank]
    begin = int(network.src[link])
    return begin == node or (network.machine[begin] >= 0 and network.machine[begin] == network.machine[node])


def _kind(task: Task) -> tuple[object, ...]:
    """Return what communications of groups that are alike have in common."""
    step = task.group[1] - task.group[0]
    return task.operation, task.size, task.parts, len(task.group), step


def _groups_by_kind(timeline: TaskTimeline) -> dict[tuple[object, ...], list[tuple[int, ...]]]:
    found: dict[tuple[object, ...], dict[tuple[int, ...], None]] = {}
    for task in timeline.graph.tasks:
        if len(task.group) > 1:
            found.setdefault(_kind(task), {})[task.group] = None
    return {kind: list(groups) for kind, groups in found.items()}


def _disjoint(task: Task, same: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Return the group of a communication, and others that have no rank in common with it, nor with each other."""
    groups, taken = [task.group], set(task.group)
    for group in same:
        if taken.isdisjoint(group):
            groups.append(group)
            taken.update(group)
    return tuple(sorted(groups))


def _all_bytes(costs: NetworkCosts, task: Task, groups: tuple[tuple[int, ...], ...]) -> Mapping[int, float]:
    """Bytes of all groups on each link."""
    total = defaultdict[int, float](float)
    for group in groups:
        for link, n_bytes in costs.link_bytes(replace(task, group=group)).items():
            total[link] += n_bytes
    return total
