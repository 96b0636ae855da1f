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
from commsim.engine.packet.aggregated.packet_job import priority_ranks
from commsim.engine.packet.finished_run import check_run, leg_bytes, times_of
from commsim.engine.packet.hosts.tasks import Tasks, work_with_tasks
from commsim.engine.packet.hosts.work import from_ports, paths_of, work_of_plan
from commsim.engine.packet.links.ports import has_ports
from commsim.engine.packet.links.ways import ways_of, ways_of_paths
from commsim.engine.packet.packet_run import require_finished, run_fabric
from commsim.engine.packet.packet_state import PS
from commsim.engine.packet.tables import build
from commsim.engine.packet.transports.spraying import Spraying, in_packets


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
    how = dataclasses.replace(in_packets(how, None), seed=seed)
    network, n_flows, n_messages = plan.network, len(plan.ends), len(plan.connection_of)
    refuse_curves(network, "the packet engine takes messages that cost a line", "the engine flow or alpha-beta")
    ranks = priority_ranks([job.priority for job in plan.jobs], how.fabric)
    hows, rule, ported = [how], np.zeros(n_flows, np.uint8), None
    if not how.on_path and has_ports(network):
        ported, hows, rule = from_ports(plan, hows, rule)
        plan, network = ported.plan, ported.plan.network
    paths = paths_of(plan, hows, rule, ranks) if any(one.on_path for one in hows) else None
    ports = None if ported is None else (ported.src, ported.dst)
    if ported is not None:
        ways = ported.ways
    elif paths is None:
        ways = ways_of(network)
    else:
        ends = np.concatenate([job.placement.nodes for job in plan.jobs])
        ways = ways_of_paths(network, paths.there, paths.back, ends=ends)
    n_bytes, starts = payload(plan, sizes), np.zeros(plan.n_participants)
    sent = work_of_plan(plan, n_bytes, starts, ways, hows, ranks, paths, rule, ports)
    sent = dataclasses.replace(sent, job=np.zeros(n_flows, np.int32), n_jobs=1)  # bytes by link, not by job
    tables, finished, cpu = run_fabric(
        build(network, ways, work_with_tasks(sent, tasks), how, others=hows[1:]), (), np.zeros(0, np.int64)
    )
    require_finished(tables, finished, network, ways)
    fabric = tables.fabric
    of_tasks = fabric.message[n_messages:]
    fabric = fabric._replace(flow=fabric.flow[:n_flows], message=fabric.message[:n_messages])
    times = times_of(fabric)
    check_run(plan, ways, sent, fabric, times, None)
    link_bytes = np.zeros(network.n_links)
    link_bytes[ways.links] = fabric.link["n_bytes"][: len(ways.links)]
    if ported is not None:
        link_bytes += leg_bytes(plan, ported.legs, times)
    state = fabric.state
    return StepRun(
        times, of_tasks["start"] / PS, of_tasks["done"] / PS, link_bytes, int(state["n_sent"]),
        int(state["packet_hops"]), cpu,
    )  # fmt: skip
