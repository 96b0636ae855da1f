"""Networks whose links are not all alike: a transformer that makes some faster or slower."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from commsim.core.errors import InputError
from commsim.core.names.nodes_and_links import links_like
from commsim.core.network import Network
from commsim.core.network_queries import partners
from commsim.core.units import count_text

from .failures import draw_cables
from .named_links import nic_links


def scale_links(
    network: Network,
    factor: float,
    *,
    pattern: str | None = None,
    part: float | None = None,
    of_nics: bool = False,
    seed: int = 0,
) -> Network:
    """Multiply the bandwidth of some cables, in both directions.

    Parameters
    ----------
    network : Network
        Network with the links and nodes in question.
    factor : float
        Positive; 0.5 halves the rate.
    pattern : str, optional
        Shell pattern of link names, such as ``leaf0:*`` or ``leaf0->*``; the other directions of these links are scaled
        too.
    part : float or int, optional
        Number (int) or share (float) of the cables between nodes that forward, drawn at random; used without a pattern.
    of_nics : bool
        Whether `pattern` names NICs, whose cables to the fabric are meant, in place of links.
    seed : int
        Seed of the draw.

    Raises
    ------
    InputError
        If both or none of `pattern` and `part` are given, no link fits, or `factor` is not positive.
    """
    if not 0 < factor < float("inf"):
        raise InputError(f"links are scaled by a positive factor, got {factor}")
    if pattern is not None and part is None:
        links = nic_links(network, pattern) if of_nics else links_like(network, pattern)
    elif part is not None and pattern is None:
        links = draw_cables(network, part, seed)
    else:
        raise InputError("name the links to scale by a pattern or by their number, not by both")
    scaled = np.zeros(network.n_links, np.bool_)
    scaled[links] = scaled[partners(network)[links]] = True
    n = int(np.count_nonzero(scaled & (np.arange(network.n_links) <= partners(network))))
    name = f"{network.name} with {cables_at_part({factor: n})}"
    rates = np.where(scaled, factor, 1.0) * network.bandwidth
    return dataclasses.replace(network, name=name, bandwidth=rates, family="")


def cables_at_part(slower: Mapping[float, int]) -> str:
    """Name how many cables have which part of their rate, such as ``1 cable at 0.5 of its rate, both ways``.

    Parameters
    ----------
    slower : mapping of float to int
        Cables by the part of their rate.
    """
    text = " and ".join(f"{count_text(n, 'cable')} at {part:g}" for part, n in slower.items())
    return f"{text} of {'its' if sum(slower.values()) == 1 else 'their'} rate, both ways"
