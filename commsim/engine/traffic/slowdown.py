"""How much longer messages take than each of them would with the network to itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.network import Network
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.packet.links.ways import Ways, ways_of
from commsim.engine.traffic.patterns import Messages

Floats = NDArray[np.float64]

# Shares of the messages at which a distribution is given.
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


def busiest_host(network: Network, messages: Messages, framing: Framing) -> float:
    """Largest time that a host needs for its bytes with headers, at its own rate: no run is shorter, in seconds."""
    wire, ways = framing.on_wire(messages.nbytes), ways_of(network)
    n = len(ways.hosts)
    rate = network.bandwidth[ways.links[: 2 * n]].reshape(2, n)  # from each host, and to it
    carried = np.stack([np.bincount(end, wire, minlength=n) for end in (messages.src, messages.dst)])
    return float((carried / rate).max())


def cumulative(values: Floats) -> dict[str, float]:
    """Return the values that the given shares of all do not exceed, by share as text: a CDF's points."""
    return {f"{share:g}": float(np.quantile(values, share, method="inverted_cdf")) for share in SHARES}


def alone(network: Network, messages: Messages, framing: Framing) -> Floats:
    """Least time that a message in packets can take until its receiver has it, in seconds.

    Its packets leave the host one after the other, and each is stored and forwarded at every switch. Later links are
    taken to be no bottleneck, since packets are spread over many of them; the last packet may be short, and the one
    before it then arrives later.

    Returns
    -------
    float64[n_messages], s
    """
    ways = ways_of(network)
    first = network.bandwidth[ways.links[: len(ways.hosts)]][messages.src]
    latency, per_byte = _ways_between(network, ways, messages)
    full = np.minimum(messages.nbytes, framing.payload) + framing.header
    n_packets = np.ceil(messages.nbytes / framing.payload)
    last = messages.nbytes - (n_packets - 1) * framing.payload + framing.header
    before = (n_packets - 1) * (framing.payload + framing.header) / first
    ends_full = np.where(n_packets > 1, before + full * per_byte, 0.0)
    return np.asarray(latency + np.maximum(ends_full, before + last / first + last * per_byte), np.float64)


def alone_on_path(plan: FlowPlan, messages: Messages, framing: Framing) -> Floats:
    """Least time of a message that flows along its path, in seconds.

    Parameters
    ----------
    plan : FlowPlan
        Plan of the messages, from :func:`commsim.engine.traffic.host_messages.plan_messages`.
    messages, framing
        Messages, and the packets that they are cut into.

    Returns
    -------
    float64[n_messages], s
    """
    network = plan.network
    ends = np.asarray(network.hosts)[np.stack((messages.src, messages.dst))]
    fixed = plan.routes.latency + network.overhead[ends[0]] + network.recv_overhead[ends[1]]
    return np.asarray(framing.on_wire(messages.nbytes) / plan.routes.rates(network) + fixed)


def _ways_between(network: Network, ways: Ways, messages: Messages) -> tuple[Floats, Floats]:
    """Latency of a shortest path of each message, and the seconds that a byte takes on all its links but the first."""
    n_hosts, n_edges = len(ways.hosts), int(ways.edge.max()) + 1
    latency, per_byte = network.latency[ways.links], 1.0 / network.bandwidth[ways.links]
    from_to = np.stack((ways.edge_switch[messages.src], ways.edge[messages.dst]), axis=1)
    pairs, of_message = np.unique(from_to, axis=0, return_inverse=True)
    end_of_edge = np.empty(n_edges, np.int64)
    end_of_edge[ways.edge] = ways.edge_switch
    between = np.zeros((len(pairs), 2))
    for i, (at, edge) in enumerate(pairs.tolist()):
        while at != end_of_edge[edge]:
            link = ways.ways[ways.way[at * n_edges + edge]]
            between[i] += latency[link], per_byte[link]
            at = int(ways.to[link]) - n_hosts
    of_message = of_message.reshape(-1)
    down = n_hosts + messages.dst
    return (
        latency[messages.src] + between[of_message, 0] + latency[down],
        between[of_message, 1] + per_byte[down],
    )
