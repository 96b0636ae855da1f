"""Closed forms of collectives, evaluated with the slowest path that their schedules use, where paths are alike enough.

A closed form has one path for all messages. Where some are much faster it would take the slowest for every hop: a ring
over two machines of 8 GPUs crosses between them twice, and its 30 rounds were 30 crossings. The time of paths that are
not alike lies between those of the fastest and of the slowest one, and above what any connection takes for its bytes;
where these are far apart there is no closed form, and the engine alpha-beta takes every message by its own path.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing, LogGP
from commsim.core.errors import NoClosedFormError
from commsim.core.network import Network
from commsim.core.registry import Entry
from commsim.core.result import Result
from commsim.core.schedule import REDUCE, Schedule
from commsim.core.units import format_time
from commsim.routing.pinned import find_connection_routes

from .alpha_beta import costs_alone
from .flow_job import FlowJob, chunk_bytes
from .message_costs import refuse_curves

# Least part of the time that the closed form gives which unequal paths are sure to take.
SURE = 0.8


def closed_form(
    entry: Entry[Any],
    network: Network,
    job: FlowJob,
    size: float,
    parameters: dict[str, Any],
    *,
    framing: Framing | None = None,
    routing: str | None = None,
    seed: int = 0,
) -> Result:
    """Evaluate a collective's closed form with the slowest path that its schedule uses.

    It is exact where all paths are alike and no link is shared: on a star. Elsewhere it is at most a quarter too high.

    Parameters
    ----------
    entry : Entry
        The collective.
    network : Network
        Network that carries the messages.
    job : FlowJob
        Its schedule and placement.
    size : float, bytes
        Size of the collective.
    parameters : dict of str to value
        Parameters with which the schedule was built.
    framing : Framing, optional
        How chunks are cut into packets, where every message is one chunk.
    routing, seed : str or None, int
        Same as in :func:`commsim.routing.routing.find_routes`.

    Raises
    ------
    InputError
        If the size is not positive and finite, the collective states none, the network has measured curves, or its
        paths are not alike.
    """
    refuse_curves(network, "a closed form takes messages that cost a line", "the engine flow or alpha-beta")
    cost = entry.metadata["cost"]
    if cost is None:
        only = "" if entry.metadata["bounds"] is None else ", only bounds (docs/collectives.md)"
        raise NoClosedFormError(f"{entry.name} has no closed form{only}; use engine flow or alpha-beta")
    chunk, n_ranks = chunk_bytes(job, size), job.schedule.n_ranks
    used, on_wire = used_paths(network, job, routing=routing, seed=seed), size
    slowest, fastest = used.slowest, used.fastest
    if framing is not None:
        on_wire = job.schedule.n_chunks * float(framing.on_wire(chunk))
        # headers are not added
        slowest, fastest = (dataclasses.replace(one, gamma=one.gamma * size / on_wire) for one in (slowest, fastest))
    time, sure = (float(cost(n_ranks, on_wire, one, **parameters)) for one in (slowest, fastest))
    sure = max(sure, used.longest(on_wire / job.schedule.n_chunks))
    if sure < SURE * time:
        raise NoClosedFormError(
            f"{entry.name}: its closed form takes all paths as the slowest ({format_time(time)}), and they are not "
            f"alike ({format_time(sure)} or more); use engine alpha-beta or flow"
        )
    return Result(entry.name, entry.metadata["operation"], "closed-form", n_ranks, size, time, time)


@dataclass(frozen=True, slots=True, eq=False)
class UsedPaths:
    """What messages cost on each connection.

    Parameters
    ----------
    costs : float64[n, 5]
        Columns of :func:`commsim.engine.alpha_beta.costs_alone`, s, s/byte, s, s, s/byte; at least one row.
    n_messages, n_chunks : float64[n]
        Messages and chunks that each connection carries.
    ports : int
        Connections that each rank has, where no two connections share a link; else 1.
    """

    costs: NDArray[np.float64]
    n_messages: NDArray[np.float64]
    n_chunks: NDArray[np.float64]
    ports: int = 1

    @property
    def slowest(self) -> LogGP:
        """Worst of each cost: what a closed form is evaluated with.

        Gamma is that of connections that reduce: a switch may add at the rate of its links where a rank, which only
        takes copies, would not.
        """
        return _link(self.ports, *self.costs.max(axis=0))

    @property
    def fastest(self) -> LogGP:
        """Lowest latency and highest rate of those that use links; what ends cost is that of the slowest."""
        overhead, slowest, _, receive, gamma = self.costs.max(axis=0)
        beta, latency = self.costs[self.costs[:, 1] > 0 if slowest else slice(None), 1:3].min(axis=0)
        return _link(self.ports, overhead, beta, latency, receive, gamma)

    def longest(self, chunk: float) -> float:
        """Time for which some connection is busy with its messages, one after the other: bytes of a chunk in, s out."""
        busy = self.n_messages * self.costs[:, 0] + self.n_chunks * chunk * self.costs[:, 1]
        return float(busy.max())


def _link(ports: int, overhead: float, beta: float, latency: float, receive: float, gamma: float) -> LogGP:
    return LogGP(L=latency, o=overhead + receive, B=1 / beta if beta else float("inf"), gamma=gamma, ports=ports)


def used_paths(network: Network, job: FlowJob, *, routing: str | None = None, seed: int = 0) -> UsedPaths:
    """Find what messages cost on each connection; a single one that costs nothing where there are none.

    Parameters
    ----------
    network, job, routing, seed
        Same as in :func:`closed_form`.
    """
    found = _connections(job.schedule)
    if not len(found):
        return UsedPaths(np.zeros((1, 5)), np.zeros(1), np.zeros(1))
    ends, channel = found[:, :2].astype(np.int32), found[:, 2]
    nodes = job.placement.nodes[ends]
    routes = find_connection_routes(network, job.placement, ends, channel, routing=routing, seed=seed)
    costs = costs_alone(network, nodes, routes, job.rate_cap)
    costs[:, 4] *= found[:, 3] > 0
    alone = len(routes.link) == len(np.unique(routes.link)) and bool((network.message_engines[nodes] == 1).all())
    ports = int(np.unique(ends[:, 0], return_counts=True)[1].min()) if alone else 1
    return UsedPaths(costs, found[:, 4].astype(np.float64), found[:, 5].astype(np.float64), ports)


def _connections(schedule: Schedule) -> NDArray[np.int64]:
    """Count what each connection carries, without expanding all blocks.

    Returns
    -------
    int64[n, 6]
        Source, destination, channel, messages that are reduced, messages, and chunks.
    """
    parts = [np.empty((0, 6), np.int64)]
    for block in schedule.blocks:
        moves = any(block.step[:2])
        weight = 1 if moves else block.times
        for number in range(block.times if moves else min(1, block.times)):
            row, one = schedule.repetitions(block, [number]), np.full(len(block.body), weight)
            columns = row["src"], row["dst"], row["channel"], weight * (row["op"] == REDUCE), one, weight * row["count"]
            parts.append(_summed(np.stack(columns, axis=1).astype(np.int64)))
    return _summed(np.concatenate(parts))


def _summed(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add the last three columns up over rows that are equal in the first three."""
    connection, number = np.unique(rows[:, :3], axis=0, return_inverse=True)
    sums = np.zeros((len(connection), 3), np.int64)
    np.add.at(sums, number.ravel(), rows[:, 3:])
    return np.concatenate((connection, sums), axis=1)
