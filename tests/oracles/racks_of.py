"""Racks of endpoints, by the levels of locality."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.core.network_queries import locality_levels


def racks(network: Network) -> NDArray[np.int64]:
    """Rack of each endpoint: those whose machines are cabled to the same switch first are in one.

    Returns
    -------
    int64[n_endpoints]
        Rack numbers from 0, in the order of the racks' first endpoints; a machine without a switch outside of it is
        a rack of its own.
    """
    levels = locality_levels(network)
    return levels[min(1, len(levels) - 1)].group
