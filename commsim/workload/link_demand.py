"""What an iteration asks of a host's link over time: the phases that CASSINI and other schedulers take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commsim.core.errors import InputError
from commsim.core.operations import operation

from .sharing.periodic import GBPS, Phase
from .task_graph import Task
from .timeline import Timeline


def sent_by_each(task: Task) -> float:
    """Bytes that each member of a communication sends, by a collective of the kind that sends the least.

    An all-reduce of S bytes sends 2(n - 1)/n S, an all-gather or a reduce-scatter half of that, a message S.
    """
    if not task.operation or len(task.group) < 2:
        return 0.0
    return task.size * (1.0 if task.operation == "send" else operation(task.operation).busbw_factor(len(task.group)))


def link_phases(timeline: Timeline, rank: int = 0, gap: float = 0.0) -> tuple[Phase, ...]:
    """Phases in which a rank sends, each at its mean rate.

    Parameters
    ----------
    timeline : Timeline
        One iteration.
    rank : int
        Whose link; one GPU to a link.
    gap : float, s
        Phases that are no further apart are one. What touches always is.

    Returns
    -------
    tuple of Phase
        By time. Their bytes are all bytes that the rank sends.
    """
    spans: list[tuple[float, float, float]] = []
    order = sorted(range(len(timeline.start)), key=lambda i: (timeline.start[i], i))
    for i in order:
        task, start, end = timeline.graph.tasks[i], float(timeline.start[i]), float(timeline.end[i])
        n_bytes = sent_by_each(task) if rank in task.group else 0.0
        if not n_bytes or (task.operation == "send" and task.group[0] != rank):
            continue
        if spans and start <= spans[-1][1] + gap:
            before = spans.pop()
            start, end, n_bytes = before[0], max(before[1], end), n_bytes + before[2]
        spans.append((start, end, n_bytes))
    if any(end <= start for start, end, _ in spans):
        raise InputError("a communication takes no time, so that its rate has no bound; give a finite bandwidth")
    return tuple(Phase(start, end - start, n_bytes / (end - start)) for start, end, n_bytes in spans)


def job_row(name: str, n_gpus: int, period: float, phases: Sequence[Phase]) -> dict[str, Any]:
    """Make the job's entry in a ``jobs.json``, which :func:`commsim.workload.sharing.periodic.read_jobs` reads."""
    return {
        "job": name,
        "gpus": n_gpus,
        "iter_time_ms": period * 1e3,
        "phases": [
            {"offset_ms": p.offset * 1e3, "dur_ms": p.duration * 1e3, "rate_Gbps": p.rate / GBPS} for p in phases
        ],
    }
