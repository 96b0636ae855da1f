"""What each transfer costs where the network has measured curves: its case, and its time in that case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.schedule import REDUCE

if TYPE_CHECKING:
    from commsim.core.network import Network

    from .flow_plan import FlowPlan

# Bits of a case.
TWO_WAY, RELAYED, REDUCES, LOCAL = 1, 2, 4, 8


@dataclass(frozen=True, slots=True, eq=False)
class MessageCosts:
    """What transfers cost in place of overhead, bytes over bandwidth, latency and gamma.

    Parameters
    ----------
    occupancy : float64[n_transfers], s
        How long each keeps the ports of its ends, without others.
    flight : float64[n_transfers], s
        How much later it is complete.
    reduction : float64[n_transfers], s
        The part of `flight` that a copy would not take.
    start : float64[n_jobs], s
        What the ranks of each job pay before their first message.
    """

    occupancy: NDArray[np.float64]
    flight: NDArray[np.float64]
    reduction: NDArray[np.float64]
    start: NDArray[np.float64]


def cases_of(
    connection_of: NDArray[np.int32],
    ends: NDArray[np.int32],
    op: NDArray[np.uint8],
    successors: tuple[NDArray[np.int64], NDArray[np.int32]],
    reads: tuple[NDArray[np.intp], NDArray[np.int32]],
) -> NDArray[np.uint8]:
    """Find the case of each transfer from the schedule only.

    A transfer goes two ways if, as far from the start as it, its receiver sends or its sender receives: a rank has one
    core, which then does both. It relays if it reads what another rank has sent.

    Parameters
    ----------
    connection_of : int32[n_transfers]
        Number of each transfer's connection.
    ends : int32[n_connections, 2]
        Participants.
    op : uint8[n_transfers]
        COPY or REDUCE.
    successors : (int64[n_transfers + 1], int32[m])
        Rows of 2 * successor + (1 when it waits for completion).
    reads : (intp[k], int32[k])
        Transfers that read, and which writers' data.

    Returns
    -------
    uint8[n_transfers]
        Sums of ``TWO_WAY``, ``RELAYED``, ``REDUCES`` and ``LOCAL``.
    """
    from .message_cases_kernel import levels

    n = len(connection_of)
    level = np.zeros(n, np.int32)
    levels(connection_of, *successors, level)
    src, dst = ends[connection_of].T.astype(np.int64)
    local = src == dst
    n_participants = int(ends.max(initial=0)) + 1
    busy = np.zeros((2, (int(level.max(initial=0)) + 1) * n_participants), np.bool_)  # that send, and that receive
    for row, who in zip(busy, (src, dst), strict=True):
        row[(level * np.int64(n_participants) + who)[~local]] = True
    two_way = busy[0][level * np.int64(n_participants) + dst] | busy[1][level * np.int64(n_participants) + src]
    readers, writers = reads
    relayed = np.zeros(n, np.bool_)
    relayed[readers[~local[writers]]] = True
    cases = TWO_WAY * two_way + RELAYED * relayed + REDUCES * (op == REDUCE)
    return np.where(local, LOCAL, cases).astype(np.uint8)


def measured_costs(plan: FlowPlan, n_bytes: NDArray[np.float64]) -> MessageCosts | None:
    """Look up every transfer on the curves of its network; None where that has none.

    Parameters
    ----------
    plan : FlowPlan
        Plan with the cases.
    n_bytes : float64[n_transfers], bytes
        Size of each message.
    """
    curves = plan.network.curves
    if curves is None:
        return None
    seconds, occupancy, as_copy = np.zeros((3, len(n_bytes)))
    start = np.zeros(len(plan.jobs))
    for j, (job, mine) in enumerate(zip(plan.jobs, plan.transfers_of, strict=True)):
        case, size = plan.cases[mine], n_bytes[mine]
        memory = float(size.sum() / max(1, plan.count[mine].sum())) * job.schedule.n_addresses
        start[j] = curves.start(memory) if len(case) else 0.0
        for c in np.unique(case):
            these = np.flatnonzero(case == c) + mine.start
            which = bool(c & TWO_WAY), bool(c & RELAYED), memory, n_bytes[these]
            step = "local" if c & LOCAL else "reduce" if c & REDUCES else "copy"
            seconds[these], occupancy[these] = curves.times(step, *which)
            as_copy[these] = seconds[these] if step != "reduce" else curves.times("copy", *which)[0]
    flight = seconds - occupancy
    return MessageCosts(occupancy, flight, np.clip(seconds - as_copy, 0.0, flight), start)


def added_by_protocol(plan: FlowPlan, n_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the network's protocol adds to each message.

    Parameters
    ----------
    plan : FlowPlan
        Plan with the connections.
    n_bytes : float64[n_transfers], bytes
        Size of each message.

    Returns
    -------
    float64[n_transfers], s
    """
    network = plan.network
    assert network.protocol is not None
    nodes = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends]
    overhead = network.overhead[nodes[:, 0]] + network.recv_overhead[nodes[:, 1]]
    of = plan.connection_of
    added = network.protocol.added(n_bytes, plan.routes.latency[of], overhead[of])
    crosses: NDArray[np.bool_] = np.diff(plan.routes.first) > 0
    return np.where(crosses[of], added, 0.0)


def started(plan: FlowPlan, starts: NDArray[np.float64], costs: MessageCosts | None) -> NDArray[np.float64]:
    """When both ends of each connection can send and receive.

    Parameters
    ----------
    plan : FlowPlan
        Plan with the connections.
    starts : float64[n_participants], s
        Time at which each participant enters its collective.
    costs : MessageCosts or None
        Costs with the time that a rank needs from there to its first message.

    Returns
    -------
    float64[n_connections], s
    """
    ready: NDArray[np.float64] = starts[plan.ends].max(axis=1, initial=0.0)
    return ready if costs is None else ready + costs.start[plan.job_of_connection]


def refuse_curves(network: Network, what: str, instead: str) -> None:
    """Raise where a network has curves, or protocols by size, and something only takes a line.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    what, instead : str
        What takes only a line, and what to use instead.

    Raises
    ------
    InputError
        If it has.
    """
    if network.curves is not None or network.protocol is not None:
        other = "has measured curves" if network.curves is not None else f"has protocols by size, of {network.software}"
        raise InputError(f"{what}, and {network.name} {other}; use {instead}")


def readers_of(
    first: NDArray[np.int64], pred: NDArray[np.int32], reads: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Pairs of a transfer and one whose data it reads.

    Parameters
    ----------
    first, pred : int64[n_transfers + 1], int32[m]
        Rows of predecessors.
    reads : bool[m]
        Whether each transfer's data are read.
    """
    rows = np.repeat(np.arange(len(first) - 1), np.diff(first))
    return rows[reads], pred[reads]
