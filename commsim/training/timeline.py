"""Timelines: when each task of a graph ran, as trace events, and as link demand over time (phases of a jobs.json)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.trace_events import process_name, thread_name
from commsim.core.operations import operation
from commsim.core.value import Value, freeze

from .sharing.periodic import GBPS, RING, JobPhase, is_at_end

if TYPE_CHECKING:
    from .task_graph import Task, TaskGraph


# How tasks of the optimiser are called.
UPDATES = ("optimiser", "update ")


@dataclass(frozen=True, slots=True, eq=False)
class TaskTimeline(Value):
    """When each task started and ended.

    Parameters
    ----------
    graph : TaskGraph
        What was done.
    start, end : float64[n_tasks], s
        Start and end of each task, from the start of the iteration.
    """

    graph: TaskGraph
    start: NDArray[np.float64]
    end: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            object.__setattr__(self, name, freeze(getattr(self, name), np.float64, (len(self.graph.tasks),), name))

    @property
    def iteration_time(self) -> float:
        """Seconds until the last task has ended."""
        return float(self.end.max())

    @property
    def exposed_communication(self) -> float:
        """Seconds of communication that no computation of the same worker hides, of the worker with the most.

        A worker is what is before the last dot of a resource's name. What has no computation of its own, such as a
        link that workers share, counts only where no worker computes at all.
        """
        computing, sending = self._by_worker(communicates=False), self._by_worker(communicates=True)
        workers = [worker for worker in sending if worker in computing] or list(sending)
        alone = (
            length_of_spans(sending[w] + computing.get(w, [])) - length_of_spans(computing.get(w, [])) for w in workers
        )
        return max(alone, default=0.0)

    def busy(self, resource: str) -> float:
        """Seconds in which `resource` was taken."""
        return float(
            sum(self.end[i] - self.start[i] for i, t in enumerate(self.graph.tasks) if resource in t.resources)
        )

    @property
    def optimizer_time(self) -> float:
        """Seconds in which a worker updates parameters."""
        tasks = zip(self.graph.tasks, (self.end - self.start).tolist(), strict=True)
        return float(sum(seconds for task, seconds in tasks if task.name.startswith(UPDATES)))

    def row(self) -> dict[str, Any]:
        """Return the JSON row of a graph; its scaling is against an iteration whose communication is all hidden."""
        time, exposed = self.iteration_time, self.exposed_communication
        scaling = (time - exposed) / time if time else 1.0
        return {"iteration_s": time, "exposed_comm_s": exposed, "scaling": scaling, "tasks": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """One row per task, for JSON; those of computations have no operation, group and size."""
        return [self._row(i, task) for i, task in enumerate(self.graph.tasks)]

    def _row(self, i: int, task: Task) -> dict[str, Any]:
        row: dict[str, Any] = {"task": task.name, "resources": list(task.resources)}
        row |= {"start_s": float(self.start[i]), "end_s": float(self.end[i])}
        if task.operation:
            row |= {"operation": task.operation, "group": list(task.group), "size_B": task.size}
        return row

    def _by_worker(self, *, communicates: bool) -> dict[str, list[tuple[float, float]]]:
        """Spans of each worker's computations, or of its communications."""
        spans: dict[str, list[tuple[float, float]]] = {}
        for i, task in enumerate(self.graph.tasks):
            if bool(task.operation) == communicates:
                for worker in {resource.rpartition(".")[0] or resource for resource in task.resources}:
                    spans.setdefault(worker, []).append((float(self.start[i]), float(self.end[i])))
        return spans


def length_of_spans(spans: Sequence[tuple[float, float]]) -> float:
    """Seconds that the spans cover together."""
    covered, until = 0.0, -np.inf
    for start, end in sorted(spans):
        if end > until:
            covered += end - max(start, until)
            until = end
    return covered


def chrome_trace(timeline: TaskTimeline) -> dict[str, Any]:
    """Make a JSON object of complete events: a process per worker, a thread per resource, times in microseconds.

    A task of several resources is drawn on each; one of none is left out.
    """
    names = list(dict.fromkeys(resource for task in timeline.graph.tasks for resource in task.resources))
    workers = list(dict.fromkeys(_worker(name) for name in names))
    events = [process_name(i, worker) for i, worker in enumerate(workers)]
    for tid, name in enumerate(names):
        events.append(thread_name(workers.index(_worker(name)), tid, name))
    for row in timeline.rows():
        for name in row["resources"]:
            event = {"name": row["task"], "ph": "X", "ts": row["start_s"] * 1e6}
            event |= {"dur": (row["end_s"] - row["start_s"]) * 1e6, "cat": row.get("operation", "compute")}
            event |= {"pid": workers.index(_worker(name)), "tid": names.index(name)}
            if "operation" in row:
                event["args"] = {"size_B": row["size_B"], "ranks": len(row["group"])}
            events.append(event)
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _worker(resource: str) -> str:
    return resource.rpartition(".")[0] or resource


def sent_by_each(task: Task) -> float:
    """Bytes that each member of a communication sends, by a collective of the kind that sends the least.

    An all-reduce of S bytes sends 2(n - 1)/n S, an all-gather or a reduce-scatter half of that, a message S.
    """
    if not task.operation or len(task.group) < 2:
        return 0.0
    return task.size * (1.0 if task.operation == "send" else operation(task.operation).busbw_factor(len(task.group)))


def sent_by_rank(rank: int, sent: Callable[[Task], float] = sent_by_each) -> Callable[[Task], float]:
    """Return the bytes that one rank sends in a communication, where `sent` is what each member does."""

    def n_bytes(task: Task) -> float:
        sends = task.group[:1] if task.operation == "send" else task.group
        return sent(task) if rank in sends else 0.0

    return n_bytes


def link_phases(
    timeline: TaskTimeline,
    rank: int = 0,
    gap: float = 0.0,
    sent: Callable[[Task], float] | None = None,
    beside: Sequence[tuple[float, float]] | None = None,
) -> tuple[JobPhase, ...]:
    """Phases in which something is sent over a link, each at its mean rate.

    Parameters
    ----------
    timeline : TaskTimeline
        One iteration.
    rank : int
        Rank whose computation runs beside the phases.
    gap : float, s
        Phases that are no further apart are one. What touches always is.
    sent : callable
        Function from a task to its bytes on the link. Default: the least that the rank sends.
    beside : sequence of (float, float), s
        Spans of the computation that runs beside the phases. Default: that of the rank's worker.

    Returns
    -------
    tuple of JobPhase
        By time. Their bytes are all bytes of the link. What the rank's worker computes from a phase's start on, up to
        the end of what began before the phase ended, overlaps it.
    """
    sent = sent_by_rank(rank) if sent is None else sent
    spans: list[tuple[float, float, float]] = []
    order = sorted(range(len(timeline.start)), key=lambda i: (timeline.start[i], i))
    for i in order:
        task, start, end = timeline.graph.tasks[i], float(timeline.start[i]), float(timeline.end[i])
        n_bytes = sent(task)
        if not n_bytes:
            continue
        if spans and start <= spans[-1][1] + gap:
            before = spans.pop()
            start, end, n_bytes = before[0], max(before[1], end), n_bytes + before[2]
        spans.append((start, end, n_bytes))
    if any(end <= start for start, end, _ in spans):
        raise InputError("a communication takes no time, so that its rate has no bound; give a finite bandwidth")
    if not spans:
        return ()
    computing = computing_of(timeline, rank) if beside is None else beside
    following = [*(start for start, _, _ in spans[1:]), timeline.iteration_time]
    phases = []
    for (start, end, n_bytes), then in zip(spans, following, strict=True):
        hidden = hidden_beside(computing, start, end)
        phases.append(JobPhase(start, end - start, n_bytes / (end - start), min(start + hidden, then) - start))
    return tuple(phases)


def hidden_beside(computing: Sequence[tuple[float, float]], start: float, end: float) -> float:
    """Seconds from the start of a communication to the end of what is computed beside it, of spans of computation."""
    return max((b for a, b in computing if a < end and b > start), default=start) - start


def busiest_rank(timeline: TaskTimeline, n_ranks: int) -> int:
    """Return which of the first ranks sends most bytes in an iteration; of equal ones the first."""
    sent = np.zeros(n_ranks)
    for task in timeline.graph.tasks:
        senders = task.group[:1] if task.operation == "send" else task.group
        for rank in senders:
            if rank < n_ranks:
                sent[rank] += sent_by_each(task)
    return int(sent.argmax())


def computing_of(timeline: TaskTimeline, rank: int) -> list[tuple[float, float]]:
    """Spans of the computations of the worker that takes part in all communications of a rank, if there is one."""
    tasks = [task for task in timeline.graph.tasks if rank in task.group]
    workers = set.intersection(*({_worker(name) for name in task.resources} for task in tasks))
    return [
        (float(timeline.start[i]), float(timeline.end[i]))
        for i, task in enumerate(timeline.graph.tasks)
        if not task.operation and workers & {_worker(name) for name in task.resources}
    ]


def job_row(name: str, n_gpus: int, period: float, phases: Sequence[JobPhase]) -> dict[str, Any]:
    """Make the job's entry in a ``jobs.json``, which :func:`commsim.training.sharing.periodic.read_jobs` reads."""
    return {
        "job": name,
        "gpus": n_gpus,
        "iter_time_ms": _ms(period) or period * 1e3,  # one that is shorter than the digits kept is not 0
        "phases": [
            {"offset_ms": _ms(period if is_at_end(p, period) else p.offset)}
            | _traffic(p)
            | ({"overlap_ms": _ms(p.overlap)} if p.overlap else {})
            for p in phases
        ],
    }


def _traffic(phase: JobPhase) -> dict[str, Any]:
    """Return the bytes of a phase of demand, with groups unless all ranks are one ring; else its time and rate."""
    if not phase.is_demand:
        return {"dur_ms": _ms(phase.duration) or phase.duration * 1e3, "rate_Gbps": phase.rate / GBPS}
    groups = {"groups": [list(one) for one in phase.groups]} if phase.groups else {}
    return {"bytes": _bytes_of(phase)} | groups | ({} if phase.pattern == RING else {"pattern": phase.pattern})


def _bytes_of(phase: JobPhase) -> float:
    """Bytes of a phase of demand with the fewest digits that are read as the same phase."""
    short = (float(f"{phase.n_bytes:.{digits}g}") for digits in (15, 16))
    return next((one for one in short if one / phase.rate == phase.duration), phase.n_bytes)


def _ms(seconds: float) -> float:
    """Milliseconds without the last digits, which are noise of the conversion."""
    return round(seconds * 1e3, 12)
