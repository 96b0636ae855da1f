"""Lay a network out as namespaces and cables: what is to be built, before anything is.

Forwarding tables: at each node, over which links a destination is reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import SEATS, SWITCH, Network
from commsim.core.network_queries import partners
from commsim.routing.routing import HASHED, find_routes
from commsim.routing.walk import require_suited
from switch_model.bpf.commands import output_of

from .places import has_netem, has_nftables

MAX_NODES = 64
SEAT_NETWORK, CABLE_NETWORK = IPv4Address("10.77.0.0"), IPv4Address("10.78.0.0")
PREFIX_LENGTH = 16
# The first carries the address of a node that routes or has several ports, so that it does not depend on a cable.
OWN_DEVICE, OTHER_END = "own0", "own1"


@dataclass(frozen=True, slots=True)
class Port:
    """One end of a cable.

    Parameters
    ----------
    node : int
        Whose it is.
    device : str
        Its name in the node's namespace.
    link : int
        The network's directed link that leaves here.
    address, peer : IPv4Address or None
        Of this end and of the other one, where nodes route.
    """

    node: int
    device: str
    link: int
    address: IPv4Address | None = None
    peer: IPv4Address | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """A network as namespaces.

    Parameters
    ----------
    network : Network
        What is built.
    bridged : bool
        Whether switches are bridges; they are routers where there is more than one path, or hosts forward.
    cables : tuple of (Port, Port)
        What is joined.
    seats : tuple of int
        Nodes on which ranks may sit.
    """

    network: Network
    bridged: bool
    cables: tuple[tuple[Port, Port], ...]
    seats: tuple[int, ...]

    @property
    def ports(self) -> tuple[Port, ...]:
        """Both ends of all cables, by the number of the link that leaves there."""
        return tuple(sorted((port for cable in self.cables for port in cable), key=lambda port: port.link))

    def ports_of(self, node: int) -> tuple[Port, ...]:
        """Return the ports of one node."""
        return tuple(port for port in self.ports if port.node == node)

    def address(self, node: int) -> IPv4Address:
        """Return the address under which a node is reached.

        Of the switches, only those of a bridged network have one: so that a program may answer there.
        """
        return SEAT_NETWORK + 1 + node

    def device(self, node: int) -> str:
        """Name of the interface that carries the address: the only port of a seat that has one, else one of its own."""
        ports = self.ports_of(node)
        if node in self.seats and len(ports) == 1:
            return ports[0].device
        return "br0" if self.bridged else OWN_DEVICE


def lay_out(network: Network) -> Layout:
    """Lay a network out.

    Parameters
    ----------
    network : Network
        At most 64 nodes; every link has its way back, for a cable carries both ways.

    Raises
    ------
    InputError
        If it is larger, a link has no way back, or its routing is for other networks.
    """
    require_suited(network, network.routing)
    if network.n_nodes > MAX_NODES:
        raise InputError(f"a testbed has at most {MAX_NODES} nodes, {network.name} has {network.n_nodes}")
    other = partners(network)
    alone = np.flatnonzero(other == np.arange(network.n_links))
    if len(alone):
        raise InputError(f"a testbed's cables carry both ways: {network.link_name(int(alone[0]))} has no way back")
    seats = tuple(int(node) for node in np.flatnonzero(np.isin(network.kind, SEATS)))
    bridged = _is_tree_of_switches(network, seats)
    cables, counted = [], [0] * network.n_nodes
    for number, link in enumerate(np.flatnonzero(np.arange(network.n_links) < other).tolist()):
        ends = []
        for side, (node, leaving) in enumerate(((network.src[link], link), (network.dst[link], int(other[link])))):
            own = None if bridged else CABLE_NETWORK + 2 * number + side
            peer = None if bridged else CABLE_NETWORK + 2 * number + 1 - side
            ends.append(Port(int(node), f"p{counted[node]}", int(leaving), own, peer))
            counted[node] += 1
        cables.append((ends[0], ends[1]))
    return Layout(network, bridged, tuple(cables), seats)


def _is_tree_of_switches(network: Network, seats: tuple[int, ...]) -> bool:
    """Whether bridges without a spanning-tree protocol carry it: one path, through switches alone, one cable a seat."""
    n_cables = network.n_links // 2
    inner = np.setdiff1d(np.arange(network.n_nodes), seats)
    single = all(np.count_nonzero(network.src == seat) == 1 for seat in seats)
    return single and bool((network.kind[inner] == SWITCH).all()) and n_cables == network.n_nodes - _n_parts(network)


def _n_parts(network: Network) -> int:
    part = np.arange(network.n_nodes)
    while True:
        lowest = part.copy()
        np.minimum.at(lowest, network.dst, part[network.src])
        if (lowest == part).all():
            return len(np.unique(part))
        part = lowest


NextHops = dict[tuple[int, int], tuple[int, ...]]


def next_hops(network: Network, routing: str) -> NextHops:
    """Return the links that a router may take, by (node, destination).

    Several where the routing spreads over equal paths; routers then choose by a hash of addresses and ports, which is
    not the hash that the engines draw.

    Raises
    ------
    InputError, RoutingError
        As :func:`commsim.routing.routing.find_routes`; and if the routing is ``valiant``, whose next hop depends
        on where a message has been before, which no forwarding table knows.
    """
    if routing == "valiant":
        raise InputError("a testbed's routers know where a message goes, not where it has been: routing valiant cannot "
                         "be built; minimal can")  # fmt: skip
    seats = np.flatnonzero(np.isin(network.kind, SEATS))
    others = np.setdiff1d(np.arange(network.n_nodes), seats)
    spread = "spray" if routing in HASHED and routing.startswith("ecmp") else routing
    links_between = _between(network, seats, np.arange(network.n_nodes), spread)
    # A switch as a source comes second: where messages pass it, their path decides and not its own.
    return _between(network, others, seats, spread) | links_between


def _between(network: Network, sources: NDArray[np.intp], destinations: NDArray[np.intp], routing: str) -> NextHops:
    pairs = [(int(a), int(b)) for a in sources for b in destinations if a != b]
    if not pairs:
        return {}
    routes = find_routes(network, [a for a, _ in pairs], [b for _, b in pairs], routing=routing)
    links_between: dict[tuple[int, int], set[int]] = {}
    for row, (_, destination) in enumerate(pairs):
        for link in routes.link[routes.first[row] : routes.first[row + 1]].tolist():
            links_between.setdefault((int(network.src[link]), destination), set()).add(link)
    return {key: tuple(sorted(links)) for key, links in links_between.items()}


@dataclass(frozen=True, slots=True)
class Frame:
    """What travels on a cable.

    Parameters
    ----------
    mtu : int, bytes
        Of all interfaces. Small frames would cost a quarter of the processor at 200 Mbit/s.
    """

    mtu: int = 9000
    # Headers inside the MTU, with TCP's time stamps.
    ip_and_tcp: int = 52
    # Header that the kernel's queues count beside the MTU.
    ethernet: int = 14

    @property
    def framing(self) -> Framing:
        """How messages over TCP are cut."""
        return Framing(payload=self.mtu - self.ip_and_tcp, header=self.ip_and_tcp + self.ethernet)


FRAME = Frame()
# Bytes that may pass at once: two frames, so that a timer may be late by one; what more there is, is free credit.
BURST = 2 * (FRAME.mtu + FRAME.ethernet)
# Bytes that may wait unless the network says otherwise: nothing is lost in a shaped queue.
QUEUE = 16_000_000
SLOWEST, FASTEST = 10_000.0, 4e9  # bytes/s
LOSS_UNIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Shape:
    """What is put on the port where a link begins.

    Parameters
    ----------
    queues : tuple of (str, mapping)
        Kinds of queueing discipline and their options, the outer one first.
    loss : float
        Probability that a rule drops a packet.
    warnings : tuple of str
        What could not be had.
    """

    queues: tuple[tuple[str, dict[str, Any]], ...]
    loss: float = 0.0
    warnings: tuple[str, ...] = field(default=())

    def lose(self, namespace: str, device: str) -> None:
        """Put the rule that loses packets on a port."""
        if self.loss:
            rule = f'table netdev losses {{ chain c {{ type filter hook egress device "{device}" priority 0; '
            rule += f"numgen random mod {LOSS_UNIT} < {round(self.loss * LOSS_UNIT)} drop; }}; }}\n"
            rule = rule.replace("losses", f"losses_{device}")
            output_of(["nsenter", f"--net=/run/netns/{namespace}", "nft", "-f", "-"], rule)


def shape_of(network: Network, link: int) -> Shape:
    """Say how a link's rate, latency, buffer and loss are made.

    Raises
    ------
    InputError
        If a rate is out of what a token bucket can do.
    """
    bandwidth, latency, loss = (float(getattr(network, name)[link]) for name in ("bandwidth", "latency", "loss"))
    if not SLOWEST <= bandwidth <= FASTEST:
        raise InputError(f"a testbed's links carry {SLOWEST:g} to {FASTEST:g} bytes/s, got {bandwidth:g} on "
                         f"{network.link_name(link)}; scale the network down")  # fmt: skip
    limit = int(min(max(float(network.buffer[link]), BURST), QUEUE))
    bucket = {"rate": round(bandwidth), "burst": BURST, "limit": limit}
    if (latency or loss) and has_netem():
        delayed = {"delay": round(latency * 1e6), "loss": 100 * loss, "limit": 100_000}
        return Shape((("netem", {"handle": "1:", **delayed}), ("tbf", {"parent": "1:1", "handle": "2:", **bucket})))
    warnings: tuple[str, ...] = ()
    if latency:
        warnings += ("this kernel has no netem: links have their rates, but not their latencies",)
    if loss and not has_nftables():
        return Shape((("tbf", {"handle": "1:", **bucket}),), 0.0, (*warnings, "neither netem nor nftables: no losses"))
    return Shape((("tbf", {"handle": "1:", **bucket}),), loss, warnings)
