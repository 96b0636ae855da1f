"""Priorities: layers that the next forward pass needs first overtake the others; ByteScheduler and P3."""

from __future__ import annotations

import functools

from commsim.core.units import Bytes
from commsim.training.data_parallel_setting import COMPUTE, TrainingSetting, backward_tasks, forward_tasks
from commsim.training.task_graph import Task, TaskGraph
from commsim.training.tensor_queue import Discipline, send_in_order

from . import training_policy


@training_policy
def bytescheduler(
    setting: TrainingSetting,
    *,
    partition: Bytes = 32e6,
    credit: Bytes = 64e6,
    priority: bool = True,
    barrier: bool = False,
) -> TaskGraph:
    """ByteScheduler: partitions by priority with credit; each layer's forward pass waits for its own gradients only.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs.
    partition : float, bytes
        Largest message; 8 million numbers, what the code suggests for all-reduce.
    credit : float, bytes
        How much may be under way, and so is not overtaken any more; 16 million numbers.
    priority, barrier : bool
        Whether front layers overtake; whether the forward pass waits for all gradients.

    References
    ----------
    Peng et al., "A generic communication scheduler for distributed DNN training acceleration", SOSP 2019, section 4.
    """
    return _scheduled(setting, Discipline(True, partition, priority, credit, barrier))


@training_policy
def p3(setting: TrainingSetting, *, partition: Bytes = 200e3) -> TaskGraph:
    """P3: small slices by priority, one at a time; each layer's forward pass waits for its own gradients only.

    Parameters
    ----------
    setting : TrainingSetting
        Gradients, workers and costs.
    partition : float, bytes
        Size of a slice; 50 thousand numbers.

    References
    ----------
    Jayarajan et al., "Priority-based parameter propagation for distributed DNN training", MLSys 2019. Its workers push
    to and pull from servers; here a slice costs what the setting's all-reduce does.
    """
    return _scheduled(setting, Discipline(True, partition, True, partition, barrier=False))


def _scheduled(setting: TrainingSetting, discipline: Discipline) -> TaskGraph:
    """Graph whose messages follow each other in the order that the queue decides.

    The queue decides as it goes, by what its costs are; the graph keeps the order.
    """
    trace = setting.trace
    last = len(trace.n_bytes) - 1

    @functools.cache
    def cost(n_bytes: float) -> float:
        task = setting.exchange("part", "all_reduce", n_bytes, ())
        return task.duration + setting.time_of(task)

    tasks = backward_tasks(trace)
    arrived = [0] * len(tasks)  # the last message of each tensor
    for message in send_in_order(trace, discipline, cost):
        before = (len(tasks) - 1,) if len(tasks) > last + 1 else ()
        name = f"{trace.name(message.tensor)}, part {message.part}"
        arrived[message.tensor] = len(tasks)
        tasks.append(
            setting.exchange(name, "all_reduce", message.n_bytes, (message.tensor, *before), tensors=(message.tensor,))
        )
    if discipline.barrier:
        return TaskGraph((*tasks, *forward_tasks(trace, len(tasks), (last, len(tasks) - 1))))
    done = last
    for tensor in range(last, -1, -1):
        waits: tuple[int, ...] = (done, arrived[tensor])
        if trace.update[tensor]:  # a layer is updated just before it is needed
            tasks.append(Task(f"update {trace.name(tensor)}", (COMPUTE,), float(trace.update[tensor]), after=waits))
            waits = (len(tasks) - 1,)
        name, seconds = f"forward {trace.name(tensor)}", float(trace.forward[tensor])
        tasks.append(Task(name, (COMPUTE,), seconds, after=waits))
        done = len(tasks) - 1
    return TaskGraph(tuple(tasks))
