"""The engines that simulate the messages of a plan."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from commsim.core.result import Result
from commsim.engine.flow_paths import FlowPaths
from commsim.prediction.scenario import Wish

# Function from ``(size, *, starts, framing)`` to a result.
Simulation = Callable[..., Result]


def _flow(paths: FlowPaths, wish: Wish) -> Simulation:
    """Simulate flows that share links max-min."""
    return functools.partial(paths.simulate, trace=wish.trace, method=wish.method, flaps=wish.flaps)


def _packet(paths: FlowPaths, wish: Wish) -> Simulation:
    """Simulate packets and queues; packets have the rates of links, and no cap of their job."""
    from commsim.packets.messages import simulate_packets
    from commsim.packets.packet_work import expect_messages, expect_packets

    expect_messages(paths.job.schedule)
    if np.isfinite(paths.job.rate_cap):
        job = dataclasses.replace(paths.job, rate_cap=np.inf)
        paths = FlowPaths(paths.network, job, paths.routing, paths.seed)

    def simulate(size: float, **options: Any) -> Result:
        expect_packets(paths.plan, size, wish.transport)
        return simulate_packets(
            paths.plan, size, wish.transport, seed=wish.seed, flaps=wish.flaps, watch=wish.watch, capture=wish.capture,
            trace=wish.trace, **options,
        )[0]  # fmt: skip

    return simulate


def _alpha_beta(paths: FlowPaths, wish: Wish) -> Simulation:
    """Follow the critical path under LogGP; links are not shared."""
    from commsim.engine.alpha_beta import simulate_alpha_beta

    def simulate(size: float, **options: Any) -> Result:
        return simulate_alpha_beta(paths.plan, size, trace=wish.trace, **options)[0]

    return simulate


# By name of the engine.
SIMULATIONS: Mapping[str, Callable[[FlowPaths, Wish], Simulation]] = {
    "flow": _flow, "packet": _packet, "alpha-beta": _alpha_beta,
}  # fmt: skip
