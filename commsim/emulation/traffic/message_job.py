"""Messages under way as a job of the flow engine, and what jobs of collectives need there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.placement import Placement
from commsim.core.program import Program
from commsim.core.schedule import SCRATCH
from commsim.emulation.clock import seconds_of
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan

from .shared_resources import MESSAGES, N_CHANNELS
from .traffic_times import TrafficPart
from .under_way import PendingMessage

__all__ = ["message_job", "payload_of", "ready_times", "without_bytes"]


def message_job(messages: Sequence[PendingMessage], nodes: NDArray[np.int32]) -> FlowJob:
    """Return messages as transfers of one job, each chain with a channel of its own.

    Parameters
    ----------
    messages : sequence of PendingMessage
        Messages, at least one.
    nodes : int32[n_ranks]
        Node of each rank.
    """
    seats = dict[int, int]()
    place = []
    for message in messages:
        place.append(seats.get(message.dst, 0))
        seats[message.dst] = place[-1] + 1
    program = Program(len(nodes), 1, n_scratch=max(seats.values()))
    src, dst, chain = np.array([(m.src, m.dst, m.chain) for m in messages]).T
    program.copy(
        src=src, dst=dst, src_chunk=0, dst_chunk=np.array(place), dst_buffer=SCRATCH, channel=chain % N_CHANNELS
    )
    return FlowJob(program.build(), Placement(nodes), number=MESSAGES)


def ready_times(part: TrafficPart, plan: FlowPlan) -> NDArray[np.float64]:
    """Return when each connection may send its first message: that of a chain when its first message begins, s.

    Parameters
    ----------
    part : TrafficPart
        What is under way.
    plan : FlowPlan
        Its plan, of which the last job is that of the messages.

    Returns
    -------
    float64[n_connections]
    """
    ready = np.zeros(len(plan.connection))
    of = plan.connection_of[plan.transfers_of[-1]]
    start = [seconds_of(message.start - part.begin) for message in part.messages]
    ready[of[::-1]] = start[::-1]  # the first of each connection is written last
    return ready


def payload_of(job: FlowJob, size: float) -> NDArray[np.float64]:
    """Return the bytes of each transfer of a job."""
    if job.messages is not None:
        return job.messages(size)
    count = job.schedule.expand()["count"]
    return np.asarray(count * (size / job.schedule.n_chunks), np.float64)


def without_bytes(job: FlowJob) -> FlowJob:
    """Return a job whose messages are empty."""
    return dataclasses.replace(job, messages=lambda size: np.zeros(job.schedule.n_transfers))  # noqa: ARG005
