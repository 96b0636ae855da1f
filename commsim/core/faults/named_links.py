"""Links by what people call them: a cable, a pattern of cables, or a NIC that stands for its cables."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import find_link, find_node, host_names, links_like
from commsim.core.network import GPU, NIC, SWITCH, Network

_WILD = "*"


def named_links(network: Network, name: str) -> NDArray[np.int64]:
    """Find the link of a name, or with ``*`` those that fit a pattern.

    Parameters
    ----------
    network : Network
        Network with the links.
    name : str
        Such as ``leaf0:spine1``, ``m0.nic0:*``.

    Raises
    ------
    InputError
        If there is none.
    """
    return links_like(network, name) if _WILD in name else np.array([find_link(network, name)], np.int64)


def nic_links(network: Network, name: str) -> NDArray[np.int64]:
    """Find the links from NICs to the fabric: all ports of a NIC, as where the NIC or its cable is broken.

    Parameters
    ----------
    network : Network
        Network of machines.
    name : str
        Name of a NIC, ``m0.nic0``, or a pattern with ``*``.

    Raises
    ------
    InputError
        If no NIC is called so, or it has no cable to the fabric.
    """
    nics = np.flatnonzero(network.kind == NIC)
    if not nics.size:
        cable = f"; a host's cable is named as in link:{network.link_name(0)}" if network.n_links else ""
        raise InputError(f"{network.name} has no nodes that are NICs{cable}")
    chosen = [nic for nic in nics.tolist() if fnmatchcase(network.nodes[nic], name)]
    if not chosen:
        known = f"{network.nodes[nics[0]]} to {network.nodes[nics[-1]]}"
        raise InputError(f"{network.name} has no NIC {name!r}; NICs are {known}")
    src, dst = network.src, network.dst
    links = np.flatnonzero(np.isin(src, chosen) & (network.machine[src] != network.machine[dst]))
    if not links.size:
        raise InputError(f"{network.name}: no cable leads from {name} to a fabric")
    return links


def kinds_of(network: Network, text: str) -> list[str]:
    """Return how a fault names what a text may mean: ``nic:m0.nic0`` for ``m0.nic0`` or ``port:m0.nic0``.

    Parameters
    ----------
    network : Network
        Network with the part.
    text : str
        A fault that names no kind, or one that does not exist.
    """
    for name in (text, text.partition(":")[2]):
        if name in network.nodes:
            node = find_node(network, name)
            if network.kind[node] == NIC:
                return [f"nic:{name}"]
            return [f"{ {SWITCH: 'switch', GPU: 'gpu'}.get(int(network.kind[node]), 'host') }:{name}"]
        if name in host_names(network):
            return [f"host:{name}"]
        try:
            return [f"link:{network.link_name(find_link(network, name))}"]
        except InputError:
            continue
    return []
