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
from commsim.packets.aggregated.traffic_state import MESSAGE_ROW
from commsim.packets.event_rows import LONGEST, PS
from commsim.packets.hosts.work import FlowWork, Successors, receivers
from commsim.packets.packet_rows import FLOW_ROW


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


def with_tasks(work: FlowWork, tasks: Tasks) -> FlowWork:
    """Lay out tasks behind the messages of a work, each as a message of a flow of its own; all are of one job."""
    n_flows, n_messages, numbers = len(work.flow), len(work.message), np.arange(len(tasks.duration))
    message = np.concatenate((work.message, np.zeros(len(numbers), MESSAGE_ROW)))
    rows = message[n_messages:]
    rows["flow"], rows["end"] = n_flows + numbers, 1
    message["waiting"] += np.bincount(tasks.after, minlength=len(message)).astype(np.int32)
    flow = np.concatenate((work.flow, np.zeros(len(numbers), FLOW_ROW)))
    ends = flow[n_flows:]
    ends["message"], ends["end"], ends["local"], ends["turns"] = n_messages + numbers, n_messages + numbers + 1, True, 1
    flow["job"] = 0
    queue = np.concatenate((work.queue, ends["message"]))
    node = np.concatenate((work.receiver["node"], work.n_nodes + numbers))
    adding = work.adding if len(work.adding) else np.zeros(n_messages, np.int64)
    return dataclasses.replace(
        work, flow=flow, receiver=receivers(flow, message, queue, node), message=message, queue=queue,
        successors=_joined(work.successors, tasks, len(message)),
        adding=np.concatenate((adding, np.rint(tasks.duration * PS).astype(np.int64))),
        n_nodes=work.n_nodes + len(numbers), n_jobs=1,
    )  # fmt: skip


def _joined(successors: Successors, tasks: Tasks, n: int) -> Successors:
    """Put what waits for each message of a work, and for each message and task, into one table."""
    first, code = successors
    before = np.concatenate((np.repeat(np.arange(len(first) - 1), np.diff(first)), tasks.before))
    order = np.argsort(before, kind="stable")
    codes = np.concatenate((code, (2 * tasks.after + 1).astype(np.int32)))[order]
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(before, minlength=n)))), codes
