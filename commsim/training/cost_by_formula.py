"""Costs of the communications of a graph by closed form: rings and chains without contention."""

from __future__ import annotations

import math
from collections.abc import Callable

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.operations import operation

from .task_graph import Task

CHAINS = ("broadcast", "reduce")


def closed_form_costs(
    alpha: float = 0.0, bandwidth: float = math.inf, gamma: float = 0.0, framing: Framing | None = None
) -> Callable[[Task], float]:
    """Costs of rings without contention: steps x alpha + busbw factor x bytes / bandwidth + gamma x bytes reduced.

    Rings for all-reduce, reduce-scatter, all-gather and the exchanges; broadcast and reduce are pipelined chains at the
    limit of many chunks, S/B, whose n - 1 steps are paid once; a barrier takes ceil(log2 n) steps.

    Parameters
    ----------
    alpha : float, s
        Time of each step: latency, and overhead of a message.
    bandwidth : float, bytes/s
        Bandwidth of each rank, one way.
    gamma : float, s/byte
        Time to add a byte; it is not hidden behind sending.
    framing : Framing, optional
        Packets of the message of each step; default: bytes only.

    Returns
    -------
    callable
        From a task to seconds, for :func:`commsim.training.task_graph.simulate_graph`; a computation costs its
        duration.

    Raises
    ------
    InputError
        If a number is out of its range; the callable raises it for an operation that it does not know.
    """
    if not (0 <= alpha < math.inf and bandwidth > 0 and 0 <= gamma < math.inf):
        raise InputError(f"alpha and gamma must be 0 or more, bandwidth positive, got {alpha}, {gamma}, {bandwidth}")

    framing = framing or Framing()

    def cost(task: Task) -> float:
        n = len(task.group)
        if not task.operation:
            return task.duration
        if task.operation == "send":
            return alpha + float(framing.on_wire(task.size)) / bandwidth
        factor = operation(task.operation).busbw_factor(n) if n > 1 else 0.0
        added = {"all_reduce": (n - 1) / n, "reduce_scatter": (n - 1) / n, "reduce": float(n > 1)}
        steps = _steps(task.operation, n)
        messages = 1 if task.operation in CHAINS else steps  # a chain's many chunks are taken as one message
        sent = factor * task.size
        if framing.header and messages:
            sent = messages * float(framing.on_wire(sent / messages))
        return steps * alpha + sent / bandwidth + added.get(task.operation, 0.0) * task.size * gamma

    return cost


def _steps(name: str, n: int) -> int:
    """Messages one after the other."""
    if name == "all_reduce":
        return 2 * (n - 1)
    if name == "barrier":
        return (n - 1).bit_length()
    return min(1, n - 1) if name == "send_recv" else n - 1
