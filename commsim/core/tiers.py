"""Tiers: how far above the endpoints a node stands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .network import Network


def tiers(network: Network) -> NDArray[np.int64]:
    """Links between each node and the nearest endpoint that reaches it.

    Returns
    -------
    int64[n_nodes]
        0 for endpoints, 1 for what they are cabled to, and so on; -1 for what no endpoint reaches.
    """
    tier = np.where(network.kind == network.seat_kind, 0, -1)
    level = 0
    while True:
        found = network.dst[(tier[network.src] == level) & (tier[network.dst] < 0)]
        if not found.size:
            return tier
        level += 1
        tier[found] = level
