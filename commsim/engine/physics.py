"""What no simulated result may contradict: capacity and causality, to a relative slack of 1e-9."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import PhysicsError
from commsim.core.jit import expected_work
from commsim.core.schedule import REDUCE

from .flow_job import SLACK, check_links
from .flow_plan import FlowPlan
from .flow_times import FlowTimes, link_bytes
from .message_costs import MessageCosts

Times = NDArray[np.float64]
# Steps of the kernel for each transfer and each that waits for it, or more.
STEPS = 20


def check_physics(plan: FlowPlan, times: FlowTimes, costs: MessageCosts | None = None) -> None:
    """Raise if a link carried more than it can, or a transfer was faster than by itself or out of order.

    The bytes that a link carried over its capacity bound the whole run from below; the time that each transfer takes
    without others, added up along what waits for what, is the schedule's critical path.

    Parameters
    ----------
    plan, times : FlowPlan, FlowTimes
        What was simulated, and what came out.
    costs : MessageCosts, optional
        Costs of a network with measured curves.

    Raises
    ------
    PhysicsError
        Naming the link or the transfer.
    """
    if not len(times.done):
        return
    for name in ("bytes_on_wire", "start", "sent", "done"):  # else NaN would pass every comparison below
        bad = np.flatnonzero(~np.isfinite(getattr(times, name)))
        if bad.size:
            raise PhysicsError(f"transfer {bad[0]} has {name} = {getattr(times, name)[bad[0]]}")
    span = times.done.max() - times.start.min()
    slack = SLACK * max(span, abs(times.done.max()))
    check_links(plan.network, link_bytes(plan, times), span, slack)
    _check_alone(plan, times, costs, slack)
    check_order(plan, times, slack)


def _check_alone(plan: FlowPlan, times: FlowTimes, costs: MessageCosts | None, slack: float) -> None:
    connection = plan.connection_of
    rate = plan.routes.rates(plan.network)
    crosses = np.diff(plan.routes.first) > 0
    nodes = _nodes(plan)
    _require(times.start, times.ready[connection], slack, "started")
    if costs is not None and plan.network.curves is not None:
        slower = np.maximum(1.0, plan.network.curves.bandwidth / rate)[connection]
        _require(times.sent - times.start, costs.occupancy * slower, slack, "sent")
        _require(times.done - times.sent, costs.flight, slack, "complete")
        return
    least = times.bytes_on_wire / rate[connection]
    overhead = _overheads(plan, nodes)
    least += np.where(crosses, overhead[:, 0], 0.0)[connection]
    _require(times.sent - times.start, least, slack, "sent")
    least = plan.network.gamma[nodes[:, 1]][connection]
    least *= times.bytes_on_wire
    least *= plan.op == REDUCE
    least += np.where(crosses, plan.connection["latency"] + overhead[:, 1], 0.0)[connection]
    _require(times.done - times.sent, least, slack, "complete")


def _require(took: Times, least: Times, slack: float, what: str) -> None:
    late = least - took
    if late.max() > slack:
        i = int(late.argmax())
        raise PhysicsError(f"transfer {i} was {what} after {took[i]} s, but takes at least {least[i]} s")


def check_order(plan: FlowPlan, times: FlowTimes, slack: float) -> None:
    """Raise if a transfer did not wait for what it had to."""
    from .predecessors_kernel import find_too_early

    of_transfers = times.start, times.sent, times.done
    with expected_work(STEPS * (len(times.start) + len(plan.successors[1])), first=True):
        before, after, waits = find_too_early(of_transfers, plan.successors, plan.queue, plan.connection_of, slack)
    if waits:
        raise PhysicsError(f"transfer {after} started before transfer {before}, which it waits for, ended")
    if before >= 0:
        raise PhysicsError("two transfers of one connection overlap")


def _overheads(plan: FlowPlan, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return what each connection's messages take of the ports at its ends: float64[n_connections, 2], s."""
    ends = nodes.T
    overheads = np.stack((plan.network.overhead[ends[0]], plan.network.recv_overhead[ends[1]]), axis=1)
    for j, job in enumerate(plan.jobs):
        if job.network is not None:
            mine = plan.job_of_connection == j
            overheads[mine, 0] = job.network.overhead[ends[0, mine]]
            overheads[mine, 1] = job.network.recv_overhead[ends[1, mine]]
    return overheads


def _nodes(plan: FlowPlan) -> NDArray[np.int32]:
    """Return the source and the destination of each connection: int32[n_connections, 2]."""
    nodes: NDArray[np.int32] = np.concatenate([job.placement.nodes for job in plan.jobs])[plan.ends]
    return nodes
