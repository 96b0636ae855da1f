"""Lists of cables as ns-3's simulators write them: ``src dst 400Gbps 0.0005ms 0``, the last one a share of loss."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.node_kind import GPU, HOST, KINDS, SWITCH


def cable_lines(network: Network, number: dict[int, int]) -> list[str]:
    """Write one line per cable.

    Parameters
    ----------
    network : Network
        Whose links are alike in both directions.
    number : dict of int to int
        From its nodes to those of the file.

    Raises
    ------
    InputError
        If a link has no way back that is like it.
    """
    waiting: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    lines = []
    columns = (getattr(network, name).tolist() for name in ("src", "dst", "bandwidth", "latency", "loss"))
    for src, dst, *rest in zip(*columns, strict=True):
        if waiting[dst, src, *rest]:
            lines.append(waiting[dst, src, *rest].pop())
            continue
        rate, delay = Decimal(repr(rest[0])) * 8 / 10**9, Decimal(repr(rest[1])) * 1000
        waiting[src, dst, *rest].append(f"{number[src]} {number[dst]} {_plain(rate)}Gbps {_plain(delay)}ms {rest[2]:g}")
    for (src, dst, *_), left in waiting.items():
        if left:
            names = f"{network.nodes[src]}->{network.nodes[dst]}"
            raise InputError(f"{network.name}: {names} has no way back that is like it, and a cable goes both ways")
    return lines


def check_kinds(network: Network) -> None:
    """Refuse nodes that are neither hosts (or GPUs) nor switches."""
    bad = np.flatnonzero(~np.isin(network.kind, (HOST, GPU, SWITCH)))
    if bad.size:
        kind = KINDS[network.kind[bad[0]]]
        raise InputError(f"{network.name}: {network.nodes[bad[0]]} is a {kind}; the file has GPUs and switches only")
    if network.metric.size and (network.metric != network.metric[0]).any():
        raise InputError(f"{network.name}: its routing prefers some links (metric), which the file cannot say")


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")
