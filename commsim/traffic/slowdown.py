"""How much longer messages take than each of them would with the network to itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.engine.flow_plan import FlowPlan
from commsim.packets.hosts.work import PacketLayout
from commsim.packets.links.equal_cost_links import EqualCostWays
from commsim.routing.merge_switches import fabric_nodes
from commsim.traffic.patterns import HostMessages

Floats = NDArray[np.float64]

# Shares of the messages at which a distribution is given.
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


def busiest_port(plan: FlowPlan, network: Network, messages: HostMessages, framing: Framing) -> float:
    """Largest time that a port of a host needs for its bytes with headers, at its own rate: no run is shorter.

    Parameters
    ----------
    plan : FlowPlan
        Plan of the messages, from :func:`commsim.traffic.host_messages.plan_messages`; its routes say by which
        link of a host, or of a machine, a message leaves and comes in. One within a machine leaves and comes in by the
        links of its ends.
    network : Network
        Its network, with the rates of ports.
    messages, framing
        Messages, and the packets that they are cut into.

    Returns
    -------
    float, s
    """
    routes, fabric = plan.routes, fabric_nodes(network)
    of_link = np.repeat(np.arange(len(plan.ends)), np.diff(routes.first))
    at_port = fabric[network.src[routes.link]] != fabric[network.dst[routes.link]]
    inside = np.bincount(of_link[at_port], minlength=len(plan.ends)) == 0
    ends = np.zeros(len(routes.link), np.bool_)
    ends[routes.first[:-1][inside]] = ends[routes.first[1:][inside] - 1] = True
    counted = at_port | ends
    link, of_message = routes.link[counted], of_link[counted]
    carried = np.bincount(link, framing.on_wire(messages.nbytes)[of_message] * routes.share[counted])
    return float((carried / network.bandwidth[: len(carried)]).max())


def busiest_host(plan: FlowPlan, messages: HostMessages, framing: Framing) -> float:
    """Largest time that a host or machine needs for what passes its ports, with headers, if each took an equal part.

    Parameters
    ----------
    plan, messages, framing
        Same as in :func:`busiest_port`.

    Returns
    -------
    float, s
    """
    network, routes, fabric = plan.network, plan.routes, fabric_nodes(plan.network)
    whose, wire = units(network), framing.on_wire(messages.nbytes)
    of_link = np.repeat(np.arange(len(plan.ends)), np.diff(routes.first))
    longest = 0.0
    for inner, outer in ((network.src, network.dst), (network.dst, network.src)):
        at_port = ~fabric[inner] & fabric[outer]
        mine, owner = at_port[routes.link], whose[inner]
        carried = np.bincount(owner[routes.link[mine]], wire[of_link[mine]] * routes.share[mine])
        rate = np.bincount(owner[at_port], network.bandwidth[at_port], minlength=len(carried))
        longest = max(longest, float((carried[carried > 0] / rate[: len(carried)][carried > 0]).max(initial=0.0)))
    return longest


def cumulative(values: Floats) -> dict[str, float]:
    """Return the values that the given shares of all do not exceed, by share as text: a CDF's points."""
    return {f"{share:g}": float(np.quantile(values, share, method="inverted_cdf")) for share in SHARES}


def alone(laid: PacketLayout, messages: HostMessages, framing: Framing) -> Floats:
    """Least time that a message in packets can take until its receiver has it, in seconds.

    Its packets leave the host one after the other, and each is stored and forwarded at every switch. Where packets are
    sprayed, links between switches are taken to be no bottleneck, since packets are spread over many of them; the last
    packet may be short, and the one before it then arrives later.

    Parameters
    ----------
    laid : PacketLayout
        Layout of the run: over which links messages go.
    messages, framing
        Messages, and the packets that they are cut into.

    Returns
    -------
    float64[n_messages], s
    """
    assert laid.plan is not None
    latency, per_byte, rate = _on_paths(laid.plan)
    sprayed = np.array([not how.on_path for how in laid.hows])[laid.work.flow["rule"]]
    if sprayed.any():
        found = _between_ports(laid.network, laid.ways, laid.work.flow["src"][sprayed], laid.work.flow["dst"][sprayed])
        latency[sprayed], per_byte[sprayed], rate[sprayed] = found
    latency += _overheads(laid.plan)
    full = np.minimum(messages.nbytes, framing.payload) + framing.header
    n_packets = np.ceil(messages.nbytes / framing.payload)
    last = messages.nbytes - (n_packets - 1) * framing.payload + framing.header
    before = (n_packets - 1) * (framing.payload + framing.header) / rate
    ends_full = np.where(n_packets > 1, before + full * (per_byte - 1 / rate), 0.0)
    return np.asarray(latency + np.maximum(ends_full, before + last * per_byte), np.float64)


def alone_on_path(plan: FlowPlan, messages: HostMessages, framing: Framing) -> Floats:
    """Least time of a message that flows along its path, in seconds.

    Parameters
    ----------
    plan : FlowPlan
        Plan of the messages, from :func:`commsim.traffic.host_messages.plan_messages`.
    messages, framing
        Messages, and the packets that they are cut into.

    Returns
    -------
    float64[n_messages], s
    """
    fixed = plan.routes.latency + _overheads(plan)
    return np.asarray(framing.on_wire(messages.nbytes) / plan.routes.rates(plan.network) + fixed)


def _overheads(plan: FlowPlan) -> Floats:
    """Overheads of each message at its ends, in seconds."""
    src, dst = plan.jobs[0].placement.nodes[plan.ends].T
    return np.asarray(plan.network.overhead[src] + plan.network.recv_overhead[dst])


def _on_paths(plan: FlowPlan) -> tuple[Floats, Floats, Floats]:
    """Latency of each message's path, the seconds of a byte on all its links, and the rate of the slowest."""
    routes, network, n = plan.routes, plan.network, len(plan.ends)
    of_link = np.repeat(np.arange(n), np.diff(routes.first))
    per_byte = np.bincount(of_link, 1.0 / network.bandwidth[routes.link], minlength=n).astype(np.float64)
    return routes.latency.copy(), per_byte, routes.rates(network)


def _between_ports(
    network: Network, ways: EqualCostWays, src: NDArray[np.int32], dst: NDArray[np.int32]
) -> tuple[Floats, Floats, Floats]:
    """Latency and seconds of a byte on a shortest path from each port to another, and the rate of the slower port."""
    n_hosts, n_edges = len(ways.hosts), int(ways.edge.max()) + 1
    latency, per_byte = network.latency[ways.links], 1.0 / network.bandwidth[ways.links]
    from_to = np.stack((ways.edge_switch[src], ways.edge[dst]), axis=1)
    pairs, of_message = np.unique(from_to, axis=0, return_inverse=True)
    end_of_edge = np.empty(n_edges, np.int64)
    end_of_edge[ways.edge] = ways.edge_switch
    between = np.zeros((len(pairs), 2))
    for i, (at, edge) in enumerate(pairs.tolist()):
        while at != end_of_edge[edge]:
            link = ways.ways[ways.way[at * n_edges + edge]]
            between[i] += latency[link], per_byte[link]
            at = int(ways.to[link]) - n_hosts
    there, down = between[of_message.reshape(-1)].T, n_hosts + dst
    fixed = latency[src] + there[0] + latency[down]
    return fixed, per_byte[src] + there[1] + per_byte[down], 1.0 / np.maximum(per_byte[src], per_byte[down])
