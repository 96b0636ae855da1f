"""Messages between hosts as a plan, which every engine that simulates schedules can run.

A host of a pattern is what a rank would sit on: a GPU of a machine with parts, else a host with all its links.
"""

from __future__ import annotations

import numpy as np

from commsim.core.data_order.dependencies import Dependencies
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.schedule import TRANSFER, Block, Schedule
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.engine.job_connections import JobConnections
from commsim.packets.finished_run import PacketRun
from commsim.packets.run_packets import run_packets
from commsim.packets.transports.spraying import Spraying
from commsim.routing.flaps import Flaps
from commsim.traffic.patterns import HostMessages


def plan_messages(
    network: Network, messages: HostMessages, *, name: str = "messages", routing: str | None = None, seed: int = 0
) -> FlowPlan:
    """Lay out messages as a schedule without dependencies but those of a window, each with a connection of its own.

    Parameters
    ----------
    network : Network
        Network that carries them.
    messages : HostMessages
        Who sends what to whom. Message `i` goes from participant `2 i` to `2 i + 1`, so that each end has its start.
    name : str
        Name of the schedule.
    routing, seed : str, int
        Same as in :func:`commsim.engine.flow_plan.plan_flows`.
    """
    from commsim.core.data_order.dependencies_kernel import FENCE

    n = len(messages.src)
    transfers = np.zeros(n, TRANSFER)
    transfers["src"], transfers["dst"] = np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2)
    transfers["count"] = 1
    schedule = Schedule(name, "custom", 2 * n, 0, 1, 0, (Block(transfers, 1),))
    nodes = network.endpoints[np.stack((messages.src, messages.dst), axis=1).ravel()]
    job = FlowJob(schedule, Placement(nodes), messages=lambda _: messages.nbytes.astype(np.float64))
    of_job = JobConnections(network, job, routing, seed)
    # ranks have a host each, and hosts may have many messages
    vars(of_job)["transfers"] = schedule.blocks[0].body
    if messages.after is not None:
        waits = messages.after >= 0
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(waits, dtype=np.int64)))
        pred = messages.after[waits].astype(np.int32)
        vars(of_job)["waits"] = Dependencies(first, pred, np.full(len(pred), FENCE, np.uint8))
    return plan_flows(network, [job], routing=routing, seed=seed, shared=of_job)


def run_messages(network: Network, messages: HostMessages, how: Spraying, flaps: Flaps | None = None) -> PacketRun:
    """Send messages over a network, packet by packet.

    Parameters
    ----------
    network, messages : Network, HostMessages
        Same as in :func:`plan_messages`.
    how : Spraying
        Transport, load balancing and switches.
    flaps : Flaps, optional
        Cables between switches that go down for a while.

    Raises
    ------
    InputError
        If the network has no switches between hosts, or a flap begins after the run.
    """
    plan = plan_messages(network, messages, seed=how.seed)
    starts = np.repeat(messages.start, 2)
    return run_packets(plan, float(messages.nbytes.sum()), how, starts=starts, seed=how.seed, flaps=flaps)
