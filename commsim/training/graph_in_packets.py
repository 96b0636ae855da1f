"""A graph of tasks played packet by packet in one run: exchanges meet on links, and computation waits for them.

Each resource does its tasks in the order in which :func:`commsim.training.task_graph.simulate_graph` does them, with
exchanges that cost what the flow engine says by itself: a program fixes that order before packets are sent.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.engine.flow_job import FlowJob, number_of
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.packets.hosts.tasks import Tasks
from commsim.packets.iteration import StepRun, run_step
from commsim.packets.transports.spraying import Spraying

from .cost_by_simulation import NetworkCosts
from .task_graph import Task, TaskGraph, simulate_graph
from .timeline import TaskTimeline


@dataclass(frozen=True, slots=True, eq=False)
class PacketStep:
    """A graph's run, and what it took.

    Parameters
    ----------
    timeline : TaskTimeline
        When each task started and ended.
    run : StepRun
        Messages, links and counts.
    """

    timeline: TaskTimeline
    run: StepRun


def play_graph(graph: TaskGraph, costs: NetworkCosts, how: Spraying, *, seed: int = 0) -> PacketStep:
    """Play a graph packet by packet.

    Parameters
    ----------
    graph : TaskGraph
        Tasks; at least one communicates.
    costs : NetworkCosts
        Network, placement and algorithms of its exchanges.
    how : Spraying
        Transport, load balancing and switches.
    seed : int
        Seed of all random draws.

    Raises
    ------
    InputError
        Without an exchange, or if what one sends depends on its tensors.
    PhysicsError
        As in :func:`commsim.packets.iteration.run_step`.
    """
    sends = [k for k, task in enumerate(graph.tasks) if task.operation]
    if not sends:
        raise InputError("no task of the graph communicates; there is nothing to play packet by packet")
    from commsim.packets.packet_work import expect_packets

    sizes = [costs.size(graph.tasks[k]) for k in sends]
    jobs = [_job(graph.tasks[k], costs) for k in sends]
    plan = plan_flows(costs.network, jobs, seed=seed)
    expect_packets(plan, sizes, how)
    tasks, begins, ends = _tasks(graph, costs, plan, sends)
    run = run_step(plan, sizes, tasks, how, seed=seed)
    return PacketStep(TaskTimeline(graph, run.start[begins], run.end[ends]), run)


def _job(task: Task, costs: NetworkCosts) -> FlowJob:
    """Return what a task sends; its paths are those of its operation and group, whenever it does."""
    job = costs.job(task)
    return dataclasses.replace(job, number=number_of(f"{task.operation} {task.group}"))


def _tasks(
    graph: TaskGraph, costs: NetworkCosts, plan: FlowPlan, sends: list[int]
) -> tuple[Tasks, NDArray[np.int64], NDArray[np.int64]]:
    """Lay out tasks; return them with the numbers of what begins and what ends each task of the graph.

    A computation is one task; an exchange begins with one that takes no time, and ends with one.
    """
    n, n_messages = len(graph.tasks), len(plan.connection_of)
    duration = np.zeros(n + len(sends))
    duration[:n] = [task.duration for task in graph.tasks]
    ends = np.arange(n)
    begins = ends.copy()
    begins[sends] = n + np.arange(len(sends))
    edges = [np.array(_pairs(graph, costs), np.int64).reshape(-1, 2).T + 0]
    edges[0] = np.stack((ends[edges[0][0]], begins[edges[0][1]])) + n_messages
    for k, mine in zip(sends, plan.transfers_of, strict=True):
        messages = np.arange(mine.start, mine.stop)
        first = messages[plan.waiting[mine] == 0]
        edges.append(np.stack((np.full(len(first), n_messages + begins[k]), first)))
        edges.append(np.stack((messages, np.full(len(messages), n_messages + ends[k]))))
        if not len(messages):  # one rank has nothing to send
            edges.append(np.array([[n_messages + begins[k]], [n_messages + ends[k]]]))
    before, after = np.concatenate(edges, axis=1)
    return Tasks(duration, before, after), begins, ends


def _pairs(graph: TaskGraph, costs: NetworkCosts) -> list[tuple[int, int]]:
    """Return who waits for whom: what each task is after, and the one before it on each of its resources."""
    order = simulate_graph(graph, costs)
    pairs = {(j, i) for i, task in enumerate(graph.tasks) for j in task.after}
    of_resource: dict[str, list[int]] = defaultdict(list)
    for i in np.lexsort((np.arange(len(graph.tasks)), order.end, order.start)).tolist():
        for resource in graph.tasks[i].resources:
            pairs.update((j, i) for j in of_resource[resource][-1:])
            of_resource[resource].append(i)
    return sorted(pairs)
