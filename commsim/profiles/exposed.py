"""What of a re-timed step is waiting, and for which calls: exposed communication by process group and operation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commsim.training.timeline import TaskTimeline

from .graph_of_ranks import TracedGraph
from .rank import ProcessGroup


@dataclass(frozen=True, slots=True)
class RankWaits:
    """Waiting of the rank that waits the longest.

    Parameters
    ----------
    rank : int
        The rank.
    compute, exposed : float, s
        Seconds in which it computes, and in which it only waits for calls.
    late : float, s
        Seconds of the exposed ones in which the exchange had not begun, since another rank was late.
    by_task : mapping of int to float, s
        Exposed seconds of each exchange of the graph: of those that end before computation goes on, the last.
    """

    rank: int
    compute: float
    exposed: float
    late: float
    by_task: dict[int, float]


def waits_of(traced: TracedGraph, timeline: TaskTimeline) -> RankWaits:
    """Find the rank that waits the longest, and for what."""
    waits = [_of_rank(traced, timeline, rank) for rank in traced.traced]
    return max(waits, key=lambda waits: waits.exposed)


def _of_rank(traced: TracedGraph, timeline: TaskTimeline, rank: int) -> RankWaits:
    tasks, line = traced.graph.tasks, f"rank{rank}.compute"
    by_task: dict[int, float] = defaultdict(float)
    until, compute, late = 0.0, 0.0, 0.0
    for i, task in enumerate(tasks):
        if line not in task.resources:
            continue
        start, end = float(timeline.start[i]), float(timeline.end[i])
        awaited = [j for j in task.after if tasks[j].operation]
        if start > until and awaited:
            last = max(awaited, key=lambda j: (timeline.end[j], -j))
            by_task[last] += start - until
            late += max(0.0, float(timeline.start[last]) - until)
        until, compute = end, compute + task.duration
    own = [i for i, task in enumerate(tasks) if task.operation and rank in task.group]
    if own and float(timeline.end[last := max(own, key=lambda i: timeline.end[i])]) > until:
        by_task[last] += float(timeline.end[last]) - until  # what nothing waits for, the end of the step does
        late += max(0.0, float(timeline.start[last]) - until)
    return RankWaits(rank, compute, sum(by_task.values()), late, dict(by_task))


def rows_of(traced: TracedGraph, timeline: TaskTimeline, waits: RankWaits) -> list[dict[str, Any]]:
    """One row for each kind of exchange that the rank takes part in, those that expose the most first.

    Returns
    -------
    list of dict
        Group, operation, size, ranks, calls, mean seconds, exposed seconds.
    """
    kinds: dict[tuple[str, str, float, int], list[int]] = defaultdict(list)
    for i, (task, name) in enumerate(zip(traced.graph.tasks, traced.group_of, strict=True)):
        if task.operation and waits.rank in task.group:
            label = traced.groups.get(name, ProcessGroup(name)).label
            kinds[label, task.operation, task.size, len(task.group)].append(i)
    rows = []
    for (label, operation, size, n_ranks), places in kinds.items():
        exposed = sum(waits.by_task.get(i, 0.0) for i in places)
        rows.append({
            "group": label, "operation": operation, "size_B": size, "n_ranks": n_ranks, "calls": len(places),
            "time_s": _mean([float(timeline.end[i] - timeline.start[i]) for i in places]), "exposed_s": exposed,
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-float(row["exposed_s"]), str(row["group"]), str(row["operation"])))


def calls_of(traced: TracedGraph, timeline: TaskTimeline, waits: RankWaits) -> list[dict[str, Any]]:
    """One row for each exchange that the rank takes part in, in the order of their starts."""
    rows = []
    for i, (task, name) in enumerate(zip(traced.graph.tasks, traced.group_of, strict=True)):
        if task.operation and waits.rank in task.group:
            start, label = float(timeline.start[i]), traced.groups.get(name, ProcessGroup(name)).label
            rows.append({
                "collective": f"{label} {task.operation}", "operation": task.operation, "n_ranks": len(task.group),
                "size_B": task.size, "start_s": start, "time_s": float(timeline.end[i]) - start,
                "exposed_s": waits.by_task.get(i, 0.0),
            })  # fmt: skip
    return sorted(rows, key=lambda row: float(row["start_s"]))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
