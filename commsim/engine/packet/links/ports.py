"""Ports of hosts with several links, and of machines whose inside is modelled: where sprayed packets begin and end.

A message goes from the port that its route leaves by to the port that it comes in by; between them switches choose a
link for each packet. What is inside a machine stands for a NIC's own way to memory: its latency is added at the port,
a rate below the port's bounds the port, and its queues are not modelled. Messages within a machine keep to their paths.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import HOST, SWITCH, Network
from commsim.core.placement import joined
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.packet.links.ways import Ints, Ways, ways_of_ports
from commsim.routing.merge_switches import fabric_nodes
from commsim.routing.pinned import find_connection_routes

Legs = tuple[NDArray[np.int64], NDArray[np.intp]]


class Ported(NamedTuple):
    """A plan whose sprayed messages go from port to port.

    Parameters
    ----------
    plan : FlowPlan
        The plan; latencies and rates of ports include the way inside the machine.
    ways : Ways
        Ports, and equal-cost sets between their switches; links of endpoints inside machines count as hosts', too.
    src, dst : int32[n_flows]
        Ports of each flow; -1 where it stays in a machine.
    legs : (int64[n], intp[n])
        Links inside machines on the ways of sprayed flows, and the flow of each.
    """

    plan: FlowPlan
    ways: Ways
    src: Ints
    dst: Ints
    legs: Legs


def has_ports(network: Network) -> bool:
    """Tell whether a host has several links, or machines have parts."""
    if not np.isin(network.kind, (HOST, SWITCH)).all():
        return True
    return bool((np.bincount(network.src[network.kind[network.src] == HOST]) > 1).any())


def find_ports(plan: FlowPlan) -> Ported:
    """Find the ports of a plan's messages.

    Parameters
    ----------
    plan : FlowPlan
        What runs where. Its routes decide the ports, those of ECMP where it uses several paths.

    Raises
    ------
    InputError
        If a message passes through a machine on its way, begins or ends at a switch, or a port has no way back.
    """
    network = plan.network
    fabric = fabric_nodes(network)
    if not fabric.any():
        raise InputError(f"sprayed transports need switches between hosts, and {network.name} has none")
    plan = _one_path(plan)
    link, flow = plan.routes.link, np.repeat(np.arange(len(plan.ends)), np.diff(plan.routes.first))
    leaves, enters = ~fabric[network.src] & fabric[network.dst], fabric[network.src] & ~fabric[network.dst]
    n_out, n_in = (np.bincount(flow[which[link]], minlength=len(plan.ends)) for which in (leaves, enters))
    inside = (n_out == 0) & (n_in == 0) & ~np.isin(np.arange(len(plan.ends)), flow[fabric[network.src[link]]])
    wrong = ~inside & ((n_out != 1) | (n_in != 1))
    if wrong.any():
        nodes = joined([job.placement for job in plan.jobs]).nodes[plan.ends[int(wrong.argmax())]]
        between = " and ".join(network.nodes[int(node)] for node in nodes)
        raise InputError(
            f"sprayed transports carry messages from a port of a host over switches to a port of another, and those "
            f"between {between} go another way; use the transport `window`, `dctcp` or `dcqcn` without --balancing"
        )
    ways = ways_of_ports(network, fabric, has_planes=True)
    number = np.full(network.n_links, -1, np.int32)
    for first in (0, len(ways.hosts)):
        number[ways.links[first : first + ways.n_ports]] = np.arange(ways.n_ports)
    src, dst = np.full((2, len(plan.ends)), -1, np.int32)
    stays = np.diff(plan.routes.first) == 0  # from a node to itself: the two ends are one
    src[stays] = dst[stays] = 0
    src[flow[leaves[link]]], dst[flow[enters[link]]] = number[link[leaves[link]]], number[link[enters[link]]]
    is_leg = ~inside[flow] & ~fabric[network.src[link]] & ~fabric[network.dst[link]]
    legs = link[is_leg].astype(np.int64), flow[is_leg]
    return Ported(dataclasses.replace(plan, network=_with_legs(plan, leaves, enters, legs)), ways, src, dst, legs)


def _one_path(plan: FlowPlan) -> FlowPlan:
    """Return the plan with one path for each connection."""
    if (plan.routes.share == 1).all():
        return plan
    placement = joined([job.placement for job in plan.jobs])
    routes = find_connection_routes(
        plan.network, placement, plan.ends, plan.channel, routing="ecmp", seed=plan.seed,
        hashed_channel=plan.hashed_channel,
    )  # fmt: skip
    return dataclasses.replace(plan, routes=routes, routing="ecmp")


def _with_legs(plan: FlowPlan, leaves: NDArray[np.bool_], enters: NDArray[np.bool_], legs: Legs) -> Network:
    """Return the network whose ports have the latency, the rate and the costs of what lies behind them."""
    network, n = plan.network, len(plan.ends)
    route, link = plan.routes, plan.routes.link
    flow = np.repeat(np.arange(n), np.diff(route.first))
    place = np.arange(len(link))
    latency, bandwidth = network.latency.copy(), network.bandwidth.copy()
    overhead, recv_overhead = network.overhead.copy(), network.recv_overhead.copy()
    nodes = joined([job.placement for job in plan.jobs]).nodes[plan.ends]
    is_leg = np.isin(flow, legs[1]) & ~leaves[link] & ~enters[link]
    for which, is_before, side in ((leaves, True, 0), (enters, False, 1)):
        at = np.full(n, -1)
        at[flow[which[link]]] = place[which[link]]
        mine = is_leg & (at[flow] >= 0) & ((place < at[flow]) if is_before else (place > at[flow]))
        port = link[at[flow[mine]]]
        late = np.bincount(flow[mine], network.latency[link[mine]], minlength=n)
        used = at >= 0
        np.maximum.at(latency, link[at[used]], network.latency[link[at[used]]] + late[used])
        np.minimum.at(bandwidth, port, network.bandwidth[link[mine]])
        cost, end = (overhead, network.src) if side == 0 else (recv_overhead, network.dst)
        given = network.overhead if side == 0 else network.recv_overhead
        np.maximum.at(cost, end[link[at[used]]], given[nodes[used, side]])
    return dataclasses.replace(
        network, latency=latency, bandwidth=bandwidth, overhead=overhead, recv_overhead=recv_overhead
    )
