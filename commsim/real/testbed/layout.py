"""Lay a network out as namespaces and cables: what is to be built, before anything is."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import SEATS, SWITCH, Network
from commsim.core.network_queries import partners
from commsim.routing.routing import require_suited

MAX_NODES = 64
SEAT_NETWORK, CABLE_NETWORK = IPv4Address("10.77.0.0"), IPv4Address("10.78.0.0")
PREFIX_LENGTH = 16
# The first carries the address of a node that routes or has several ports, so that it does not depend on a cable.
OWN_DEVICE, OTHER_END = "own0", "own1"


@dataclass(frozen=True, slots=True)
class CableEnd:
    """One end of a cable.

    Parameters
    ----------
    node : int
        Node of the port.
    device : str
        Its name in the node's namespace.
    link : int
        The network's directed link that leaves here.
    address, peer : IPv4Address or None
        Addresses of this end and of the other one, where nodes route.
    """

    node: int
    device: str
    link: int
    address: IPv4Address | None = None
    peer: IPv4Address | None = None


@dataclass(frozen=True, slots=True)
class TestbedLayout:
    """A network as namespaces.

    Parameters
    ----------
    network : Network
        What is built.
    bridged : bool
        Whether switches are bridges; they are routers where there is more than one path, or hosts forward.
    cables : tuple of (CableEnd, CableEnd)
        What is joined.
    seats : tuple of int
        Nodes on which ranks may sit.
    """

    network: Network
    bridged: bool
    cables: tuple[tuple[CableEnd, CableEnd], ...]
    seats: tuple[int, ...]

    @property
    def ports(self) -> tuple[CableEnd, ...]:
        """Both ends of all cables, by the number of the link that leaves there."""
        return tuple(sorted((port for cable in self.cables for port in cable), key=lambda port: port.link))

    def ports_of(self, node: int) -> tuple[CableEnd, ...]:
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


def lay_out(network: Network) -> TestbedLayout:
    """Lay a network out.

    Parameters
    ----------
    network : Network
        Network of at most 64 nodes; every link has its way back, for a cable carries both ways.

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
            ends.append(CableEnd(int(node), f"p{counted[node]}", int(leaving), own, peer))
            counted[node] += 1
        cables.append((ends[0], ends[1]))
    return TestbedLayout(network, bridged, tuple(cables), seats)


def _is_tree_of_switches(network: Network, seats: tuple[int, ...]) -> bool:
    """Whether bridges without a spanning-tree protocol carry it: one path, through switches only, one cable a seat."""
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
