"""Flows that all start together, such as a direct all-to-all.

If they are of one size, one allocation of rates says when each of them ends: the fastest leave first, and the rates of
slower ones do not depend on them (see the sharing kernel), so nothing changes from the start to the end. If they are
not, rates change at every departure (see the departures kernel).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.core.schedule import REDUCE, Schedule
from commsim.engine.flow_job import FlowJob
from commsim.engine.results import chunk_bytes, not_negative, one_job_result
from commsim.engine.trace_files import Columns, TraceFile, keep_trace
from commsim.routing.message_engines import engines_of_nodes

from .bundles import Bundles, bundle_flows

__all__ = ["plan_simultaneous", "simulate_simultaneous"]

Times = NDArray[np.float64]
MAX_ADDRESSES = 2**27
# Beyond which this takes more memory than the expanded schedule should.
MAX_TRANSFERS = 2**24


def simulate_simultaneous(
    plan: SimultaneousPlan,
    size: float,
    *,
    starts: ArrayLike = 0.0,
    framing: Framing | None = None,
    trace: bool | TraceFile = False,
) -> Result | None:
    """Compute when each transfer ends.

    Parameters
    ----------
    plan : SimultaneousPlan
        Plan from :func:`commsim.engine.simultaneous.simultaneous.plan_simultaneous`.
    size, starts, framing, trace
        Same as in :func:`commsim.engine.flow.simulate_flows`.

    Returns
    -------
    Result or None
        None if the transfers that use links do not start together; or if they are of different sizes, and some are
        empty, capped, or sprayed over links that are not alike.

    Raises
    ------
    InputError
        If the size or a start is not legal.
    PhysicsError
        If a link would carry more than it can. This is a bug in commsim.
    """
    job, schedule, begun = plan.job, plan.job.schedule, plan.begun
    chunk = chunk_bytes(job, float(size))
    starts = np.broadcast_to(not_negative("start", starts), schedule.n_participants)
    alike = bool((starts == starts[0]).all())
    ready = starts[:1] if alike else np.unique(np.maximum(starts[begun.src], starts[begun.dst])[begun.crosses])
    if len(begun.crosses) and len(ready) > 1:
        return None
    if job.messages is None:
        payload = (
            (begun.count * chunk)[begun.row[begun.crosses]]
            if len(np.unique(begun.count)) > 1
            else begun.count[:1] * chunk
        )
    else:
        payload = not_negative("payload", job.messages(float(size)))[begun.crosses]
    n_bytes = (framing or Framing()).on_wire(payload)
    took = _took(plan, n_bytes)
    return None if took is None else _result(plan, float(size), starts, n_bytes, took, float(ready[:1].sum()), trace)


def _took(plan: SimultaneousPlan, n_bytes: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Find how long after its overhead each flow has left, or None."""
    if not len(plan.rate):
        return plan.rate
    if n_bytes[0] > 0 and (n_bytes == n_bytes[0]).all():
        return n_bytes[:1] / plan.rate
    if (n_bytes == 0).any() or plan.job.rate_cap < np.inf or (plan.bundles.share != 1).any():
        return None

    from .departures_kernel import simulate_departures

    first, link = plan.bundles.rows()
    used, number = np.unique(link, return_inverse=True)
    took, found = simulate_departures(plan.bundles.capacity[used], (first, number.astype(np.int32)), n_bytes, plan.rate)
    return took if found else None


def _result(
    plan: SimultaneousPlan,
    size: float,
    starts: Times,
    n_bytes: Times,
    took: Times,
    ready: float,
    trace: bool | TraceFile,
) -> Result:
    schedule, bundles = plan.job.schedule, plan.bundles
    sent = (ready + plan.overhead) + took
    done = sent + bundles.latency
    last = max(float(done.max(initial=0.0)), float(starts[plan.begun.src].max()), float(starts[plan.begun.dst].max()))
    return one_job_result(
        plan.network,
        schedule,
        size,
        entered=starts,
        last=last,
        begin=ready,
        carried=(bundles.link_bytes(n_bytes), float(np.broadcast_to(n_bytes, len(plan.begun.crosses)).sum())),
        counters={"events": 2.0 * schedule.n_transfers},
        trace=keep_trace(trace, schedule.n_transfers, _times(plan, starts, sent, done)),
    )


def _times(
    plan: SimultaneousPlan, starts: NDArray[np.float64], sent: NDArray[np.float64], done: NDArray[np.float64]
) -> Columns:
    begun = plan.begun
    flow = np.full(len(begun.src), -1)
    flow[begun.crosses] = np.arange(len(begun.crosses))
    if not len(begun.crosses):
        sent = done = np.zeros(1)

    def columns(which: NDArray[np.int64]) -> tuple[Times, Times, Times]:
        start = np.maximum(starts[begun.src[which]], starts[begun.dst[which]])
        at = flow[which]
        return start, np.where(at >= 0, sent[at], start), np.where(at >= 0, done[at], start)

    return columns


@dataclass(frozen=True, slots=True, eq=False)
class BegunTogether:
    """Transfers that wait for nothing, whatever routes they take.

    Parameters
    ----------
    src, dst, row : int32[n_transfers]
        Participants, and the row of the schedule's blocks put together that the transfer repeats.
    count : int64[n_rows]
        Chunks of each row's messages.
    crosses : int32[n_flows]
        Transfers that use links, by source, so that those which share a link are near to each other.
    nodes : (int32[n_flows], int32[n_flows])
        Sources and destinations of these in the network.
    channel : int32[n_flows]
        Channel of each of these.
    """

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    row: NDArray[np.int32]
    count: NDArray[np.int64]
    crosses: NDArray[np.int32]
    nodes: tuple[NDArray[np.int32], NDArray[np.int32]]
    channel: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class SimultaneousPlan:
    """Transfers that wait for nothing, and their rates.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : FlowJob
        What runs.
    begun : BegunTogether
        The transfers.
    bundles : Bundles
        Their routes.
    rate : float64[n_flows], bytes/s
        Max-min fair while all of them are under way.
    overhead : float, s
        Time until all ports are through with the overheads of all messages.
    """

    network: Network
    job: FlowJob
    begun: BegunTogether
    bundles: Bundles
    rate: NDArray[np.float64]
    overhead: float


def plan_simultaneous(
    network: Network,
    job: FlowJob,
    *,
    routing: str | None = None,
    seed: int = 0,
    begun: BegunTogether | None = None,
) -> SimultaneousPlan | None:
    """Lay out a schedule whose transfers all start together.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : FlowJob
        What runs.
    routing, seed : str, int
        Same as in :func:`commsim.routing.routing.find_routes`.
    begun : BegunTogether, optional
        What :func:`begin_together` found, where it is known already.

    Returns
    -------
    SimultaneousPlan or None
        None if some transfer waits for another, shares its connection, or has a cost of its own to receive or to
        reduce; or if ports and engines are not through with their overheads at the same time.
    """
    begun = begin_together(network, job) if begun is None else begun
    if begun is None:
        return None
    from .rates_kernel import fair_rates_of_flows

    src, dst = begun.nodes
    bundles = bundle_flows(network, src, dst, begun.channel, routing=routing, seed=seed)
    overhead = _overhead(network, src, bundles)
    if overhead is None:
        return None
    rate = fair_rates_of_flows(
        bundles.capacity, (bundles.first, bundles.link, bundles.share), bundles.bundle, bundles.head, job.rate_cap
    )
    return SimultaneousPlan(network, job, begun, bundles, rate, overhead)


def begin_together(network: Network, job: FlowJob) -> BegunTogether | None:
    """Return the transfers of a schedule that all start together; None where they do not, or have costs of their own.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    job : FlowJob
        What runs.
    """
    schedule = job.schedule
    job.placement.check(network, schedule.n_ranks, schedule.n_helpers)
    found = unrolled(schedule)
    if found is None:
        return None
    from commsim.core.data_order.dependencies_kernel import counting_order

    src, dst, row = found
    body = np.concatenate([block.body for block in schedule.blocks])
    channel = body["channel"].astype(np.int32)
    channel = channel[row] if (channel != channel[0]).any() else np.broadcast_to(channel[0], len(row))
    nodes = job.placement.nodes.astype(np.int32)
    where = nodes[src], nodes[dst]
    reduces = (body["op"] == REDUCE).any() and (network.gamma[nodes] > 0).any()
    if reduces or (network.recv_overhead[nodes] > 0).any() or shares_a_connection(schedule, src, dst, channel):
        return None
    crosses = np.flatnonzero(where[0] != where[1]).astype(np.int32)
    crosses = np.take(crosses, counting_order(where[0][crosses], network.n_nodes))
    apart = where[0][crosses], where[1][crosses]
    channel = channel[crosses] if channel.strides[0] else channel[: len(crosses)]
    return BegunTogether(src, dst, row, body["count"].astype(np.int64), crosses, apart, channel)


def _overhead(network: Network, src: NDArray[np.int32], bundles: Bundles) -> float | None:
    """Time after which all overheads are spent, if all ports and engines are done together.

    Messages that begin together at one port share it equally, so all n of them have spent theirs after n times o; and
    those at m engines after n / m times o.
    """
    if not len(src) or not network.overhead[src].any():
        return 0.0
    port = bundles.ports()
    if port is None:
        return None
    in_turn = np.bincount(port, minlength=len(bundles.capacity))[port].astype(np.float64)
    engine = bundles.engines(network, port)
    where = network if bundles.merged is None else bundles.merged.network
    np.maximum(in_turn, (np.bincount(engine, minlength=where.n_nodes) / engines_of_nodes(where))[engine], out=in_turn)
    times = in_turn * network.overhead[src]
    return float(times[0]) if (times == times[0]).all() else None


def unrolled(schedule: Schedule) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None:
    """Source, destination and row of each transfer, if none waits for another."""
    n_addresses = schedule.n_participants * schedule.n_addresses
    if (
        not 0 < schedule.n_transfers <= MAX_TRANSFERS
        or n_addresses > MAX_ADDRESSES
        or any(block.n_fences for block in schedule.blocks)
    ):
        return None

    from .unroll_kernel import unroll

    n_scratch = max(1, schedule.n_scratch)
    n_chunks = np.array([schedule.n_chunks, schedule.n_chunks, n_scratch])
    sizes = schedule.n_ranks, n_chunks, schedule.buffer_offsets, schedule.n_addresses
    kind: type[np.signedinteger] = np.int8 if schedule.n_hops < 128 else np.int32
    writer: NDArray[np.signedinteger] = np.full(n_addresses, -1, kind)
    src, dst = (np.empty(schedule.n_transfers, np.int32) for _ in range(2))
    rows = []
    for reads in (False, True):
        hop = done = n_rows = 0
        for block in schedule.blocks:
            n = len(block.body) * block.times
            repetitions = block.times, block.first, block.n_hops, block.xor
            out = src[done : done + n], dst[done : done + n]
            if not unroll(block.body, repetitions, block.step, sizes, hop, reads, writer, out):
                return None
            if not reads:
                rows.append(np.tile(np.arange(n_rows, n_rows + len(block.body), dtype=np.int32), block.times))
            hop, done, n_rows = hop + block.n_hops * block.times, done + n, n_rows + len(block.body)
    return src, dst, np.concatenate(rows)


def shares_a_connection(
    schedule: Schedule, src: NDArray[np.int32], dst: NDArray[np.int32], channel: NDArray[np.int32]
) -> bool:
    """Whether two transfers have source, destination and channel in common: then one follows the other."""
    n, n_channels = schedule.n_participants, int(channel.max()) + 1
    if len(src) > n * n * n_channels:
        return True
    connection = src.astype(np.int64)
    for size, part in ((n, dst), (n_channels, channel)):
        connection *= size
        connection += part
    if n * n * n_channels > 8 * MAX_ADDRESSES:
        return len(np.unique(connection)) < len(connection)
    seen = np.zeros(n * n * n_channels, np.bool_)
    seen[connection] = True
    return int(np.count_nonzero(seen)) < len(connection)
