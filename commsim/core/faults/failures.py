"""Networks with a part missing: transformers that return another network."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, alike, did_you_mean
from commsim.core.names.nodes_and_links import find_node, host_names
from commsim.core.network import GPU, HOST, SWITCH, Network
from commsim.core.network_queries import fabric_cables, fabric_switches, partners

from .named_links import named_links, nic_links

_PER_LINK = ("src", "dst", "bandwidth", "latency", "buffer", "loss", "metric")
_MAX_NAMES = 4  # in the name of the network
_NO_LINKS: NDArray[np.int64] = np.empty(0, np.int64)


def fail_links(network: Network, names: Sequence[str]) -> Network:
    """Remove cables by their names.

    Parameters
    ----------
    network : Network
        Whole, or with other parts missing already.
    names : sequence of str
        Name of one of the two links of each cable, as :meth:`Network.link_name` gives it: ``leaf0:spine1``; or a
        pattern with ``*``, ``leaf0:*``.

    Raises
    ------
    InputError
        If the link is unknown.
    """
    return remove_cables(network, np.concatenate([_NO_LINKS, *(named_links(network, name) for name in names)]))


def fail_nics(network: Network, names: Sequence[str]) -> Network:
    """Take NICs out of service: their cables to the fabric.

    Raises
    ------
    InputError
        If a name is unknown, or that of something else.
    """
    return remove_cables(network, np.concatenate([_NO_LINKS, *(nic_links(network, name) for name in names)]))


def fail_switches(network: Network, names: Sequence[str]) -> Network:
    """Take switches out of service by their names, or by patterns with ``*``, ``plane1_*``.

    Raises
    ------
    InputError
        If the node is unknown, or no switch.
    """
    return remove_switches(network, np.array([node for name in names for node in _switches(network, name)], np.int64))


def _switches(network: Network, name: str) -> list[int]:
    """Return the nodes of a name; a pattern, and one that is unknown, is one of switches outside of machines only."""
    if name in network.nodes:
        return [find_node(network, name)]
    outside = np.flatnonzero(fabric_switches(network)).tolist()
    if fitting := [node for node in outside if fnmatchcase(network.nodes[node], name)]:
        return fitting
    known = [network.nodes[i] for i in outside]
    more = " and so on" if len(known) > 3 else ""
    hint = did_you_mean(alike(name, known, 3), last=True) or f"; switches are {', '.join(known[:3]) or 'none'}{more}"
    raise InputError(f"{network.name} has no switch {name!r}{hint}")


def fail_hosts(network: Network, names: Sequence[str]) -> Network:
    """Take hosts out of service by their names: a node, or a machine such as ``m0`` with all that is in it.

    Raises
    ------
    InputError
        If the name is unknown, or that of a switch or of a part of a machine.
    """
    dead = np.isin(np.arange(network.n_nodes), [node for name in names for node in host_nodes(network, name)])
    rest = _without(network, ~(dead[network.src] | dead[network.dst]), ", ".join(names))
    return dataclasses.replace(rest, forwards=network.forwards & ~dead, aggregates=network.aggregates & ~dead)


def fail_gpus(network: Network, names: Sequence[str]) -> Network:
    """Take GPUs out of service: their links inside the machine, which goes on with the others and with all its NICs.

    Raises
    ------
    InputError
        If a name is unknown, or that of something else.
    """
    dead = np.isin(np.arange(network.n_nodes), [gpu_node(network, name) for name in names])
    rest = _without(network, ~(dead[network.src] | dead[network.dst]), ", ".join(names))
    return dataclasses.replace(rest, forwards=network.forwards & ~dead)


def gpu_node(network: Network, name: str) -> int:
    """Return the node of a GPU of a name.

    Raises
    ------
    InputError
        Same as in :func:`fail_gpus`.
    """
    gpus = np.flatnonzero(network.kind == GPU)
    if name not in network.nodes or network.kind[node := find_node(network, name)] != GPU:
        known = f"; GPUs are {network.nodes[gpus[0]]} to {network.nodes[gpus[-1]]}" if gpus.size else ", and no GPUs"
        raise InputError(f"{network.name} has no GPU {name!r}{known}")
    return node


def host_nodes(network: Network, name: str) -> list[int]:
    """Return the nodes of the host or machine of a name.

    Raises
    ------
    InputError
        Same as in :func:`fail_hosts`.
    """
    is_part = (network.machine >= 0) | (network.kind != SWITCH)
    if indices := [i for i, host in enumerate(host_names(network)) if host == name and is_part[i]]:
        return indices
    try:
        node = find_node(network, name)
    except InputError:
        hosts = [*dict.fromkeys(host for i, host in enumerate(host_names(network)) if is_part[i])]
        known = f"{hosts[0]} to {hosts[-1]}" if len(hosts) > 1 else "".join(hosts)
        raise InputError(f"{network.name} has no host {name!r}; hosts are {known}") from None
    what = "a switch" if network.kind[node] == SWITCH else f"a part of host {host_names(network)[node]}"
    raise InputError(f"{network.name}: {name} is not a host but {what}")


def draw_failures(network: Network, what: str, part: float, seed: int = 0) -> NDArray[np.int64]:
    """Draw what fails, each as likely as any other.

    Parameters
    ----------
    network : Network
        Network with the links and nodes in question.
    what : {"links", "switches"}
        Cables between nodes that forward, since without its only cable a host would be cut off; or switches. What is
        inside of machines does not fail.
    part : float or int
        How many: a float for a part of all, rounded to the nearest whole number; an int for a number.
    seed : int
        Seed of the draw; with the same seed, more failures include those of fewer.

    Returns
    -------
    int64[n]
        Links, one of each cable, or nodes.

    Raises
    ------
    InputError
        If `what` is neither, or there are not so many.
    """
    if what == "links":
        return draw_cables(network, part, seed)
    if what == "switches":
        pool = np.flatnonzero(fabric_switches(network))
        return draw(pool, part, seed, f"switches of {network.name}")
    raise InputError(f"links or switches fail at random, got {what!r}")


def draw_cables(network: Network, part: float, seed: int = 0) -> NDArray[np.int64]:
    """Draw cables between nodes that forward, as :func:`draw` does; where there are none, say how one is named.

    Raises
    ------
    InputError
        Same as in :func:`draw`.
    """
    cables, what = fabric_cables(network), f"links between nodes of {network.name} that forward"
    ends = network.machine[network.src], network.machine[network.dst]
    others = np.flatnonzero((ends[0] != ends[1]) | (ends[0] < 0))
    if isinstance(part, float) and part > 1 and not len(cables):
        raise InputError(f"a part of the {what} is at most 100%, got {100 * part:g}%")
    if not len(cables) and len(others):
        raise InputError(f"no {what} to draw from; name a cable: link:{network.link_name(int(others[0]))}")
    return draw(cables, part, seed, what)


def draw(pool: NDArray[np.int64], part: float, seed: int, what: str) -> NDArray[np.int64]:
    """Draw a part of a pool, or a number of its members, without repetition.

    Parameters
    ----------
    pool : int64[n]
        What is drawn from.
    part : float or int
        A part of all, rounded to a whole number, or a number.
    seed : int
        Seed of the draw; not negative.
    what : str
        Name of the pool's members, for messages.

    Raises
    ------
    InputError
        If the pool holds nothing, or not enough, or `seed` is negative.
    """
    n = part if isinstance(part, int) else round(part * len(pool)) if 0 <= part <= 1 else -1
    if not len(pool):
        raise InputError(f"no {what}")
    if not 0 <= n <= len(pool):
        wanted = f"{part}" if isinstance(part, int) else f"{100 * part:g}% of them"
        raise InputError(f"there are {len(pool)} {what}, got {wanted}")
    if seed < 0:
        raise InputError(f"the seed of a draw must be 0 or more, got {seed}")
    return np.random.default_rng(seed).permutation(pool)[:n]


def remove_cables(network: Network, links: NDArray[np.int64]) -> Network:
    """Remove links, and their other directions."""
    if not len(links):
        return network
    few = len(links) <= _MAX_NAMES
    names = ", ".join(_cable_name(network, int(link)) for link in links) if few else f"{len(links)} cables"
    remaining = np.ones(network.n_links, np.bool_)
    remaining[links] = remaining[partners(network)[links]] = False
    return _without(network, remaining, names)


def _cable_name(network: Network, link: int) -> str:
    """Name a cable, with the number of those beside it between the same two nodes."""
    beside = np.count_nonzero((network.src == network.src[link]) & (network.dst == network.dst[link]))
    return network.link_name(link) + (f" (1 of {beside} cables)" if beside > 1 else "")


def remove_switches(network: Network, nodes: NDArray[np.int64], called: str = "") -> Network:
    """Remove the links of switches; these stay where they are, but pass nothing on, and nothing can be placed on them.

    Parameters
    ----------
    network, nodes : Network and int64[n]
        Network, and its switches that are removed.
    called : str
        Name of all of them in the network's name; by default their names, or how many they are.

    Raises
    ------
    InputError
        If one of the nodes is no switch.
    """
    if not len(nodes):
        return network
    for node in nodes[network.kind[nodes] != SWITCH]:
        hint = f": host:{network.nodes[node]} takes a host out of service" if network.kind[node] == HOST else ""
        raise InputError(f"{network.name}: {network.nodes[node]} is not a switch{hint}")
    dead = np.zeros(network.n_nodes, np.bool_)
    dead[nodes] = True
    few = len(nodes) <= _MAX_NAMES
    names = called or (", ".join(network.nodes[node] for node in nodes) if few else f"{len(nodes)} switches")
    rest = _without(network, ~(dead[network.src] | dead[network.dst]), names)
    return dataclasses.replace(rest, forwards=network.forwards & ~dead, aggregates=network.aggregates & ~dead)


def _without(network: Network, remaining: NDArray[np.bool_], names: str) -> Network:
    columns: dict[str, Any] = {field: getattr(network, field)[remaining] for field in _PER_LINK}
    return dataclasses.replace(network, name=f"{network.name} without {names}", family="", **columns)
