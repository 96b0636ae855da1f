"""The engines that simulate the messages of a plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from commsim.core.result import Result
from commsim.engine.flow_paths import FlowPaths
from commsim.extensions import house
from commsim.prediction.scenario import Wish

# Function from ``(size, *, starts, framing)`` to a result.
Simulation = Callable[..., Result]


def _flow(paths: FlowPaths, wish: Wish) -> Simulation:
    """Simulate flows that share links max-min."""
    return functools.partial(paths.simulate, trace=wish.trace, method=wish.method, flaps=wish.flaps)


def _alpha_beta(paths: FlowPaths, wish: Wish) -> Simulation:
    """Follow the critical path under LogGP; links are not shared."""
    from commsim.engine.alpha_beta import simulate_alpha_beta

    def simulate(size: float, **options: Any) -> Result:
        return simulate_alpha_beta(paths.plan, size, trace=wish.trace, **options)[0]

    return simulate


# Engines of the core, by name; others are an extension's.
SIMULATIONS: Mapping[str, Callable[[FlowPaths, Wish], Simulation]] = {"flow": _flow, "alpha-beta": _alpha_beta}


def simulation_of(paths: FlowPaths, wish: Wish) -> Simulation:
    """Return how the engine that is wished for simulates messages on these paths."""
    simulation: Simulation = (SIMULATIONS.get(wish.engine) or house().engines[wish.engine])(paths, wish)
    return simulation
