"""Tasks between messages: spans of time that wait for messages and for each other, and that messages wait for.

A task is a message within a host, which crosses no link and takes its duration to be added where it arrives: what the
kernels know of messages that wait, are complete, and let others begin holds for computation, too.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.engine.packet.aggregated.traffic_state import MESSAGE_ROW
from commsim.engine.packet.hosts.work import Paths, Successors, Work
from commsim.engine.packet.packet_state import LONGEST, PS
from commsim.routing.routing import Routes


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """What takes time and sends nothing.

    Parameters
    ----------
    duration : float64[n_tasks], s
        Time of each task from when nothing it waits for is left.
    before, after : int64[m]
        Each `after` begins when `before` is complete. Numbers below n_messages are messages; tasks follow them.

    Raises
    ------
    InputError
        If a duration is negative, or longer than the engine can count.
    """

    duration: NDArray[np.float64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.duration) and not 0 <= self.duration.min() <= self.duration.max() <= LONGEST:
            raise InputError(f"a task takes 0 to {LONGEST:g} s, got {self.duration.min()} to {self.duration.max()} s")


def work_with_tasks(work: Work, tasks: Tasks) -> Work:
    """Lay out tasks behind the messages of a work, each as a message of a flow of its own."""
    n_flows, n_messages, n = len(work.src), len(work.message), len(tasks.duration)
    message = np.zeros(n_messages + n, MESSAGE_ROW)
    message[:n_messages] = work.message
    rows = message[n_messages:]
    rows["start"] = rows["sent"] = rows["done"] = -1
    rows["flow"], rows["end"] = n_flows + np.arange(n), 1
    message["waiting"] += np.bincount(tasks.after, minlength=len(message)).astype(np.int32)
    adding = work.adding if len(work.adding) else np.zeros(n_messages, np.int64)
    none, within = np.zeros(n, np.int32), work.of_flow[-1] + 1 + np.arange(n)
    return dataclasses.replace(
        work,
        src=np.concatenate((work.src, none)),
        dst=np.concatenate((work.dst, none)),
        ready=np.concatenate((work.ready, np.zeros(n))),
        job=np.concatenate((work.job, none)),
        rank=np.concatenate((work.rank, none.astype(np.uint8))),
        message=message,
        queue=np.concatenate((work.queue, n_messages + np.arange(n, dtype=np.int32))),
        of_flow=np.concatenate((work.of_flow, within)),
        successors=_joined(work.successors, tasks, len(message)),
        adding=np.concatenate((adding, np.rint(tasks.duration * PS).astype(np.int64))),
        node=np.concatenate((work.node, (work.n_nodes + np.arange(n)).astype(np.int32))),
        n_nodes=work.n_nodes + n,
        paths=None if work.paths is None else _no_paths(work.paths, n),
        rule=np.concatenate((np.broadcast_to(np.array(work.rule, np.uint8), n_flows), none.astype(np.uint8))),
    )


def _joined(successors: Successors, tasks: Tasks, n: int) -> Successors:
    """Put what waits for each message of a work, and for each message and task, into one table."""
    first, code = successors
    before = np.concatenate((np.repeat(np.arange(len(first) - 1), np.diff(first)), tasks.before))
    order = np.argsort(before, kind="stable")
    codes = np.concatenate((code, (2 * tasks.after + 1).astype(np.int32)))[order]
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(before, minlength=n)))), codes


def _no_paths(paths: Paths, n: int) -> Paths:
    """Add flows that cross no link."""

    def longer(routes: Routes) -> Routes:
        first = np.concatenate((routes.first, np.full(n, routes.first[-1])))
        return dataclasses.replace(routes, first=first, latency=np.concatenate((routes.latency, np.zeros(n))))

    return Paths(
        longer(paths.there), longer(paths.back), np.concatenate((paths.window, np.ones(n))),
        np.concatenate((paths.turns, np.ones(n, np.int64))), np.concatenate((paths.cap, np.full(n, np.inf))),
    )  # fmt: skip
