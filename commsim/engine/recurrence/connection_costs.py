"""Cost of a message on each connection when nothing shares its links, what it asks of each resource, and rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.network_queries import ports_are_few
from commsim.engine.flow_job import FULL
from commsim.routing.routing import Routes, find_routes

if TYPE_CHECKING:
    from commsim.engine.flow_job import FlowJob
    from commsim.engine.job_connections import JobConnections
    from commsim.routing.merge_switches import LinkBundles, MergedSwitches
    from commsim.routing.message_engines import CrowdedEngines

__all__ = ["ConnectionCosts", "find_connection_costs", "scale_for", "shared_resources"]

# Ticks by which intervals may overlap, 2^-47 of the run: rounding of the end of one and of the start of the next.
SLACK = 2**14
# Sprayed routes for which merging switches pays.
MANY = 1024
# Rows that are added up at once.
AT_ONCE = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class ConnectionCosts:
    """Wires of one job: what shares source, destination and channel.

    Parameters
    ----------
    n_links, n_resources : int
        Links of the network of the routes, which is the given one, or its merged form where messages are sprayed; and
        with them reduction units of nodes, and message engines of nodes.
    bundles : LinkBundles or None
        How its links were merged.
    ends : int32[n_connections, 2]
        Participants that send and receive.
    routes : Routes
        Route of each connection.
    overhead, latency : float64[n_connections], s
        What every message takes, before its bytes and after them.
    per_byte, gamma : float64[n_connections], s/byte
        What a byte takes on the way, and to be reduced.
    first, resource : int64[n_connections + 1], int32[m]
        Rows of what each connection uses while it sends: the links of its route, then a message engine where ports
        alone do not limit overheads. Engines are numbered by nodes, after the reduction units.
    part : float64[m]
        Part of the resource that the connection asks for, for each row.
    held : bool[m]
        Rows that are what overheads occupy, the sender's port and engine; empty without overhead.
    unit : int32[n_connections]
        Its receiver's reduction unit, numbered after the links; -1 where reducing takes no time.
    """

    n_links: int
    n_resources: int
    bundles: LinkBundles | None
    ends: NDArray[np.int32]
    routes: Routes
    overhead: NDArray[np.float64]
    latency: NDArray[np.float64]
    per_byte: NDArray[np.float64]
    gamma: NDArray[np.float64]
    first: NDArray[np.int64]
    resource: NDArray[np.int32]
    part: NDArray[np.float64]
    held: NDArray[np.bool_]
    unit: NDArray[np.int32]

    @property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
        """Rows of resources of each connection, and the parts that it asks for: what kernels take."""
        return self.first, self.resource, self.part


def find_connection_costs(
    network: Network,
    job: FlowJob,
    ends: NDArray[np.int32],
    channel: NDArray[np.int64],
    reduces: NDArray[np.bool_],
    *,
    routing: str | None,
    seed: int,
    shared: JobConnections | None = None,
) -> ConnectionCosts | None:
    """Route the connections and find their costs.

    Parameters
    ----------
    network, job, routing, seed, shared
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    ends, channel : int32[n_connections, 2], int64[n_connections]
        Participants, and channel, of each connection.
    reduces : bool[n_connections]
        Whether some message of it is reduced.

    Returns
    -------
    ConnectionCosts or None
        None where receiving costs something: the cost occupies the last link while the next message may arrive there.
    """
    nodes = job.placement.nodes[ends]
    network, nodes, routes, merged = merged_routes(network, nodes, channel, routing=routing, seed=seed, shared=shared)
    length = np.diff(routes.first)
    crosses = length > 0
    if (crosses & (network.recv_overhead[nodes[:, 1]] > 0)).any():
        return None
    most = network.bandwidth[routes.link] / routes.share
    rate = routes.rates(network)
    rate[crosses] = np.minimum(rate[crosses], job.rate_cap)
    part = np.repeat(rate, length)
    part /= most
    overhead = np.where(crosses, network.overhead[nodes[:, 0]], 0.0)
    held, first, resource = np.empty(0, bool), routes.first, routes.link
    if overhead.any():
        held = np.repeat(overhead > 0, length) & (network.src[routes.link] == np.repeat(nodes[:, 0], length))
        part[held] = 1.0
        if not ports_are_few(network):
            from commsim.routing.message_engines import crowded_engines

            engines = crowded_engines(network, nodes, routes, 0)
            if engines is not None:
                first, (resource, part, held) = _with_engines(network, routes, (part, held), engines)
    gamma = network.gamma[nodes[:, 1]]
    unit = np.where(reduces & (gamma > 0), network.n_links + nodes[:, 1], -1).astype(np.int32)
    per_byte = np.where(crosses, 1 / rate, 0.0)
    return ConnectionCosts(
        network.n_links, network.n_links + 2 * network.n_nodes, None if merged is None else merged.bundles,
        ends, routes, overhead, routes.latency, per_byte, gamma, first, resource, part, held, unit,
    )  # fmt: skip


def _with_engines(
    network: Network, routes: Routes, of_links: tuple[NDArray[np.float64], NDArray[np.bool_]], engines: CrowdedEngines
) -> tuple[NDArray[np.int64], tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]]:
    """Return the rows of links with one more of an engine, which a message holds as long as its port."""
    part, held = of_links
    node = engines.node[engines.number]
    at = routes.first[engines.connection + 1]
    resource = np.insert(routes.link, at, network.n_links + network.n_nodes + node)
    more = np.bincount(engines.connection + 1, minlength=len(routes.first))
    rows = resource, np.insert(part, at, 1.0 / network.message_engines[node]), np.insert(held, at, True)
    return routes.first + np.cumsum(more), rows


def merged_routes(
    network: Network,
    nodes: NDArray[np.int32],
    channel: NDArray[np.int64],
    *,
    routing: str | None,
    seed: int,
    shared: JobConnections | None = None,
) -> tuple[Network, NDArray[np.int32], Routes, MergedSwitches | None]:
    """Find the routes; sprayed ones on the merged network, where that makes each of them one path of bundles.

    Then each link of a bundle carries the same. What reaches a class of switches evenly leaves it evenly, since they
    have equally many links each, and reaches the next class evenly, for the same reason; and a source is a class of its
    own.

    Parameters
    ----------
    network, routing, seed, shared
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    nodes, channel : int32[n_connections, 2], int64[n_connections]
        Ends, and channel, of each connection.

    Returns
    -------
    network, nodes, routes, merged : Network, int32[n_connections, 2], Routes, MergedSwitches or None
        Of the network that the routes are on, and how it was merged.
    """
    if (routing or network.routing) == "spray" and len(nodes) >= MANY:
        from commsim.routing.merge_switches import merge_switches

        merged = merge_switches(network)
        ends = merged.node[nodes]
        routes = find_routes(merged.network, ends[:, 0], ends[:, 1], channel, routing="spray")
        if (routes.share == 1).all():
            return merged.network, ends, routes, merged
    if shared is not None:
        return network, nodes, shared.routes, None
    return network, nodes, find_routes(network, nodes[:, 0], nodes[:, 1], channel, routing=routing, seed=seed), None


def shared_resources(costs: ConnectionCosts) -> NDArray[np.bool_]:
    """Which resources connections could overload, if all of them sent at once.

    Returns
    -------
    bool[n_resources]
    """
    shared = np.zeros(costs.n_resources, np.bool_)
    asked = np.zeros(int(costs.resource.max(initial=-1)) + 1)
    for low in range(0, len(costs.resource), AT_ONCE):  # numbers of rows are cast to twice their size
        np.add.at(asked, costs.resource[low : low + AT_ONCE], costs.part[low : low + AT_ONCE])
    np.greater(asked, FULL, out=shared[: len(asked)])  # a column of sums is of tens of millions, and one at a time
    units = costs.unit[costs.unit >= 0]
    if units.size:
        more = np.bincount(units, minlength=len(asked)).astype(np.float64)
        more[: len(asked)] += asked
        np.greater(more, FULL, out=shared[: len(more)])
    return shared


@dataclass(frozen=True, slots=True, eq=False)
class LockstepGroups:
    """Messages that share links, if they are on their way together.

    Parameters
    ----------
    pace : float64[n], s/byte
        What a byte of each message takes.
    group : int32[n]
        Number of the group of each, -1 where it is in none.
    n_groups : int
        How many there are.
    """

    pace: NDArray[np.float64]
    group: NDArray[np.int32]
    n_groups: int


def lockstep_groups(
    costs: ConnectionCosts, connection: NDArray[np.int32], hop: NDArray[np.int64], shared: NDArray[np.bool_]
) -> LockstepGroups | None:
    """Find the groups in each hop; None where messages of a hop would share links at different rates.

    Parameters
    ----------
    costs : ConnectionCosts
        All connections.
    connection : int32[n], hop : int64[n_hops + 1]
        Connections of messages, hop by hop, and where each hop begins.
    shared : bool[n_resources]
        What :func:`shared_resources` returns.
    """
    if not shared.any():
        return LockstepGroups(costs.per_byte[connection], np.full(len(connection), -1, np.int32), 0)
    from commsim.core.jit import expected_work

    from .lockstep_kernel import find_lockstep_groups

    pace, group = np.empty(len(connection)), np.empty(len(connection), np.int32)
    with expected_work(3 * int(np.diff(costs.rows[0])[connection].sum())):
        n = find_lockstep_groups(
            connection, hop, costs.per_byte, costs.rows, costs.held, costs.n_resources, pace, group
        )
    return None if n < 0 else LockstepGroups(pace, group, n)


def scale_for(longest: float) -> float:
    """Ticks per second, a power of two, such that no time up to `longest` seconds exceeds 2^61 ticks.

    Sums of ticks are exact. A message's cost is rounded once, by half a tick: 2^-62 of the whole run or so.
    """
    return float(np.ldexp(1.0, 61 - int(np.frexp(max(longest, 1e-60))[1])))
