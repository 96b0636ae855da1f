"""The engines that simulate a plan's messages, by name: one function each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import Framing
from commsim.core.result import Result
from commsim.engine.flow_paths import FlowPaths
from commsim.scenario.plans.dense import Plan
from commsim.scenario.wish import Wish

Starts = NDArray[np.float64]
Simulate = Callable[[Plan, float, Wish, Framing | None, Starts], Result]


def flow(plan: Plan, size: float, wish: Wish, framing: Framing | None, starts: Starts) -> Result:
    """Simulate flows that share links max-min."""
    return plan.paths.simulate(
        size, starts=starts, framing=framing, trace=wish.trace, method=wish.method, flaps=wish.flaps
    )


def packet(plan: Plan, size: float, wish: Wish, framing: Framing | None, starts: Starts) -> Result:
    """Simulate packets and queues; packets have the rates of links, and no cap of their job."""
    from commsim.engine.packet.messages import simulate_messages

    paths = plan.paths
    if np.isfinite(paths.job.rate_cap):
        job = dataclasses.replace(paths.job, rate_cap=np.inf)
        paths = FlowPaths(paths.network, job, paths.routing, paths.seed)
    return simulate_messages(
        paths.plan, size, transport=wish.transport, fabric=wish.fabric, seed=wish.seed, flaps=wish.flaps,
        watch=wish.watch, framing=framing, trace=wish.trace, starts=starts,
    )[0]  # fmt: skip


def alpha_beta(plan: Plan, size: float, wish: Wish, framing: Framing | None, starts: Starts) -> Result:
    """Follow the critical path under LogGP; links are not shared."""
    from commsim.engine.alpha_beta import simulate_alpha_beta

    return simulate_alpha_beta(plan.plan, size, framing=framing, trace=wish.trace, starts=starts)[0]


SIMULATORS: Mapping[str, Simulate] = {"flow": flow, "packet": packet, "alpha-beta": alpha_beta}
