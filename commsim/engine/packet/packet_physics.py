"""What no run of packets may contradict: capacity and causality, but for half a picosecond of rounding per packet."""

from __future__ import annotations

import numpy as np

from commsim.core.errors import PhysicsError
from commsim.engine.flow_plan import FlowPlan, FlowTimes
from commsim.engine.physics import SLACK, check_order

from . import packet_state as s
from .fabric import PS


def check_packets(plan: FlowPlan, times: FlowTimes, tables: s.Tables) -> None:
    """Raise if a link carried more than it can, a message was too fast or out of order, or packets vanished.

    Raises
    ------
    PhysicsError
        Naming the link or the transfer.
    """
    if not len(times.done):
        return
    link, network = tables.link, plan.network
    end = tables.clock[s.NOW] / PS
    slack = SLACK * end + (link["n_packets"].max(initial=0) + 16) / PS
    busy = link["n_bytes"] / network.bandwidth
    if (busy > end + slack).any():
        worst = int(busy.argmax())
        raise PhysicsError(f"link {network.link_name(worst)} carried {busy[worst]} s of bytes in {end} s")
    crosses = np.diff(plan.routes.first) > 0
    slowest = np.full(len(plan.ends), np.inf)
    np.minimum.at(slowest, np.repeat(np.arange(len(crosses)), np.diff(plan.routes.first)),
                  network.bandwidth[plan.routes.link])  # fmt: skip
    src = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends[:, 0]]
    alone = (np.where(crosses, network.overhead[src] + plan.routes.latency, 0.0))[plan.connection_of]
    alone += times.bytes_on_wire / slowest[plan.connection_of]
    early = alone - (times.done - times.start)
    if early.max() > slack:
        i = int(early.argmax())
        raise PhysicsError(f"transfer {i} took {times.done[i] - times.start[i]} s, which alone takes {alone[i]} s")
    check_order(plan, times, slack)
    count = np.bincount(_in_queues(tables), minlength=len(link))
    if (link["n_queued"] != link["n_packets"] + count).any():
        raise PhysicsError(f"packets vanished from {(link['n_queued'] != link['n_packets'] + count).sum()} queues")


def _in_queues(tables: s.Tables) -> list[int]:
    """Link of every packet that still waits in a queue."""
    waiting = []
    for number in np.flatnonzero(tables.link["head"] >= 0):
        p = tables.link["head"][number]
        while p >= 0:
            waiting.append(int(number))
            p = tables.packet["next"][p]
    return waiting
