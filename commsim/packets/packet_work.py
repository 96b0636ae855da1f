"""How much a simulation packet by packet has to do, estimated before it begins, and refused if too much."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from commsim.core.errors import InputError
from commsim.core.limits import expect, expect_bytes
from commsim.core.network import Network
from commsim.core.network_queries import partners
from commsim.core.schedule import Schedule
from commsim.core.units import format_time
from commsim.engine.flow import payload
from commsim.engine.flow_plan import FlowPlan
from commsim.packets.aggregated.packet_job import AggregationJob
from commsim.packets.codes import RCCC
from commsim.packets.links.queues import Fabric
from commsim.packets.transports.spraying import Spraying, over_path

# Seconds per packet and link on one core of a machine of 2024: 0.7 to 1.3 were measured.
PER_HOP = 1e-7
# The same for packets of messages and their answers: 1.1 to 1.6 were measured.
PER_ANSWERED_HOP = 1.5e-7
# Steps of the kernels for a packet on a link, or more.
STEPS = 100
# Credit takes as many packets as data and their answers: 15 in place of 8 on each link were measured.
CREDIT = 2.0
# Flows whose state fills the processor's cache: a hop then takes twice as long (4,096 flows 1.5 times, 16,384 2.1).
CACHED_FLOWS = 16384
# Packets on their way at once that no sensible run has, as a rough estimate; the simulation itself ends at fewer.
MAX_AT_ONCE = 2**24
# Bytes of a message with its route and state: a ring of 1,024 hosts took 240, a direct all-to-all on a star 1,600.
BYTES_OF_MESSAGE = 240
# Bytes of a packet's worth of elements where values are summed, and of what became of it at each worker.
BYTES_OF_CHUNK, BYTES_OF_RECEIPT = 8, 2


def expect_aggregation(network: Network, jobs: Sequence[AggregationJob], fabric: Fabric, *, values: bool) -> None:
    """Declare the work of simulating jobs, or refuse it.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    jobs : sequence of AggregationJob
        Jobs, at least one.
    fabric : Fabric
        Queues, which may mark packets.
    values : bool
        Whether real tensors are summed, and it is kept what each worker received.

    Raises
    ------
    InputError
        If packets are repeated so early that they pile up, or if the run would take too long, or too much memory.
    """
    check_repeats(network, jobs, fabric)
    hops = kept = 0.0
    for job in jobs:
        first_sent = packet_hops(job)
        kept += float(job.chunks().sum()) * (BYTES_OF_CHUNK + BYTES_OF_RECEIPT * len(job.workers))
        hops += first_sent * times_sent(network, job)
    if values:
        expect_bytes(kept, "what workers received", "a smaller --size, or --no-values")
    what = f"simulating {_rounded(hops)} packets, counted on each link"
    expect(hops * PER_HOP, what, "a smaller --size, fewer losses or fewer jobs")


def check_repeats(network: Network, jobs: Sequence[AggregationJob], fabric: Fabric) -> None:
    """Refuse jobs whose packets would be repeated for ever, or so early that they pile up.

    Parameters
    ----------
    network, jobs, fabric
        Same as in :func:`expect_aggregation`.

    Raises
    ------
    InputError
        If a buffer does not hold a message, or a timeout is shorter than what it waits for.
    """
    for job in jobs:
        _check_buffers(network, job)
        _check_timeout(network, job, has_marks=fabric.ecn_max > 0)


def _rounded(number: float) -> str:
    return f"{float(f'{number:.2g}'):g}"


def packet_hops(job: AggregationJob) -> float:
    """Count the packets that all links together carry for a job where none is repeated."""
    tree, per_message = job.trees[0], job.system.packets_per_message
    n_links = 2 * (sum(map(len, tree.worker_up)) + sum(map(len, tree.up)))
    return float(sum(-(-int(count) // per_message) * per_message for count in job.chunks()) * n_links)


def times_sent(network: Network, job: AggregationJob) -> float:
    """Estimate how often each packet is sent where links lose some.

    A worker repeats a message until the messages of all workers have arrived and the result has come back: with the
    chance q that all packets of a message arrive, one of n workers succeeds last, after about H(n) / q messages, and
    the answer comes after 1 / (q_up q_down).
    """
    system, n = job.system, len(job.workers)
    kept, back = np.log1p(-network.loss), partners(network)
    harmonic = math.log(n) + 0.58
    sends = 0.0
    for up in _ways_up(job):
        q_up, q_down = (system.packets_per_message * float(kept[links].sum()) for links in (up, back[up]))
        sends += 1.0 if q_up + q_down == 0 else harmonic * _inverse(q_up) + _inverse(q_up + q_down)
    return sends / n


def _inverse(log_chance: float) -> float:
    """How often something of this chance is tried; its logarithm may be far below what a number can be."""
    return math.exp(min(-log_chance, 700.0))


def _check_buffers(network: Network, job: AggregationJob) -> None:
    """Refuse queues into which the packets of a message, sent together, never fit: it would be repeated for ever."""
    system = job.system
    together = system.message_bytes - system.packet_bytes(0)  # one packet is being sent
    least = float(network.buffer[list(job.tree_links)].min(initial=math.inf))
    if system.packet_bytes(0) <= least < together:  # less is refused by the packet
        raise InputError(f"{system.name}: every buffer must hold a message of {system.packets_per_message} packets, "
                         f"{system.message_bytes} bytes, got {least:g}")  # fmt: skip


def _check_timeout(network: Network, job: AggregationJob, *, has_marks: bool) -> None:
    """Refuse timeouts by which packets pile up: with each window, those that wait grow by as much as it is repeated."""
    system = job.system
    if system.lossless:  # which never repeats
        return
    _check_round_trip(network, job)
    slowest = float(network.bandwidth[list(job.tree_links)].min(initial=math.inf))
    window = job.window * system.message_bytes / slowest
    n_windows = float(sum(job.messages())) / job.window
    if window <= system.rto or n_windows < 1:
        return
    at_once = math.log2(job.window * system.packets_per_message * len(job.workers))
    if at_once + _growth(job, window / system.rto, n_windows, has_marks=has_marks) > math.log2(MAX_AT_ONCE):
        raise InputError(
            f"{system.name}: an rto of {format_time(system.rto)} repeats packets faster than links send them, a window "
            f"of {job.window * system.packets_per_message} packets takes {format_time(window)}: a longer --rto, or a "
            "smaller window"
        )


def _growth(job: AggregationJob, excess: float, n_windows: float, *, has_marks: bool) -> float:
    """Return by how many powers of two the packets that wait grow, in windows that are repeated `excess` times.

    Switches do not sum what is repeated, so that a parameter server gets it of each worker. Marks shrink the window,
    perhaps until it is not repeated any more.
    """
    system, marks, growth = job.system, 0.0, 0.0
    copies = len(job.workers) if system.server else 1
    if not (system.ecn_window and has_marks):
        return n_windows * math.log2(excess * copies)
    while excess > 1 and n_windows > 0:
        growth += min(1.0, n_windows) * math.log2(excess * copies)
        n_windows -= 1.0
        marks += system.gain * (1.0 - marks)
        excess *= 1.0 - marks / 2.0
    return growth


def _check_round_trip(network: Network, job: AggregationJob) -> None:
    """Refuse timeouts by which each packet is sent so often before its answer can be there that copies pile up."""
    system = job.system
    trips = [2 * float(network.latency[links].sum()) for links in _ways_up(job)]
    per_worker = min(job.window, sum(job.messages())) * system.packets_per_message
    if per_worker * sum(trips) / system.rto > MAX_AT_ONCE:
        times = _rounded(max(trips) / system.rto)
        raise InputError(
            f"{system.name}: an rto of {format_time(system.rto)} repeats each packet {times} times "
            f"before an answer can be there, after {format_time(max(trips))}: a longer --rto, or less latency"
        )


def _ways_up(job: AggregationJob) -> list[list[int]]:
    """Links from each worker to the root of its tree."""
    tree, ways = job.trees[0], []
    for worker, leaf in zip(tree.worker_up, tree.leaf, strict=True):
        up, node = list(worker), leaf
        while tree.parent[node] >= 0:
            up += tree.up[node]
            node = tree.parent[node]
        ways.append(up)
    return ways


def expect_messages(schedule: Schedule) -> None:
    """Refuse a schedule whose messages alone, each with its route and state, do not fit into memory.

    Raises
    ------
    InputError
        If they do not.
    """
    n = schedule.n_transfers
    expect_bytes(n * BYTES_OF_MESSAGE, f"{n} messages of packets", "fewer ranks, or engine flow")


def expect_packets(plan: FlowPlan, sizes: ArrayLike, how: Spraying | None) -> None:
    """Declare the work of simulating messages, or refuse it.

    Parameters
    ----------
    plan : FlowPlan
        What runs where.
    sizes : float64[n_jobs] or float, bytes
        Size of each job's collective.
    how : Spraying, optional
        How packets are sent; its payload counts.

    Raises
    ------
    InputError
        If the run would take too long.
    """
    hops, n_links = answered_hops(plan, sizes, how), np.diff(plan.routes.first)
    missed = 1.0 + min(1.0, np.count_nonzero(n_links) / CACHED_FLOWS)
    what = f"simulating {_rounded(hops)} packets, counted on each link"
    expect(hops * missed * PER_ANSWERED_HOP, what, "a smaller size, or engine flow")


def answered_hops(plan: FlowPlan, sizes: ArrayLike, how: Spraying | None) -> float:
    """Return how many packets of messages there are, and of their answers, counted on each link.

    Parameters
    ----------
    plan, sizes, how
        Same as in :func:`expect_packets`.
    """
    how = how or over_path()
    packets = np.ceil(payload(plan, sizes) / how.payload)
    hops = 2 * float((packets * np.diff(plan.routes.first)[plan.connection_of]).sum())
    return hops * CREDIT if how.settled[0].kind == RCCC else hops


def steps_of(plan: FlowPlan | None, sizes: ArrayLike, jobs: Sequence[AggregationJob], how: Spraying) -> float:
    """Return the steps of the kernels of a run of messages beside jobs that switches aggregate.

    Parameters
    ----------
    plan, sizes, how
        Same as in :func:`expect_packets`; no plan for no messages.
    jobs : sequence of AggregationJob
        Jobs.
    """
    messages = answered_hops(plan, sizes, how) if plan is not None else 0.0
    return STEPS * (messages + sum(packet_hops(job) for job in jobs))
