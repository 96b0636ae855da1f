"""Tables of the flow kernel, made from schedules on a network, and their simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.data_order.dependencies import Dependencies
from commsim.core.errors import InputError
from commsim.core.jit import Records, expected_work
from commsim.core.limits import give_back_memory
from commsim.core.network import Network
from commsim.core.placement import joined
from commsim.routing.pinned import find_connection_routes
from commsim.routing.routing import Routes

from .flow_job import FlowJob
from .flow_state import FlowLinks, share_table
from .flow_tables import lay_out_connections, lay_out_flows
from .job_connections import STEPS, JobConnections
from .message_costs import cases_of, readers_of

Table = Records
# Transfers whose tables take tens of megabytes.
MANY = 1 << 18
JobTables = tuple[
    NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int32], Dependencies
]


@dataclass(frozen=True, slots=True, eq=False)
class FlowPlan:
    """All of a simulation that does not depend on sizes and starting times.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    jobs : tuple of FlowJob
        What runs on it, all at once.
    connection_of, waiting, op, count : int[n_transfers]
        Connection of each transfer, how many transfers it waits for, COPY or REDUCE, and its chunks.
    connection, flow, resource : structured arrays
        Tables of flow_state at the beginning.
    flow_link : FlowLinks
        What flows may use.
    queue : int32[n_transfers]
        Transfers by connection, in program order.
    successors : (int64[n_transfers + 1], int32[m])
        Rows of 2 * successor + (1 when it waits for completion).
    routes : Routes
        Route of each connection.
    transfers_of : tuple of slice
        Range of each job's transfers.
    job_of_connection : intp[n_connections]
        Job that each connection belongs to.
    ends : int32[n_connections, 2]
        Participants at the two ends, numbered through all jobs.
    channel, hashed_channel : int64[n_connections]
        Channel of each connection; and what ECMP hashed in its place, so that jobs take paths of their own.
    routing, seed : str, int
        Routing and seed with which the routes were found.
    cases : uint8[n_transfers]
        Curve that each transfer takes, see ``message_costs.cases_of``; empty where the network has no curves.
    """

    network: Network
    jobs: tuple[FlowJob, ...]
    connection_of: NDArray[np.int32]
    waiting: NDArray[np.int32]
    op: NDArray[np.uint8]
    count: NDArray[np.int32]
    connection: Table
    flow: Table
    flow_link: FlowLinks
    resource: Table
    queue: NDArray[np.int32]
    successors: tuple[NDArray[np.int64], NDArray[np.int32]]
    routes: Routes
    transfers_of: tuple[slice, ...]
    job_of_connection: NDArray[np.intp]
    ends: NDArray[np.int32]
    channel: NDArray[np.int64]
    hashed_channel: NDArray[np.int64]
    routing: str
    seed: int
    cases: NDArray[np.uint8]

    @property
    def n_participants(self) -> int:
        """Participants of all jobs together."""
        return sum(job.schedule.n_participants for job in self.jobs)


def plan_flows(
    network: Network,
    jobs: Sequence[FlowJob],
    *,
    routing: str | None = None,
    seed: int = 0,
    shared: JobConnections | None = None,
) -> FlowPlan:
    """Lay out the tables: dependencies, connections, routes and resources of all jobs together.

    Parameters
    ----------
    network : Network
        Network that carries the messages.
    jobs : sequence of FlowJob
        Jobs, at least one.
    routing, seed : str, int
        Same as in :func:`commsim.routing.routing.find_routes`.
    shared : JobConnections, optional
        Connections of the only job, number 0, where other ways of computing share them.

    Raises
    ------
    InputError
        Without a job, or if a placement does not fit, or two participants that must talk have no path.
    """
    if not jobs:
        raise InputError("a plan needs at least one job, got none")
    from commsim.core.data_order.dependencies_kernel import (
        READ_AFTER_WRITE,
        WRITE_AFTER_READ,
        counting_order,
        successor_rows,
    )

    begun = [shared or JobConnections(network, job, routing, seed) for job in jobs]
    parts = [_job_tables(of_job) for of_job in begun]
    of_jobs, ends_of_jobs, channels, ops, counts, waits = zip(*parts, strict=True)
    n_transfers = _offsets([len(of) for of in of_jobs])
    n_connections = _offsets([len(ends) for ends in ends_of_jobs])
    n_edges = _offsets([len(w.pred) for w in waits])
    participants = _offsets([job.schedule.n_participants for job in jobs])
    first = np.concatenate([np.zeros(1, np.int64), *(w.first[1:] + o for w, o in zip(waits, n_edges, strict=True))])
    pred = _renumbered([w.pred for w in waits], n_transfers)
    kind = waits[0].kind if len(waits) == 1 else np.concatenate([w.kind for w in waits])
    connection_of = _renumbered(of_jobs, n_connections)
    ends = np.concatenate([e + np.int32(o) for e, o in zip(ends_of_jobs, participants, strict=True)])
    placement = joined([job.placement for job in jobs])
    nodes = placement.nodes[ends]
    job_of_connection = np.repeat(np.arange(len(jobs)), [len(e) for e in ends_of_jobs])
    number = np.array([j if job.number is None else job.number for j, job in enumerate(jobs)])[job_of_connection]
    channel = np.concatenate(channels)
    hashed = channel + 1000 * number if number.any() else channel
    if shared is not None:
        routes = shared.routes
    else:
        routes = find_connection_routes(
            network, placement, ends, channel, routing=routing, seed=seed, hashed_channel=hashed
        )
    if len(connection_of) > MANY:
        give_back_memory()  # of the searches for dependencies and routes
    weight = np.concatenate([j.weight * j.schedule.weight_of(c) for j, c in zip(jobs, channels, strict=True)])
    tables = lay_out_flows(network, jobs, routes, nodes, job_of_connection, weight)
    n_on_connection = np.bincount(connection_of, minlength=len(ends))
    connection = lay_out_connections(network, n_on_connection, nodes, routes, tables)
    own = [job.network is not None for job in jobs]
    if any(own):
        from .own_costs import OwnCosts, with_own_costs

        seen = []
        for j in np.flatnonzero(own).tolist():
            job, mine = jobs[j], job_of_connection == j
            where = find_connection_routes(
                job.network or network, job.placement, ends_of_jobs[j], channels[j], routing=routing, seed=seed,
                hashed_channel=hashed[mine],
            )  # fmt: skip
            seen.append(OwnCosts(job, n_connections[j], nodes[mine], weight[mine], where))
        tables = with_own_costs(network, seen, tables, connection)
    flow, flow_link, capacity = tables
    op, cases = _joined(ops), np.empty(0, np.uint8)
    with expected_work(STEPS * (len(pred) + len(op)), first=True):
        successors = shared.successors if shared else successor_rows(first, pred, kind != WRITE_AFTER_READ)
        queue = begun[0].columns[2] if len(jobs) == 1 else counting_order(connection_of, len(ends))
        if network.curves is not None:
            cases = cases_of(connection_of, ends, op, successors, readers_of(first, pred, kind == READ_AFTER_WRITE))
    return FlowPlan(
        network,
        tuple(jobs),
        connection_of,
        np.diff(first).astype(np.int32),
        op,
        _joined(counts),
        connection,
        flow,
        flow_link,
        share_table(capacity, np.bincount(flow_link.resource, minlength=len(capacity))),
        queue,
        successors,
        routes,
        tuple(slice(o, o + len(of)) for o, of in zip(n_transfers, of_jobs, strict=True)),
        job_of_connection,
        ends,
        channel,
        hashed,
        routing or network.routing,
        seed,
        cases,
    )


def _job_tables(of_job: JobConnections) -> JobTables:
    """Return connections of transfers, their ends and channels, operations, counts and what is waited for."""
    op, count, _ = of_job.columns
    return of_job.numbered[0], *of_job.ends, op, count, of_job.waits


def _joined(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join the columns of all jobs; those of an only job are not copied."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _renumbered(numbers: Sequence[NDArray[np.int32]], offsets: Sequence[int]) -> NDArray[np.int32]:
    """Join the numbers of all jobs; those of an only job, of which there may be many millions, are not copied."""
    if len(numbers) == 1:
        return numbers[0]
    return np.concatenate([number + np.int32(o) for number, o in zip(numbers, offsets, strict=True)])


def _offsets(counts: list[int]) -> list[int]:
    return [0, *np.cumsum(counts)[:-1].tolist()]
