"""The packet engine: its options, and how it simulates the messages of a plan."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from commsim.core.result import Result
from commsim.engine.flow_paths import FlowPaths
from commsim.packets.flow_capture import FlowCapture
from commsim.packets.link_samples import LinkWatch
from commsim.packets.packet_work import expect_messages, expect_packets
from commsim.packets.run_packets import simulate_packets
from commsim.packets.transports.spraying import Spraying
from commsim.prediction.plans.run import Simulation
from commsim.prediction.scenario import Engine, Wish
from commsim.routing.flaps import Flaps


@dataclass(frozen=True, slots=True)
class PacketEngine(Engine):
    """Packets and queues.

    Parameters
    ----------
    transport : Spraying, optional
        Senders and switches.
    flaps : Flaps, optional
        Cables that go down during the run.
    watch : LinkWatch, optional
        Observer of links.
    capture : FlowCapture, optional
        Recorder of the packets of one flow.
    """

    NAME: ClassVar[str] = "packet"
    transport: Spraying | None = None
    flaps: Flaps | None = None
    watch: LinkWatch | None = None
    capture: FlowCapture | None = None

    def simulation(self, paths: FlowPaths, wish: Wish) -> Simulation:
        """Simulate packets and queues; packets have the rates of links, and no cap of their job."""
        expect_messages(paths.job.schedule)
        if np.isfinite(paths.job.rate_cap):
            job = dataclasses.replace(paths.job, rate_cap=np.inf)
            paths = FlowPaths(paths.network, job, paths.routing, paths.seed)

        def simulate(size: float, **options: Any) -> Result:
            expect_packets(paths.plan, size, self.transport)
            return simulate_packets(
                paths.plan, size, self.transport, seed=wish.seed, flaps=self.flaps, watch=self.watch,
                capture=self.capture, trace=wish.trace, **options,
            )[0]  # fmt: skip

        return simulate
