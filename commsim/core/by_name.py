"""Find nodes and links by what people call them."""

from __future__ import annotations

import difflib

import numpy as np

from .errors import InputError
from .network import Network

_ARROW = "->"


def find_node(network: Network, name: str) -> int:
    """Return the index of the node of that name.

    Raises
    ------
    InputError
        If there is none; the message has names that look alike.
    """
    try:
        return network.nodes.index(name)
    except ValueError:
        close = difflib.get_close_matches(name, network.nodes, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(close)}?" if close else f"nodes are {', '.join(network.nodes[:3])} and so on"
        raise InputError(f"{network.name} has no node {name!r}; {hint}") from None


def find_link(network: Network, name: str) -> int:
    """Return the index of the link that :meth:`Network.link_name` calls so.

    Parameters
    ----------
    network : Network
        Where.
    name : str
        Such as ``leaf0->spine1``, with ``#1`` and so on for parallel ones.

    Raises
    ------
    InputError
        If there is none; the message has names that look alike, or the links of the node.
    """
    ends, _, number = name.rpartition("#") if "#" in name else (name, "", "")
    readings = [(name, 0)] + ([(ends, int(number))] if number.isdecimal() and len(number) < 10 else [])
    for text, nth in readings:
        src, dst = _ends(network, text)
        if src >= 0 and dst >= 0:
            links = np.flatnonzero((network.src == src) & (network.dst == dst))
            if nth < len(links):
                return int(links[nth])
    raise _no_link(network, name)


def _ends(network: Network, text: str) -> tuple[int, int]:
    """Nodes before and after an arrow, -1 and -1 unless both exist; names may hold arrows themselves."""
    parts = text.split(_ARROW)
    for i in range(1, len(parts)):
        a, b = _ARROW.join(parts[:i]), _ARROW.join(parts[i:])
        if a in network.nodes and b in network.nodes:
            return network.nodes.index(a), network.nodes.index(b)
    return -1, -1


def _no_link(network: Network, name: str) -> InputError:
    a, arrow, b = name.partition(_ARROW)
    if not arrow:
        example = f", as in {network.link_name(0)}" if network.n_links else ""
        return InputError(f"a link of {network.name} is called node{_ARROW}node{example}, got {name!r}")
    for end in (a, b.rpartition("#")[0] or b):
        if end not in network.nodes:
            find_node(network, end)
    there = np.flatnonzero(network.src == network.nodes.index(a))
    known = [network.link_name(int(link)) for link in there[:64]]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.0)
    hint = f"did you mean {', '.join(close)}?" if close else f"nothing leads out of {a}"
    return InputError(f"{network.name} has no link {name!r}; {hint}")
