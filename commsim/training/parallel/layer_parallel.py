"""Iterations with expert parallelism (mixture of experts, sending priorities) and with tensor parallelism.

Expert parallelism. Every
layer sends its tokens to the ranks of their experts and back, in the forward and in the backward pass: four
all-to-alls, which computation waits for. The gradients of what is not an expert are all-reduced meanwhile, and only the
end of the iteration waits for them. One worker, ``gpu``, represents all ranks, which are alike.

What sharing costs: where all-to-all and one all-reduce have each a flow on every port, max-min fairness gives each at
least half, and all of it once the other is done. So an all-to-all that takes T_a by itself takes T_a + min(T_a, T_r)
beside an all-reduce of T_r: at most twice as long, and k all-reduces at a time make it at most 1 + k times as long.

With two micro-batches one computes while the tokens of the other are sent: attention of one hides the dispatch of the
other, experts of one the combine of the other.

Tensor parallelism. One
worker, ``gpu``, represents all of the group, which are alike. Communication and computation take turns: each needs
what the other has just made.

References
----------
Li et al., "Accelerating distributed MoE training and inference with Lina", USENIX ATC 2023, sections 3 and 4.
DeepSeek-AI, "DeepSeek-V3 technical report", 2024, section 3.2.1 and 3.4: two micro-batches that overlap.
Shoeybi et al., "Megatron-LM", arXiv 1909.08053, section 3: two all-reduces forward and two backward in each layer.
Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023, section 4.2.2: with
sequence parallelism each is a reduce-scatter and an all-gather, which move the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from commsim.core.errors import InputError
from commsim.training.task_graph import Task, TaskGraph, TaskTimeline, simulate_graph

MAX_PIECES = 50_000
# Bytes of a micro-op.
LINA_MICRO_OP = 30e6
# Operations that take tokens to their experts and back: of equal blocks, and of a routing.
EQUAL_BLOCKS, ROUTED = ("all_to_all", "all_to_all"), ("ep_dispatch", "ep_combine")


@dataclass(frozen=True, slots=True)
class ExpertLayer:
    """One layer of attention and experts on one rank.

    Parameters
    ----------
    attention, expert : float, s
        Forward times of what is not an expert, and of the experts.
    tokens : float, bytes
        Size of an all-to-all, as nccl-tests counts it: all that one rank sends, its own part too.
    gradients : float, bytes
        Size of the gradients of the weights that all ranks have.
    backward_ratio : float
        Backward over forward time.
    exchange : (str, str)
        Operations that take tokens to their experts and back; ``EQUAL_BLOCKS`` or ``ROUTED``.
    """

    attention: float
    expert: float
    tokens: float
    gradients: float
    backward_ratio: float = 2.0
    exchange: tuple[str, str] = EQUAL_BLOCKS


@dataclass(frozen=True, slots=True)
class SendingPolicy:
    """Priorities on the network.

    Parameters
    ----------
    name : str
        Name of the policy.
    micro_op : float, bytes
        Largest piece of a tensor; what is on its way is never stopped, so it is also what may be in the way.
    all_to_all_first : bool
        An all-reduce starts only when no all-to-all waits or runs; else what came first goes first.
    pipelined : bool
        An expert computes on a piece of the tokens as soon as that piece is there, and sends it back.
    micro_batches : int
        Equal parts of the batch, one of which computes while another one is sent.

    Raises
    ------
    InputError
        If the micro-op is not positive.
    """

    name: str
    micro_op: float = math.inf
    all_to_all_first: bool = False
    pipelined: bool = False
    micro_batches: int = 1

    def __post_init__(self) -> None:
        if not self.micro_op > 0:
            raise InputError(f"a micro-op must have more than 0 bytes, got {self.micro_op}")

    def pieces(self, size: float) -> int:
        """Micro-ops that a tensor is cut into."""
        return max(1, math.ceil(size / self.micro_op))


SENDING_POLICIES = {
    "fifo": SendingPolicy("fifo"),
    "priority": SendingPolicy("priority", all_to_all_first=True),
    "lina": SendingPolicy("lina", LINA_MICRO_OP, all_to_all_first=True, pipelined=True),
    "two_micro_batches": SendingPolicy("two_micro_batches", all_to_all_first=True, micro_batches=2),
}


def shared_slow_down(all_to_all: float, all_reduces: float | list[float]) -> float:
    """How much longer an all-to-all takes beside all-reduces that start with it and share every port with it fairly.

    Parameters
    ----------
    all_to_all : float, s
        Alone.
    all_reduces : float or list of float, s
        Alone, each; with k of them the answer is at most 1 + k.
    """
    others = all_reduces if isinstance(all_reduces, list) else [all_reduces]
    if not all_to_all > 0 or any(not other >= 0 for other in others):
        raise InputError(f"times must be positive, got {all_to_all} and {others}")
    return 1 + sum(min(1.0, other / all_to_all) for other in others)


def expert_row(
    layer: ExpertLayer, n_layers: int, n_ranks: int, policy: SendingPolicy, time_of: Callable[[Task], float]
) -> tuple[dict[str, Any], TaskTimeline]:
    """Simulate an iteration of equal layers.

    Parameters
    ----------
    layer, n_layers, n_ranks, policy
        Same as in :func:`expert_graph`.
    time_of : callable
        Seconds that a communication costs.

    Returns
    -------
    dict, TaskTimeline
        The JSON row, and when each task ran.
    """
    timeline = simulate_graph(expert_graph(layer, n_layers, n_ranks, policy), time_of)
    spent = dict.fromkeys((*layer.exchange, "all_reduce", ""), 0.0)
    for task, start, end in zip(timeline.graph.tasks, timeline.start, timeline.end, strict=True):
        spent[task.operation] += float(end - start)
    group = tuple(range(n_ranks))
    alone = [
        time_of(Task(op, (), operation=op, group=group, size=size)) if size and n_ranks > 1 else 0.0
        for op, size in ((layer.exchange[0], layer.tokens), ("all_reduce", layer.gradients))
    ]
    row = {
        "policy": policy.name,
        "iteration_s": timeline.iteration_time,
        "exposed_comm_s": timeline.exposed_communication,
        "all_to_all_s": sum(spent[name] for name in dict.fromkeys(layer.exchange)),
        "all_reduce_s": spent["all_reduce"],
        "compute_s": spent[""],
        "shared_slow_down": shared_slow_down(*alone) if alone[0] else 1.0,
    }
    return row, timeline


def expert_graph(layer: ExpertLayer, n_layers: int, n_ranks: int, policy: SendingPolicy) -> TaskGraph:
    """Graph of one iteration of equal layers.

    Parameters
    ----------
    layer : ExpertLayer
        What one layer takes.
    n_layers, n_ranks : int
        Number of layers and of ranks, at least 1 each.
    policy : SendingPolicy
        One of :data:`SENDING_POLICIES`, or another.

    Returns
    -------
    TaskGraph
        With ``gpu.compute`` and ``gpu.network``, which sends one thing at a time.

    Raises
    ------
    InputError
        If a count is not positive.
    """
    if n_layers < 1 or n_ranks < 1:
        raise InputError(f"layers and ranks must be at least 1, got {n_layers} and {n_ranks}")
    pieces = n_layers * (policy.pieces(layer.tokens) + policy.pieces(layer.gradients))
    if pieces > MAX_PIECES:
        raise InputError(f"an iteration is simulated with at most {MAX_PIECES} pieces of tensors, got {pieces}")
    tasks, m = _Tasks(n_ranks, policy, layer.exchange), policy.micro_batches
    parts = [f" of {part}" if m > 1 else "" for part in range(m)]
    size, back = layer.tokens / m, layer.backward_ratio
    done: list[tuple[int, ...]] = [()] * m
    for i in range(n_layers):
        for k, part in enumerate(parts):
            done[k] = (tasks.compute(f"forward attention {i}{part}", layer.attention / m, done[k]),)
            done[k] = tasks.experts(f"forward {i}{part}", layer.expert / m, size, done[k])
    for i in range(n_layers)[::-1]:
        for k, part in enumerate(parts):
            done[k] = tasks.experts(f"backward {i}{part}", layer.expert * back / m, size, done[k])
            done[k] = (tasks.compute(f"backward attention {i}{part}", layer.attention * back / m, done[k]),)
        tasks.send(f"gradients {i}", "all_reduce", layer.gradients, sum(done, ()), urgent=False)
    return TaskGraph(tasks.in_order())


class _Tasks:
    """Tasks so far, and how the policy cuts what they send."""

    def __init__(self, n_ranks: int, policy: SendingPolicy, exchange: tuple[str, str]) -> None:
        self._tasks: list[Task] = []
        self._group, self._policy, self._exchange = tuple(range(n_ranks)), policy, exchange

    def in_order(self) -> tuple[Task, ...]:
        return tuple(self._tasks)

    def compute(self, name: str, seconds: float, after: tuple[int, ...]) -> int:
        self._tasks.append(Task(name, ("gpu.compute",), seconds, after=after))
        return len(self._tasks) - 1

    def send(self, name: str, operation: str, size: float, after: tuple[int, ...], *, urgent: bool) -> tuple[int, ...]:
        """Write the pieces of one tensor; returns them."""
        n = self._policy.pieces(size)
        late = int(self._policy.all_to_all_first and not urgent)
        piece = Task(name, ("gpu.network",), operation=operation, group=self._group, size=size / n, priority=late,
                     after=after)  # fmt: skip
        first = len(self._tasks)
        if size and len(self._group) > 1:
            self._tasks += [replace(piece, name=f"{name} {i}") if n > 1 else piece for i in range(n)]
        return tuple(range(first, len(self._tasks))) or after

    def experts(self, name: str, seconds: float, size: float, after: tuple[int, ...]) -> tuple[int, ...]:
        """Write dispatch, experts and combine; piece by piece when the policy pipelines them."""
        n = self._policy.pieces(size) if self._policy.pipelined else 1
        parts = [f"{name} {i}" if n > 1 else name for i in range(n)]
        # all pieces are dispatched before any is combined where both could go: an expert without tokens is idle
        sent = [self.send(f"dispatch {part}", self._exchange[0], size / n, after, urgent=True) for part in parts]
        done: list[int] = []
        for part, pieces in zip(parts, sent, strict=True):
            computed = self.compute(f"expert {part}", seconds / n, pieces)
            done += self.send(f"combine {part}", self._exchange[1], size / n, (computed,), urgent=True)
        return tuple(done)


@dataclass(frozen=True, slots=True)
class TransformerLayer:
    """Times and size of one layer on one rank of the group.

    Parameters
    ----------
    attention, mlp : float, s
        Forward time of the two blocks, as split among the ranks.
    activation : float, bytes
        Size of the layer's output: batch x sequence x hidden x bytes of a number.
    backward_ratio : float
        Backward over forward time.
    """

    attention: float
    mlp: float
    activation: float
    backward_ratio: float = 2.0


def tensor_parallel_graph(
    layer: TransformerLayer, n_layers: int, n_ranks: int, *, sequence_parallel: bool = False
) -> TaskGraph:
    """Graph of one iteration of equal layers.

    Parameters
    ----------
    layer : TransformerLayer
        What one layer takes.
    n_layers, n_ranks : int
        Layers, and ranks of the group; with one rank nothing is sent.
    sequence_parallel : bool
        All-gather before and reduce-scatter after each block, instead of an all-reduce after it (forward) or of its
        input's gradient (backward). The input that the backward pass gathers again is left out: it is sent while the
        gradient of the block's input is computed.

    Returns
    -------
    TaskGraph
        All tasks one after the other.

    Raises
    ------
    InputError
        If a count is not positive.
    """
    if n_layers < 1 or n_ranks < 1:
        raise InputError(f"layers and ranks must be at least 1, got {n_layers} and {n_ranks}")
    tasks: list[Task] = []
    before, behind = ("all_gather", "reduce_scatter") if sequence_parallel else ("", "all_reduce")

    def add(name: str, duration: float = 0.0, operation: str = "") -> None:
        if name and (not operation or n_ranks > 1):
            tasks.append(
                Task(
                    name,
                    ("gpu.network" if operation else "gpu.compute",),
                    duration,
                    operation,
                    tuple(range(n_ranks)) if operation else (),
                    layer.activation if operation else 0.0,
                    after=(len(tasks) - 1,) if tasks else (),
                )
            )

    blocks = (("attention", layer.attention), ("mlp", layer.mlp))
    for backward in (False, True):
        for i in range(n_layers)[:: -1 if backward else 1]:
            for block, seconds in blocks[:: -1 if backward else 1]:
                what = f"{'backward' if backward else 'forward'} {block} {i}"
                add(before and f"{before} {what}", operation=before)
                add(what, seconds * (layer.backward_ratio if backward else 1.0))
                add(f"{behind} {what}", operation=behind)
    return TaskGraph(tuple(tasks))
