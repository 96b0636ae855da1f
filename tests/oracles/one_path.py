"""Packets that keep to one path, as tests write them: a transport, what it meets, and a run."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

from commsim.engine.flow_plan import FlowPlan
from commsim.packets import run_packets as messages
from commsim.packets.finished_run import PacketRun
from commsim.packets.links.queues import ACK_BYTES, ROCE, Fabric, usual_queues
from commsim.packets.transports.spraying import Spraying, over_path


@dataclass(frozen=True)
class OnePath:
    """A transport over one path, with the queues that it usually meets."""

    name: str
    window: float | None = None
    ack_every: int | None = None
    rto: float | None = None
    ack_bytes: int = ACK_BYTES
    recovery: str = "selective"

    def on(self, plan: FlowPlan, fabric: Fabric | None = None, framing: Any = None, sample: float = 0.0) -> Spraying:
        """Return how the packets of a plan are sent."""
        fabric = fabric or usual_queues(self.name, float(plan.network.bandwidth.max(initial=1.0)))
        how = over_path(
            self.name, fabric=fabric, window=self.window, ack_every=self.ack_every, rto=self.rto,
            ack_bytes=self.ack_bytes, recovery=self.recovery, framing=framing or ROCE,
        )  # fmt: skip
        return dataclasses.replace(how, sample=sample)


Window, Dctcp, Dcqcn = (functools.partial(OnePath, name) for name in ("window", "dctcp", "dcqcn"))


def play(
    plan: FlowPlan, sizes: Any, *, transport: OnePath | None = None, fabric: Fabric | None = None, framing: Any = None,
    sample_every: float = 0.0, **options: Any,
) -> PacketRun:  # fmt: skip
    """Run a plan, and keep all that was recorded."""
    how = (transport or Window()).on(plan, fabric, framing, sample_every)
    return messages.run_packets(plan, sizes, how, **options)


def results_of(
    plan: FlowPlan, sizes: Any, *, transport: OnePath | None = None, fabric: Fabric | None = None, framing: Any = None,
    **options: Any,
) -> Any:  # fmt: skip
    """Run a plan, and return the results of its jobs."""
    return messages.simulate_packets(plan, sizes, (transport or Window()).on(plan, fabric, framing), **options)
