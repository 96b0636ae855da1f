"""What a result says of the links: which is the busiest, what ranks can send, and the mean bus bandwidth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from commsim.core.network import Network
from commsim.core.operations import OPERATIONS
from commsim.core.result import Result
from commsim.scenario.plans.dense import Plan

__all__ = ["BusiestLink", "busiest_link", "line_rate", "mean_busbw"]


class BusiestLink(NamedTuple):
    """The link that needs the longest for its bytes: its name, its bytes, and its mean rate in bytes/s."""

    name: str | None
    bytes: float
    rate: float


def busiest_link(result: Result, network: Network) -> BusiestLink:
    """Return the link that needs the longest for its bytes; one without a name where no link carries any.

    Parameters
    ----------
    result : Result
        Prediction.
    network : Network
        Network on which it was predicted.
    """
    if not result.link_bytes.any():
        return BusiestLink(None, 0.0, 0.0)
    link = int((result.link_bytes / network.bandwidth).argmax())
    load = float(result.link_bytes[link])
    return BusiestLink(network.link_name(link), load, load / result.time if result.time else 0.0)


def mean_busbw(results: Iterable[Result]) -> float:
    """Return the mean bus bandwidth of results that have one, bytes/s: what nccl-tests prints below its table."""
    rates = [r.busbw for r in results if r.time > 0 and r.operation in OPERATIONS]  # 'custom' has no factor
    return sum(rates) / max(1, len(rates))


def line_rate(plan: Plan) -> float:
    """Return the rate at which the links of a rank send, bytes/s: of the rank whose links are slowest."""
    network = plan.network
    of_node = np.bincount(network.src, weights=network.bandwidth, minlength=network.n_nodes)
    return float(of_node[plan.ranks].min())
