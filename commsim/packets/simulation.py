"""The packet engine as a simulation of the messages of a plan."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from commsim.core.result import Result
from commsim.engine.flow_paths import FlowPaths
from commsim.packets.messages import simulate_packets
from commsim.packets.packet_work import expect_messages, expect_packets
from commsim.prediction.plans.run import Simulation
from commsim.prediction.scenario import Wish


def simulation(paths: FlowPaths, wish: Wish) -> Simulation:
    """Simulate packets and queues; packets have the rates of links, and no cap of their job."""
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
