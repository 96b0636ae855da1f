"""The packet engine for ordinary collectives: every message cut into packets, over a transport, on real queues.

A transfer's `sent` is when its last packet has first left its host, and what waits for that may overwrite its data
then: a sender keeps what it may have to repeat. `done` is when its receiver has all packets in order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError, PhysicsError
from commsim.core.result import Result
from commsim.engine.flow import job_results, not_negative, payload
from commsim.engine.flow_plan import FlowPlan, FlowTimes

from . import packet_state as s
from .fabric import PS, Fabric
from .message_plan import message_tables
from .packet_physics import check_packets
from .simulate import play, watch
from .transport import ROCE, Transport, Window

PACKETS_PER_EVENT = 4


@dataclass(frozen=True, slots=True, eq=False)
class MessageRun:
    """What happened.

    Parameters
    ----------
    results : tuple of Result
        One per job; `link_bytes` has what its data packets and acknowledgements put on each link, repeated ones too.
        Counters of what the packets met with are of all jobs together.
    times : FlowTimes
        Of every transfer of the plan.
    series : SAMPLE_ROW[n]
        Bytes in queues over time, when asked for.
    taps : TAP_ROW[n]
        Packets that left the tapped links, when asked for.
    tables : Tables
        All state at the end.
    cpu : float, s
        Of the simulation proper.
    """

    results: tuple[Result, ...]
    times: FlowTimes
    series: NDArray[np.void]
    taps: NDArray[np.void]
    tables: s.Tables
    cpu: float


def simulate_packets(
    plan: FlowPlan,
    sizes: ArrayLike,
    *,
    transport: Transport | None = None,
    fabric: Fabric | None = None,
    seed: int = 0,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool = False,
) -> tuple[Result, ...]:
    """Simulate all jobs of a plan together; the parameters are those of :func:`run_messages`.

    Returns
    -------
    tuple of Result
        One per job.
    """
    return run_messages(
        plan, sizes, transport=transport, fabric=fabric, seed=seed, starts=starts, framing=framing, trace=trace
    ).results


def run_messages(
    plan: FlowPlan,
    sizes: ArrayLike,
    *,
    transport: Transport | None = None,
    fabric: Fabric | None = None,
    seed: int = 0,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool = False,
    tapped: Sequence[int] = (),
    sample_every: float = 0.0,
) -> MessageRun:
    """Simulate all jobs of a plan together, and keep all that was recorded.

    Parameters
    ----------
    plan : FlowPlan
        What runs where. Every wire is a flow over one path, its acknowledgements take the path back.
    sizes : float64[n_jobs] or float, bytes
        Size of each job's collective; its chunks are equal parts of it.
    transport : Transport, optional
        How flows send; an ideal window unless given.
    fabric : Fabric, optional
        Queues, marks, pauses and losses; what the transport assumes unless given, with the network's own buffers
        and losses.
    seed : int
        Of losses and marks.
    starts : float64[n_participants] or float, s
        When each participant, numbered through all jobs, enters its collective.
    framing : Framing, optional
        How messages are cut into packets; RoCE's 4,096 and 82 bytes unless given.
    trace : bool
        Whether results keep the times of every transfer.
    tapped : sequence of int
        Links whose packets are recorded.
    sample_every : float, s
        Interval of the series; 0 for none.

    Raises
    ------
    InputError
        If the plan needs what this engine does not have, a number is out of its range, or packets of a transport
        that never repeats them were dropped.
    PhysicsError
        If the result contradicts capacity or causality, or the run cannot end though nothing was dropped.
    """
    transport = transport or Window()
    framing = framing or ROCE
    fabric = fabric or transport.fabric(float(plan.network.bandwidth.max(initial=1.0)))
    starts = np.broadcast_to(not_negative("start", starts), plan.n_participants)
    n_bytes = payload(plan, sizes)
    tables = message_tables(plan, n_bytes, starts, framing, transport, fabric, seed)
    watch(tables, tapped, sample_every)
    tables, cpu = _play(tables)
    times = _times(tables)
    check_packets(plan, times, tables)
    results = _with_counters(plan, tables, job_results(plan, times, sizes, starts, trace, "packet"))
    clock = tables.clock
    return MessageRun(results, times, tables.sample[: clock[s.N_SAMPLES]], tables.tap[: clock[s.N_TAPPED]], tables, cpu)


def _play(tables: s.Tables) -> tuple[s.Tables, float]:
    """Run to the end. Returns the tables and the CPU seconds taken.

    Raises
    ------
    InputError
        If packets were dropped and are not repeated.
    PhysicsError
        If nothing can happen any more.
    """
    from .run_kernel import start_flows

    tables, finished, cpu = play(tables, PACKETS_PER_EVENT, start_flows)
    if not finished:
        clock = tables.clock
        left = f"{clock[s.N_UNFINISHED]} messages were never complete"
        if clock[s.DROPPED_TAIL]:
            raise InputError(
                f"{left}: the transport never repeats a packet, and {clock[s.DROPPED_TAIL]} were dropped at full "
                "buffers; pause earlier, or give larger buffers"
            )
        if tables.link["paused"].any():
            raise InputError(f"{left}: links that are paused (PFC) wait for each other in a cycle")
        raise PhysicsError(f"deadlock: {left}")
    return tables, cpu


def _times(tables: s.Tables) -> FlowTimes:
    message, way = tables.message, tables.transport[0]
    n_packets = message["end"] - message["first"]
    return FlowTimes(
        ((n_packets - 1) * float(way["packet_size"]) + message["last_size"]).astype(np.float64),
        message["start"] / PS,
        message["sent"] / PS,
        message["done"] / PS,
        tables.flow["ready"] / PS,
        int(tables.clock[s.N_EVENTS]),
    )


def _with_counters(plan: FlowPlan, tables: s.Tables, results: tuple[Result, ...]) -> tuple[Result, ...]:
    clock, link, n_flows = tables.clock, tables.link, len(tables.flow)
    counters = {
        "packet_hops": clock[s.N_HOPS],
        "packets": tables.message["end"].astype(np.float64).sum() - tables.message["first"].astype(np.float64).sum(),
        "retransmissions": clock[s.RETRANSMITTED],
        "duplicates": clock[s.DUPLICATES],
        "drops_loss": clock[s.DROPPED_LOSS],
        "drops_full": clock[s.DROPPED_TAIL],
        "marks": clock[s.MARKED],
        "out_of_order": clock[s.OUT_OF_ORDER],
        "timeouts": clock[s.N_TIMEOUTS],
        "peak_queue_bytes": link["peak"].max(initial=0),
    }
    stream = np.repeat(np.arange(2 * n_flows), tables.stream["end"] - tables.stream["begin"])
    job = plan.job_of_connection[stream % n_flows] if n_flows else stream
    n_bytes = tables.route["n_bytes"].astype(np.float64)
    done = []
    for j, result in enumerate(results):
        data, acks = (job == j) & (stream < n_flows), (job == j) & (stream >= n_flows)
        carried = [np.bincount(tables.route["link"][w], n_bytes[w], len(link)).astype(np.float64) for w in (data, acks)]
        more = {"data_link_bytes": carried[0].sum(), "ack_link_bytes": carried[1].sum()}
        done.append(
            dataclasses.replace(
                result,
                link_bytes=carried[0] + carried[1],
                counters={**result.counters, **{k: float(v) for k, v in (counters | more).items()}},
            )
        )
    return tuple(done)
