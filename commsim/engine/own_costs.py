"""Jobs that share a network, and see it with latencies, overheads and parts of links' rates of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records
from commsim.core.network import Network
from commsim.routing.routing import Routes

from .flow_state import FlowLinks, owners
from .flow_tables import lay_out_connections, lay_out_flows

# Part by which a rate of a job's own has to be below the link's to be a limit of its own.
SLACK = 1e-12
Table = Records
Tables = tuple[Table, FlowLinks, NDArray[np.float64]]
__all__ = ["OwnCosts", "with_own_costs"]


@dataclass(frozen=True, slots=True, eq=False)
class OwnCosts:
    """Connections of a job whose network has costs of its own.

    Parameters
    ----------
    job : Job
        Job, with its network.
    first : int
        Number of its first connection.
    nodes : int32[n, 2]
        Source and destination of each connection.
    weight : float64[n]
        Share of a full link that each gets relative to others.
    routes : Routes
        Route of each connection on the job's network.
    """

    job: Any
    first: int
    nodes: NDArray[np.int32]
    weight: NDArray[np.float64]
    routes: Routes


def with_own_costs(network: Network, own: Sequence[OwnCosts], tables: Tables, connection: Table) -> Tables:
    """Give jobs their own latencies, overheads and limits, which are resources that no other job uses.

    Parameters
    ----------
    network : Network
        Network that all jobs share; a job's own has the same nodes and links.
    own : sequence of OwnCosts
        Jobs with costs of their own.
    tables : (flow, flow_link, capacity)
        Tables that :func:`commsim.engine.flow_tables.lay_out_flows` returns for all jobs.
    connection : structured array
        Connections of all jobs; changed in place.

    Returns
    -------
    flow, flow_link, capacity
        Tables with the limits.
    """
    flow, flow_link, capacity = tables
    of_flows = owners(flow)
    rows: list[tuple[Table, Table, Table]] = [(of_flows, flow_link.resource, flow_link.shares)]
    part = [_parts(flow, np.arange(len(flow_link)), of_flows)]
    limits = [capacity]
    for one in own:
        n, where = len(one.nodes), one.job.network
        mine = lay_out_flows(where, [one.job], one.routes, one.nodes, np.zeros(n, np.intp), one.weight)
        costs = lay_out_connections(where, np.zeros(n, np.int64), one.nodes, one.routes, mine)
        for name in ("latency", "overhead_work", "receive_work"):
            connection[name][one.first : one.first + n] = costs[name]
        links = mine[1].resource
        is_slower = np.append(where.bandwidth < network.bandwidth * (1 - SLACK), False)
        kept = np.flatnonzero(is_slower[np.minimum(links, network.n_links)])
        used, number = np.unique(links[kept], return_inverse=True)
        of_flow = owners(mine[0])[kept]
        part.append(_parts(mine[0], kept, of_flow))
        of_all = one.first + np.where(of_flow < n, of_flow, len(connection) - n + of_flow)
        rows.append((of_all, sum(map(len, limits)) + number.ravel(), mine[1].shares[kept]))
        limits.append(where.bandwidth[used])
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    return *_sorted(flow, columns, np.concatenate(part)), np.concatenate(limits)


def _parts(flow: Table, flow_links: NDArray[np.intp], of: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return which flow links are before the data's (0), of the data and the port (1), and after the port (2)."""
    parts: NDArray[np.intp] = (flow_links >= flow["data"][of]).astype(np.intp) + (flow_links >= flow["port"][of])
    return parts


def _sorted(flow: Table, columns: Sequence[Table], part: NDArray[np.intp]) -> tuple[Table, FlowLinks]:
    """Sort flow links by flow, each in its order of parts, and say where those of each flow are."""
    order, n = np.lexsort((part, columns[0])), len(flow)
    of_flow, resource, share = (column[order] for column in columns)
    bounds = np.searchsorted(of_flow, np.arange(n + 1))
    flow["begin"], flow["end"] = bounds[:-1], bounds[1:]
    flow["data"] = bounds[:-1] + np.bincount(of_flow[part[order] < 1], minlength=n)
    flow["port"] = bounds[:-1] + np.bincount(of_flow[part[order] < 2], minlength=n)
    return flow, FlowLinks(resource.astype(np.int32), share)
