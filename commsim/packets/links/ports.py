"""Ports of hosts with one link or several, and of machines with parts: where sprayed packets begin and end.

A message goes from the port that its route leaves by to the port that it comes in by; between them switches choose a
link for each packet. What is inside a machine stands for a NIC's own way to memory: its latency is added at the port,
a rate below the port's bounds the port, and its queues are not modelled. Messages within a machine keep to their paths.
Beside sprayed messages, what keeps to its path has the links inside machines to itself: doubles of them, which take no
latency behind a port that has it already.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import partners
from commsim.core.placement import joined
from commsim.engine.flow_plan import FlowPlan
from commsim.packets.links.equal_cost_links import EqualCostWays, Ints, ways_of
from commsim.routing.merge_switches import fabric_nodes
from commsim.routing.pinned import find_connection_routes

Bools = NDArray[np.bool_]
Legs = tuple[NDArray[np.int64], NDArray[np.intp]]


class PortPlan(NamedTuple):
    """A plan whose sprayed messages go from port to port.

    Parameters
    ----------
    plan : FlowPlan
        The plan, with one path for each connection where these go by several ports.
    network : Network
        Its network; latencies and rates of ports include the way inside the machine.
    ways : EqualCostWays
        Ports, and equal-cost sets between their switches; links of endpoints inside machines count as hosts', too.
    src, dst : int32[n_flows]
        Ports of each sprayed flow; -1 where it stays in a machine, and of flows that keep to their paths.
    legs : (int64[n], intp[n])
        Links inside machines on the ways of sprayed flows, and the flow of each.
    """

    plan: FlowPlan
    network: Network
    ways: EqualCostWays
    src: Ints
    dst: Ints
    legs: Legs


def find_ports(plan: FlowPlan, sprays: Bools, *, beside: bool = False) -> PortPlan:
    """Find the ports of a plan's messages.

    Parameters
    ----------
    plan : FlowPlan
        What runs where. Its routes decide the ports, those of ECMP where it uses several.
    sprays : bool[n_flows]
        Which flows are sprayed.
    beside : bool
        Whether switches aggregate other jobs, whose packets keep to paths.

    Raises
    ------
    InputError
        If a message passes through a machine on its way, begins or ends at a switch, or a port has no way back.
    """
    network, n = plan.network, len(plan.ends)
    fabric = fabric_nodes(network)
    ways = ways_of(network, doubled=beside or not sprays.all())
    if (plan.routes.share != 1).any() and (np.bincount(network.src[~fabric[network.src]]) > 1).any():
        plan = _one_path(plan)
    flow, link = np.repeat(np.arange(n), np.diff(plan.routes.first)), plan.routes.link
    flow, link = flow[sprays[flow]], link[sprays[flow]]
    leaves, enters = _edges(network)
    n_out, n_in = (np.bincount(flow[which[link]], minlength=n) for which in (leaves, enters))
    inside = (n_out == 0) & (n_in == 0) & (np.bincount(flow[fabric[network.src[link]]], minlength=n) == 0)
    wrong = sprays & ~inside & ((n_out != 1) | (n_in != 1))
    nodes = joined([job.placement for job in plan.jobs]).nodes[plan.ends]
    if wrong.any():
        between = " and ".join(network.nodes[int(node)] for node in nodes[int(wrong.argmax())])
        raise InputError(
            f"sprayed transports carry messages from a port of a host over switches to a port of another, and those "
            f"between {between} go another way; use the transport `window`, `dctcp` or `dcqcn` without --balancing"
        )
    place = ways.place
    src, dst = np.full((2, n), -1, np.int32)
    stays = sprays & (np.diff(plan.routes.first) == 0)  # from a node to itself: the two ends are one
    src[stays] = dst[stays] = 0
    out, into = leaves[link], enters[link]
    src[flow[out]], dst[flow[into]] = place[link[out]], place[link[into]] - len(ways.hosts)
    port = _port_before(flow, link, leaves, enters, n)
    legs = link[port >= 0].astype(np.int64), flow[port >= 0]
    reached = _with_legs(network, nodes, (flow, link), port, leaves, enters) if len(legs[0]) else network
    return PortPlan(plan, reached, ways, src, dst, legs)


def rows_of_paths(
    network: Network, reached: Network, ways: EqualCostWays, count: NDArray[np.integer], link: NDArray[np.integer]
) -> Ints:
    """Return the rows of the links of paths: of doubles, where a port has the latency of what is behind it.

    Parameters
    ----------
    network, reached : Network, Network
        Network, and the one whose ports have the latency of what is inside machines.
    ways : EqualCostWays
        Rows of links; units of aggregation come behind them.
    count : int[n_paths]
        Links of each path.
    link : int[m]
        Links of all paths, each in its order; the numbers of units follow those of links.
    """
    late, n_units = reached.latency > network.latency, int(link.max(initial=0)) + 1 - network.n_links
    row: Ints = np.append(ways.place, np.arange(n_units, dtype=np.int32) + np.int32(len(ways.links)))[link]
    if late.any():
        real = np.where(link < network.n_links, link, 0)
        port = _port_before(np.repeat(np.arange(len(count)), count), real, *_edges(network), len(count))
        row = np.where((port >= 0) & late[port], ways.double[real], row)
    return row


def _edges(network: Network) -> tuple[Bools, Bools]:
    """Tell which links lead to switches between machines, and which come from them."""
    fabric = fabric_nodes(network)
    return ~fabric[network.src] & fabric[network.dst], fabric[network.src] & ~fabric[network.dst]


def _port_before(
    path: NDArray[np.intp], link: NDArray[np.integer], leaves: Bools, enters: Bools, n_paths: int
) -> NDArray[np.int64]:
    """Return the port that each link of paths lies behind, in the machine that a path leaves or enters; -1 for none."""
    place, port = np.arange(len(link)), np.full(len(link), -1)
    for which, side in ((leaves, -1), (enters, 1)):
        at = np.full(n_paths, -1)
        at[path[which[link]]] = place[which[link]]
        found = at[path]
        mine = (found >= 0) & (np.sign(place - found) == side)
        port[mine] = link[found[mine]]
    return port


def _one_path(plan: FlowPlan) -> FlowPlan:
    """Return the plan with one path for each connection."""
    placement = joined([job.placement for job in plan.jobs])
    routes = find_connection_routes(
        plan.network, placement, plan.ends, plan.channel, routing="ecmp", seed=plan.seed,
        hashed_channel=plan.hashed_channel,
    )  # fmt: skip
    return dataclasses.replace(plan, routes=routes, routing="ecmp")


def _with_legs(
    network: Network,
    nodes: NDArray[np.integer],
    hops: tuple[NDArray[np.intp], NDArray[np.int32]],
    port: NDArray[np.int64],
    leaves: Bools,
    enters: Bools,
) -> Network:
    """Return the network whose ports have the latency, the rate and the costs of what lies behind them.

    Parameters
    ----------
    network : Network
        The network.
    nodes : int[n_flows, 2]
        Both ends of each flow.
    hops : (intp[m], int32[m])
        Flow and link of each hop of sprayed flows.
    port : int64[m]
        Port that each hop lies behind, or -1.
    leaves, enters : bool[n_links]
        Which links are ports.
    """
    (flow, link), n, back = hops, len(nodes), partners(network)
    latency, bandwidth = network.latency.copy(), network.bandwidth.copy()
    costs = network.overhead.copy(), network.recv_overhead.copy()
    for side, (which, overhead, end) in enumerate(
        ((leaves, network.overhead, network.src), (enters, network.recv_overhead, network.dst))
    ):
        mine, at = (port >= 0) & which[port], which[link]
        late = np.bincount(flow[mine], network.latency[link[mine]], minlength=n)
        for ports, behind in ((link[at], port[mine]), (back[link[at]], back[port[mine]])):  # and those of answers
            np.maximum.at(latency, ports, network.latency[ports] + late[flow[at]])
            np.minimum.at(bandwidth, behind, network.bandwidth[link[mine]])
        np.maximum.at(costs[side], end[link[at]], overhead[nodes[flow[at], side]])
    return dataclasses.replace(network, latency=latency, bandwidth=bandwidth, overhead=costs[0], recv_overhead=costs[1])
