"""A timeline as trace events, which chrome://tracing and Perfetto draw."""

from __future__ import annotations

from typing import Any

from commsim.core.formats.trace_events import process_name, thread_name

from .timeline import Timeline


def chrome_trace(timeline: Timeline) -> dict[str, Any]:
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
