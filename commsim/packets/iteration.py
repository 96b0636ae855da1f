"""Messages and tasks that wait for each other, packet by packet: an iteration of training in one run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.engine.flow import payload
from commsim.engine.flow_plan import FlowPlan
from commsim.engine.flow_times import FlowTimes
from commsim.engine.message_costs import refuse_curves
from commsim.packets.aggregated.packet_job import priority_ranks
from commsim.packets.event_rows import PS
from commsim.packets.finished_run import check_run, link_bytes, times_of
from commsim.packets.hosts.tasks import Tasks, with_tasks
from commsim.packets.hosts.work import lay_out
from commsim.packets.run_loop import run_fabric
from commsim.packets.tables import build
from commsim.packets.transports.spraying import Spraying


@dataclass(frozen=True, slots=True, eq=False)
class StepRun:
    """What happened.

    Parameters
    ----------
    times : FlowTimes
        When each message started, was sent and was complete.
    start, end : float64[n_tasks], s
        When each task did.
    link_bytes : float64[n_links], bytes
        Bytes on the wire that left each link.
    packets, packet_hops : int
        Data packets sent, and packets that arrived at the end of a link, answers included.
    cpu : float, s
        Time of the simulation proper.
    """

    times: FlowTimes
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    link_bytes: NDArray[np.float64]
    packets: int
    packet_hops: int
    cpu: float


def run_step(plan: FlowPlan, sizes: ArrayLike, tasks: Tasks, how: Spraying, *, seed: int = 0) -> StepRun:
    """Simulate all jobs of a plan and tasks together; jobs begin when nothing that their messages wait for is left.

    Parameters
    ----------
    plan : FlowPlan
        What is sent.
    sizes : float64[n_jobs], bytes
        Size of each job's collective.
    tasks : Tasks
        What takes time, and who waits for whom, by number of the plan's transfers, then of tasks.
    how : Spraying
        Transport, load balancing and switches.
    seed : int
        Seed of all random draws.

    Raises
    ------
    InputError
        If the plan or the network needs what the transport does not have.
    PhysicsError
        If the result contradicts capacity or causality, bytes were not delivered once, or tasks wait in a circle.
    """
    how = dataclasses.replace(how, seed=seed)
    network, n_flows, n_messages = plan.network, len(plan.ends), len(plan.connection_of)
    refuse_curves(network, "the packet engine takes messages that cost a line", "the engine flow or alpha-beta")
    ranks = priority_ranks([job.priority for job in plan.jobs], how.fabric)
    starts = np.zeros(plan.n_participants)
    laid = lay_out(plan, payload(plan, sizes), starts, [how], np.zeros(n_flows, np.uint8), ranks)
    tables, cpu = run_fabric(laid, build(laid._replace(work=with_tasks(laid.work, tasks))))
    fabric = tables.fabric
    start, _, end = fabric.times[:, n_messages:] / PS
    fabric = fabric._replace(
        flow=fabric.flow[:n_flows], message=fabric.message[:n_messages], times=fabric.times[:, :n_messages]
    )
    times = times_of(fabric)
    check_run(laid, fabric, times)
    carried, state = link_bytes(laid, fabric, times), fabric.state
    return StepRun(times, start, end, carried, int(state["n_sent"]), int(state["packet_hops"]), cpu)
