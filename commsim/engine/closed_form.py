"""Closed forms of collectives, evaluated with the slowest path that their schedules use."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing, LogGP
from commsim.core.errors import NoClosedFormError
from commsim.core.network import Network
from commsim.core.registry import Entry
from commsim.core.result import Result
from commsim.core.schedule import REDUCE, Schedule
from commsim.routing.pinned import find_connection_routes

from .alpha_beta import costs_alone
from .flow_job import FlowJob
from .message_costs import refuse_curves
from .results import chunk_bytes


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

    It is exact where all paths are alike and no link is shared: on a star.

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
        If the size is not positive and finite, the collective states none, or the network has measured curves.
    """
    refuse_curves(network, "a closed form takes messages that cost a line", "the engine flow or alpha-beta")
    cost = entry.metadata["cost"]
    if cost is None:
        only = "" if entry.metadata["bounds"] is None else ", only bounds (docs/collectives.md)"
        raise NoClosedFormError(f"{entry.name} has no closed form{only}; use engine flow or alpha-beta")
    chunk, n_ranks = chunk_bytes(job, size), job.schedule.n_ranks
    link, on_wire = slowest_link(network, job, routing=routing, seed=seed), size
    if framing is not None:
        on_wire = job.schedule.n_chunks * float(framing.on_wire(chunk))
        link = dataclasses.replace(link, gamma=link.gamma * size / on_wire)  # headers are not added
    time = float(cost(n_ranks, on_wire, link, **parameters))
    return Result(entry.name, entry.metadata["operation"], "closed-form", n_ranks, size, time, time)


def slowest_link(network: Network, job: FlowJob, *, routing: str | None = None, seed: int = 0) -> LogGP:
    """Return the worst of each of L, o, B and gamma over the connections: what a closed form is evaluated with.

    Gamma is that of connections that reduce: a switch may add at the rate of its links where a rank, which only takes
    copies, would not.
    """
    ends, channel, reduces = _connections(job.schedule)
    if not len(ends):
        return LogGP()
    nodes = job.placement.nodes[ends]
    routes = find_connection_routes(network, job.placement, ends, channel, routing=routing, seed=seed)
    costs = costs_alone(network, nodes, routes, job.rate_cap)
    costs[:, 4] *= reduces
    overhead, beta, latency, receive, gamma = costs.max(axis=0)
    return LogGP(L=latency, o=overhead + receive, B=1 / beta if beta else float("inf"), gamma=gamma)


def _connections(schedule: Schedule) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]:
    """Return ends, channel, and whether anything is reduced, of each connection; without expanding all blocks."""
    connections = [np.empty((0, 4), np.int64)]
    for block in schedule.blocks:
        times = block.times if any(block.step[:2]) else min(1, block.times)
        rows = [schedule.repetition(block, number) for number in range(times)]
        fields = (np.stack([r["src"], r["dst"], r["channel"], r["op"] == REDUCE], axis=1) for r in rows)
        connections += [np.unique(f.astype(np.int64), axis=0) for f in fields]
    connection, number = np.unique(np.concatenate(connections)[:, :3], axis=0, return_inverse=True)
    reduces = np.bincount(number.ravel(), weights=np.concatenate(connections)[:, 3], minlength=len(connection)) > 0
    return connection[:, :2].astype(np.int32), connection[:, 2], reduces
