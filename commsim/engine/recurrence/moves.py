"""Rounds of any shape: every transfer once, in program order, with no event queue and no graph of what waits for what.

A transfer starts when what it reads has been written, what it overwrites has been written and read, its connection is
free and earlier stages are complete. All of these come earlier in program order, so one pass over the transfers finds
every time, if each has its links to itself or shares them in step: with others of its hop that start and end when it
does. Whether that was so is seen on the way. Transfers that overlap in time must not ask for more of a link than it
has, and groups that share must be in step. Then each has a link that is full and on which none gets more, so
these are the max-min fair rates, and the flow engine's times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.data_order.dependencies import cut_cells
from commsim.core.jit import Records
from commsim.core.network import Network
from commsim.core.schedule import REDUCE
from commsim.engine.flow_job import FlowJob
from commsim.engine.job_connections import JobConnections, ends_of
from commsim.engine.ways.costs import MAX_MOVES

from .connection_costs import (
    ConnectionCosts,
    LockstepGroups,
    find_connection_costs,
    lockstep_groups,
    scale_for,
    shared_resources,
)

# One transfer: chunk intervals that it reads and writes; an interval is a run of chunks that no transfer cuts.
MOVE = np.dtype(
    [
        ("connection", np.int32), ("stage", np.int32),
        ("read", np.int32), ("read_end", np.int32), ("write", np.int32), ("write_end", np.int32),
        ("reduces", np.bool_),
    ],
    align=True,
)  # fmt: skip
# One connection; `unit` is the reduction unit that it might share, or -1.
CONNECTION = np.dtype(
    [
        ("src", np.int32), ("dst", np.int32), ("unit", np.int32), ("unit_seen", np.int32),
        ("overhead", np.int64), ("latency", np.int64), ("ready", np.int64),
        ("per_byte", np.float64), ("gamma", np.float64),  # ticks per byte
        ("free", np.int64), ("last", np.int64),  # when its last message had left, and was complete
    ],
    align=True,
)  # fmt: skip
# Intervals on a resource that may overlap: when the one before had ended, when these end, their parts in all.
CLUSTER = np.dtype([("since", np.int64), ("busy", np.int64), ("part", np.float64), ("number", np.int32)], align=True)


@dataclass(frozen=True, slots=True, eq=False)
class ProgramMoves:
    """Transfers in program order, and their connections.

    Parameters
    ----------
    job : FlowJob
        What runs.
    costs : ConnectionCosts
        Its connections.
    move : MOVE[n_transfers], hop : int64[n_hops + 1], count : int32[n_transfers]
        Transfers, where each hop begins, and the chunks of each.
    n_intervals : int
        Runs of chunks that no transfer cuts, of all participants.
    groups : LockstepGroups
        Groups of transfers of one hop that share links.
    shared : bool[n_resources]
        What connections could overload, if all of them sent at once.
    """

    job: FlowJob
    costs: ConnectionCosts
    move: Records
    hop: NDArray[np.int64]
    count: NDArray[np.int32]
    n_intervals: int
    groups: LockstepGroups
    shared: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class MoveTimes:
    """When everything happened; start, sent and done are empty unless they were asked for."""

    last: float
    start: NDArray[np.float64]
    sent: NDArray[np.float64]
    done: NDArray[np.float64]


def plan_moves(
    network: Network, job: FlowJob, *, routing: str | None, seed: int, shared: JobConnections | None = None
) -> ProgramMoves | None:
    """Lay out all transfers.

    Parameters
    ----------
    network, job, routing, seed, shared
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.

    Returns
    -------
    ProgramMoves or None
        None if they are too many, receiving costs something, or transfers of one hop share links at different rates.
    """
    schedule = job.schedule
    if schedule.n_transfers > MAX_MOVES:
        return None
    of_job = shared or JobConnections(network, job, routing, seed)
    transfers = of_job.transfers
    connection, lead = of_job.numbered if shared else _in_order(*of_job.numbered)
    reduces = transfers["op"] == REDUCE
    some_reduce = np.bincount(connection, weights=reduces, minlength=len(lead)) > 0
    ends, channel = ends_of(transfers, lead)
    costs = find_connection_costs(network, job, ends, channel, some_reduce, routing=routing, seed=seed, shared=shared)
    if costs is None:
        return None
    hop = np.concatenate((np.flatnonzero(np.diff(transfers["hop"], prepend=-1)), [len(transfers)]))
    shared_by = shared_resources(costs)
    groups = lockstep_groups(costs, connection, hop, shared_by)
    if groups is None:
        return None
    move = np.empty(len(transfers), MOVE)
    move["connection"], move["stage"], move["reduces"] = connection, transfers["stage"], reduces
    n_intervals = cut_cells(schedule, transfers, move)
    return ProgramMoves(job, costs, move, hop, transfers["count"].copy(), n_intervals, groups, shared_by)


def _in_order(connection: NDArray[np.int32], lead: NDArray[np.intp]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Renumber connections in the order of their first transfers, so that rows of one hop stand together in memory."""
    leads = np.zeros(len(connection), bool)
    leads[lead] = True
    number = np.cumsum(leads, dtype=np.int32) - np.int32(1)
    return number[lead][connection], np.flatnonzero(leads)


def simulate_moves(
    moves: ProgramMoves, n_bytes: NDArray[np.float64], starts: NDArray[np.float64], *, keep: bool = False
) -> MoveTimes | None:
    """Find all times.

    Parameters
    ----------
    moves : ProgramMoves
        Moves from :func:`plan_moves`.
    n_bytes : float64[n_transfers], bytes
        Size of each transfer on the connection, headers included.
    starts : float64[n_participants], s
        Time at which each participant enters.
    keep : bool
        Whether the times of every transfer are kept.

    Returns
    -------
    MoveTimes or None
        None if a link might have been shared.
    """
    from .recurrence_kernel import longest_chain, simulate_in_order

    costs, connection, n = moves.costs, moves.move["connection"], len(moves.move)
    pace = moves.groups.pace
    cost = (costs.overhead + costs.latency)[connection] + n_bytes * (
        pace + costs.gamma[connection] * moves.move["reduces"]
    )
    chain = longest_chain(moves.move, moves.hop, cost, len(costs.ends))
    scale = scale_for(float(starts.max()) + chain)
    longest = n if keep else int(np.diff(moves.hop).max(initial=0))
    times = (np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(longest, np.int64))
    fenced = any(block.n_fences for block in moves.job.schedule.blocks)
    shares = bool(moves.shared.any())
    last, stopped = simulate_in_order(
        (moves.move, moves.hop, n_bytes),
        _connection_table(moves, starts, scale),
        (pace * scale, moves.groups.group, np.full((moves.groups.n_groups, 2), -1)),
        costs.rows,
        (np.zeros(costs.n_resources * shares, CLUSTER), np.zeros(len(costs.part) * shares, np.int32)),
        (np.zeros(moves.n_intervals, np.int64), np.zeros(moves.n_intervals, np.int64)),
        np.zeros((3, moves.job.schedule.n_participants if fenced else 0), np.int64),
        times,
    )
    if stopped >= 0:
        return None
    start, sent, done = (t / scale if keep else np.empty(0) for t in times)
    return MoveTimes(last / scale, start, sent, done)


def _connection_table(moves: ProgramMoves, starts: NDArray[np.float64], scale: float) -> Records:
    """Lay out the connections for the kernel, in ticks."""
    costs = moves.costs
    connection = np.zeros(len(costs.ends), CONNECTION)
    connection["src"], connection["dst"] = costs.ends[:, 0], costs.ends[:, 1]
    connection["unit"] = -1
    adds = np.flatnonzero(costs.unit >= 0)
    adds = adds[moves.shared[costs.unit[adds]]]
    connection["unit"][adds] = costs.unit[adds]
    ready = starts[costs.ends].max(axis=1, initial=0.0)
    connection["ready"] = np.floor(ready * scale)  # so that what takes no time does not end late
    connection["overhead"], connection["latency"] = np.rint(costs.overhead * scale), np.rint(costs.latency * scale)
    connection["per_byte"], connection["gamma"] = costs.per_byte * scale, costs.gamma * scale
    return connection
