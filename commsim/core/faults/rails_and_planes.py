"""Switches of a rail or of a plane, as people number them: the parts of a fabric that fail together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import NIC, Network
from commsim.core.network_queries import fabric_switches, numbered

Nodes = NDArray[np.int64]


def rail_switches(network: Network, names: Sequence[str]) -> Nodes:
    """Find the leaves of rails: rail 3 is the switches whose NICs are all the fourth of their machines.

    Parameters
    ----------
    network : Network
        Network without faults.
    names : sequence of str
        Numbers of rails, from 0.

    Returns
    -------
    int64[n]
        Nodes.

    Raises
    ------
    InputError
        If the network has no rails, or not this one.
    """
    rail = np.full(network.n_nodes, -1)
    nics = np.flatnonzero(network.kind == NIC)
    order = np.lexsort((nics, network.machine[nics]))
    first = np.searchsorted(network.machine[nics][order], network.machine[nics][order])
    rail[nics[order]] = np.arange(len(nics)) - first
    cables = np.flatnonzero((network.kind[network.src] == NIC) & fabric_switches(network)[network.dst])
    lowest, highest = np.full(network.n_nodes, network.n_nodes), np.full(network.n_nodes, -1)
    np.minimum.at(lowest, network.dst[cables], rail[network.src[cables]])
    np.maximum.at(highest, network.dst[cables], rail[network.src[cables]])
    if (lowest < highest).any() or not len(cables):
        raise InputError(f"{network.name} has no rails, each with its own leaves; a switch is named as switch:NAME")
    return _numbered_so(network, "rail", names, np.where(highest >= 0, lowest, -1))


def plane_switches(network: Network, names: Sequence[str]) -> Nodes:
    """Find the switches of planes: parts of the fabric that are joined only by the machines, the first switch's first.

    Parameters, result and errors are those of :func:`rail_switches`.
    """
    inside = fabric_switches(network)
    both = np.flatnonzero(inside[network.src] & inside[network.dst])
    src, dst = network.src[both], network.dst[both]
    plane = np.where(inside, np.arange(network.n_nodes), -1)
    while True:  # the lowest switch that is reached so far; its own lowest one halves the number of rounds
        before = plane.copy()
        np.minimum.at(plane, dst, plane[src])
        plane = np.where(inside, plane[plane], -1)
        if (plane == before).all():
            break
    plane[inside] = numbered(plane[inside])
    if plane.max(initial=0) == 0:
        raise InputError(f"{network.name} has one plane, all of whose switches are joined; name a switch: switch:NAME")
    return _numbered_so(network, "plane", names, plane)


def _numbered_so(network: Network, what: str, names: Sequence[str], number: Nodes) -> Nodes:
    """Return the nodes whose number is among the names."""
    known = [str(one) for one in np.unique(number[number >= 0])]
    for name in names:
        if name not in known:
            raise InputError(f"{network.name} has no {what} {name!r}; {what}s are {known[0]} to {known[-1]}")
    return np.flatnonzero(np.isin(number, [int(name) for name in names]))
