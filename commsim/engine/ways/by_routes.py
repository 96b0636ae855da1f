"""Simulations by routes: two hashes that draw the same ones, as where a star joins machines, have one result."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from commsim.core.cost import Framing
from commsim.routing.routing import may_collide

from .proof_cache import digest_of

if TYPE_CHECKING:
    from commsim.engine.flow_paths import FlowPaths

    from .catalog import Simulation

# Results that are kept.
MAX_RESULTS = 8
__all__ = ["by_routes"]


def by_routes(paths: FlowPaths, simulate: Simulation) -> Simulation:
    """Return a simulation that plays the messages once for all hashes that draw the same routes.

    Parameters
    ----------
    paths : FlowPaths
        Paths of one draw, which share results with those of others.
    simulate : callable
        Function from a size and options to a result.
    """
    if not may_collide(paths.network, paths.routing):
        return simulate
    routes = paths.tables.routes

    def of_routes(size: float, *, starts: ArrayLike, framing: Framing | None, trace: Any, **options: Any) -> Any:
        again = partial(simulate, size, starts=starts, framing=framing, trace=trace, **options)
        if trace or options:
            return again()
        used = routes.first, routes.link, routes.share, np.asarray(starts, np.float64)
        key = digest_of(*used), size, framing
        if key not in paths.of_routes:
            if len(paths.of_routes) >= MAX_RESULTS:
                paths.of_routes.clear()
            paths.of_routes[key] = again()
        return paths.of_routes[key]

    return of_routes
