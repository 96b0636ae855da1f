"""The links on the routes of collectives, which say whether a fault may cost them anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commsim.core.network import Network
from commsim.routing.pinned import find_connection_routes
from commsim.routing.routing import Routes

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan

# Connections whose routes are found: half a second.
MAX_CONNECTIONS = 100_000


def links_of(parts: Sequence[tuple[Plan, int]], network: Network, routing: str | None) -> NDArray[np.bool_] | None:
    """Return the links on the routes of collectives, bool[n_links]; None without any, or where that takes long.

    Parameters
    ----------
    parts : sequence of (Plan, int)
        Plans of a size, each with the number by which ECMP tells its channels from those of the others.
    network : Network
        Network that they are on.
    routing : str or None
        Routing in place of the plans' own.
    """
    known: dict[tuple[int, int, int], tuple[Plan, int]] = {}
    for part, number in parts:
        known[id(part.paths.job.schedule), id(part.paths.job.placement), number] = part, number
    if not known or sum(part.paths.n_connections for part, _ in known.values()) > MAX_CONNECTIONS:
        return None
    used = np.zeros(network.n_links, np.bool_)
    for part, number in known.values():
        used[_routes(part, number, routing).link] = True
        used[part.own_links] = True
    return used


def _routes(plan: Plan, number: int, routing: str | None) -> Routes:
    from commsim.engine.ways.closed_form_proof import carriers

    job, paths = plan.paths.job, plan.paths
    found = carriers(job.schedule)
    return find_connection_routes(
        paths.network, job.placement, found.ends, found.channel, routing=routing or paths.routing, seed=paths.seed,
        hashed_channel=found.channel + 1000 * number,
    )  # fmt: skip
