"""Nodes and links of a network by their names, and the names of all."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, alike, did_you_mean
from commsim.core.network import Network
from commsim.core.network_queries import link_numbers
from commsim.core.spec import is_whole

_BETWEEN = (":", "->")  # what stands between the ends of a link; names are written with the first


def find_node(network: Network, name: str) -> int:
    """Return the index of the node of that name.

    Raises
    ------
    InputError
        If the name is unknown; the message has names that look alike.
    """
    try:
        return network.nodes.index(name)
    except ValueError:
        close = alike(name, network.nodes, 3, cutoff=0.5)
        hint = did_you_mean(close, last=True) or f"; nodes are {', '.join(network.nodes[:3])} and so on"
        raise InputError(f"{network.name} has no node {name!r}{hint}") from None


def find_link(network: Network, name: str) -> int:
    """Return the index of the link that :meth:`Network.link_name` calls so.

    Parameters
    ----------
    network : Network
        Network with the links and nodes in question.
    name : str
        Such as ``leaf0:spine1`` or ``leaf0->spine1``, with ``#1`` and so on for parallel ones.

    Raises
    ------
    InputError
        If the name is unknown; the message has names that look alike, or the links of the node.
    """
    ends, _, number = name.rpartition("#") if "#" in name else (name, "", "")
    readings = [(name, 0)] + ([(ends, int(number))] if is_whole(number) else [])
    for text, nth in readings:
        src, dst = _ends(network, text)
        if src >= 0 and dst >= 0:
            links = np.flatnonzero((network.src == src) & (network.dst == dst))
            if nth < len(links):
                return int(links[nth])
    raise _no_link(network, name)


def _ends(network: Network, text: str) -> tuple[int, int]:
    """Nodes before and after a colon or arrow, -1 and -1 unless both exist; names may hold these themselves."""
    for match in re.finditer("|".join(_BETWEEN), text):
        a, b = text[: match.start()], text[match.end() :]
        if a in network.nodes and b in network.nodes:
            return network.nodes.index(a), network.nodes.index(b)
    return -1, -1


def _no_link(network: Network, name: str) -> InputError:
    a, between, b = name.partition("->" if "->" in name else ":")
    if not between:
        example = f", as in {network.link_name(0)}" if network.n_links else ""
        return InputError(f"a link of {network.name} is called node:node{example}, got {name!r}")
    for end in (a, b.rpartition("#")[0] or b):
        if end not in network.nodes:
            find_node(network, end)
    there = np.flatnonzero(network.src == network.nodes.index(a))
    known = [network.link_name(int(link)) for link in there[:64]]
    hint = did_you_mean(alike(name, known, 3, cutoff=0.0), last=True) or f"; nothing leads out of {a}"
    return InputError(f"{network.name} has no link {name!r}{hint}")


def link_names(network: Network) -> list[str]:
    """Names of all links, as :meth:`Network.link_name` gives them one by one."""
    columns = (network.src.tolist(), network.dst.tolist(), link_numbers(network).tolist())
    nodes = network.nodes
    return [f"{nodes[a]}:{nodes[b]}" + (f"#{n}" if n else "") for a, b, n in zip(*columns, strict=True)]


def links_like(network: Network, pattern: str) -> NDArray[np.int64]:
    """Find the links whose names fit a shell pattern, such as ``leaf0:*`` or ``leaf0->*``.

    Raises
    ------
    InputError
        If none does.
    """
    names, wanted = link_names(network), pattern.replace("->", ":")
    links = np.array([i for i, name in enumerate(names) if fnmatchcase(name, wanted)], np.int64)
    if not links.size:
        example = f"; names of links are such as {names[0]}" if names else ""
        raise InputError(f"{network.name} has no link like {pattern!r}{example}")
    return links


def host_names(network: Network) -> tuple[str, ...]:
    """By node, the name of the host that it is, or is a part of: ``m0`` for ``m0.gpu0`` of a machine."""
    return tuple(
        name.partition(".")[0] if machine >= 0 else name
        for name, machine in zip(network.nodes, network.machine.tolist(), strict=True)
    )
