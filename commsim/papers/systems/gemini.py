"""Gemini: checkpoints in the memory of peers, probability of recovery, and traffic in idle spans.

References
----------
Wang et al., "GEMINI: fast failure recovery in distributed training with in-memory checkpoints", SOSP 2023, sections 2.2
(wasted time), 4 (placement and probability of recovery) and 5 (traffic in idle spans).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth, Bytes, Seconds
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
from commsim.training.parallel.pipeline_orders import one_forward_one_backward
from commsim.training.task_graph import simulate_graph
from commsim.training.timeline import TaskTimeline

from . import Answer, training_system

Spans = Sequence[tuple[float, float]]
MAX_PIECES = 10**6


@training_system("Wang et al., SOSP 2023")
def gemini(
    *,
    n_machines: int = 16,
    n_replicas: int = 2,
    n_failed: int = 2,
    size: Bytes = 10e9,
    bandwidth: Bandwidth = 50e9,
    buffer: Bytes = 128e6,
    alpha: Seconds = 1e-4,
    n_micro_batches: int = 8,
    forward: Seconds = 0.1,
    backward: Seconds = 0.2,
    activation: Bytes = 100e6,
    retrieval: Seconds = 2.0,
) -> Answer:
    """Gemini: checkpoints in the memory of peers, sent in the idle spans of a pipeline's iteration.

    Parameters
    ----------
    n_machines, n_replicas, n_failed : int
        Machines, copies of each checkpoint, and machines that fail at once.
    size : float, bytes
        Size of one machine's checkpoint.
    bandwidth : float, bytes/s
        Bandwidth of a machine.
    buffer : float, bytes
        Buffer on a GPU for what is on its way.
    alpha, retrieval : float, s
        Time to start each piece; time to read a checkpoint back.
    n_micro_batches : int
        Number of micro-batches of a 1F1B pipeline over the machines.
    forward, backward : float, s
        Time of a micro-batch on one stage.
    activation : float, bytes
        Size of what a micro-batch sends from stage to stage.

    Returns
    -------
    dict
        Probability of recovery (exact where the replicas divide the machines) and its published bound, iterations of
        one checkpoint, and the time that a failure wastes.
    """
    sets = placement_sets(n_machines, n_replicas)
    graph = pipeline_graph(
        one_forward_one_backward(n_machines, n_micro_batches), StageCosts(forward, backward, activation)
    )
    timeline = simulate_graph(graph, closed_form_costs(bandwidth=bandwidth))
    answer: Answer = {"recovery_bound": float(recovery_bound(n_machines, n_replicas, n_failed))}
    if n_machines % n_replicas == 0:
        answer["recovery_probability"] = float(recovery_probability(n_machines, n_replicas, n_failed))
    answer |= {"groups": len(set(sets)), "iteration_s": timeline.iteration_time}
    if n_replicas > 1:
        spans = network_idle(timeline, "gpu0")
        traffic = fit_checkpoint(spans, (n_replicas - 1) * size, bandwidth, buffer=buffer, alpha=alpha)
        interval = traffic.iterations * timeline.iteration_time
        answer |= {
            "idle_s": sum(end - start for start, end in spans),
            "pieces": len(traffic.pieces),
            "checkpoint_iterations": traffic.iterations,
            "wasted_s": wasted_time(interval, interval, retrieval, timeline.iteration_time),
        }
    return answer


def placement_sets(n_machines: int, n_replicas: int) -> tuple[frozenset[int], ...]:
    """Choose the machines that hold each machine's checkpoint, its own among them: groups of m, or mixed.

    When m divides N the machines of a group hold each other's. Else the last m + N mod m machines are a ring instead,
    in which each one's checkpoint is also on the m - 1 behind it.

    Returns
    -------
    tuple of frozenset of int
        Of each machine.

    Raises
    ------
    InputError
        Unless 1 <= replicas <= machines.
    """
    _require(n_machines, n_replicas)
    n, m = n_machines, n_replicas
    ring = m + n % m if n % m else 0
    first = n - ring
    sets = [frozenset(range(i // m * m, i // m * m + m)) for i in range(first)]
    sets += [frozenset(first + (i + j) % ring for j in range(m)) for i in range(ring)]
    return tuple(sets)


def recovery_probability(n_machines: int, n_replicas: int, n_failed: int) -> Fraction:
    """Probability that every checkpoint outlives the failure of k random machines at once, with groups of m.

    Exact, by inclusion and exclusion over the groups that are lost whole; below 2m failures only one can be, and that
    is the published 1 - N C(N-m, k-m) / (m C(N, k)).

    Raises
    ------
    InputError
        If m does not divide N, or k is not 0..N.
    """
    _require(n_machines, n_replicas)
    n, m, k = n_machines, n_replicas, n_failed
    if n % m or not 0 <= k <= n:
        raise InputError(f"groups of {m} need a multiple of as many machines, and 0..{n} of them fail; got {n} and {k}")
    lost = sum((-1) ** (j + 1) * comb(n // m, j) * comb(n - j * m, k - j * m) for j in range(1, k // m + 1))
    return 1 - Fraction(lost, comb(n, k))


def recovery_bound(n_machines: int, n_replicas: int, n_failed: int) -> Fraction:
    """Return the published lower bound with groups: 1 if k < m, else max(0, 1 - N C(N-m, k-m) / (m C(N, k)))."""
    _require(n_machines, n_replicas)
    n, m, k = n_machines, n_replicas, n_failed
    if not 0 <= k <= n:
        raise InputError(f"0..{n} of {n} machines fail, got n_failed={k}")
    return Fraction(1) if k < m else max(Fraction(0), 1 - Fraction(n * comb(n - m, k - m), m * comb(n, k)))


def wasted_time(checkpoint: float, interval: float, retrieval: float, iteration: float = 0.0) -> float:
    """Mean seconds of work and waiting that a failure costs: t_ckpt + interval/2 + t_retrieval.

    Raises
    ------
    InputError
        If the interval between checkpoints is shorter than a checkpoint or an iteration takes.
    """
    if not interval >= max(checkpoint, iteration):
        raise InputError(
            f"the interval must be at least a checkpoint ({checkpoint} s) and an iteration ({iteration} s), "
            f"got {interval} s"
        )
    return checkpoint + interval / 2 + retrieval


@dataclass(frozen=True, slots=True)
class CheckpointTraffic:
    """Pieces of a checkpoint in the idle spans of one iteration.

    Parameters
    ----------
    pieces : tuple of (float, float, float)
        Start [s], end [s] and bytes of each.
    iterations : int
        Number of iterations that one checkpoint takes: 1 when all of it fits into the idle spans of one.
    """

    pieces: tuple[tuple[float, float, float], ...]
    iterations: int


def idle_spans(busy: Spans, iteration: float) -> list[tuple[float, float]]:
    """Spans of an iteration in which the network carries nothing; `busy` may overlap and need not be sorted."""
    spans, until = [], 0.0
    for start, end in sorted(busy):
        if start > until:
            spans.append((until, min(start, iteration)))
        until = max(until, end)
    return [*spans, (until, iteration)] if until < iteration else spans


def network_idle(timeline: TaskTimeline, worker: str) -> list[tuple[float, float]]:
    """Spans of an iteration in which a worker, such as ``gpu0``, does not communicate."""
    busy = [
        (float(timeline.start[i]), float(timeline.end[i]))
        for i, task in enumerate(timeline.graph.tasks)
        if task.operation and any(resource.rpartition(".")[0] == worker for resource in task.resources)
    ]
    return idle_spans(busy, timeline.iteration_time)


def fit_checkpoint(
    spans: Spans, size: float, bandwidth: float, *, buffer: float, alpha: float = 0.0
) -> CheckpointTraffic:
    """Cut a checkpoint into pieces of at most a buffer, and put them into idle spans, first come first served.

    Parameters
    ----------
    spans : sequence of (start, end), s
        Idle, such as :func:`network_idle`.
    size : float, bytes
        Size of what one machine sends: (m - 1) times its checkpoint.
    bandwidth : float, bytes/s
        Bandwidth of a machine.
    buffer : float, bytes
        Buffer on a GPU for what is on its way.
    alpha : float, s
        Time to start each piece.

    Returns
    -------
    CheckpointTraffic
        When one iteration has too little room, its pieces fill it, and the checkpoint takes several.

    Raises
    ------
    InputError
        If a number is out of its range, or the spans have room for nothing at all.
    """
    if not (0 < size < math.inf and 0 < bandwidth < math.inf and buffer > 0 and 0 <= alpha < math.inf):
        raise InputError(
            f"a checkpoint needs a size, a bandwidth and a buffer of more than 0 and alpha of 0 or more, got {size}, "
            f"{bandwidth}, {buffer} and {alpha}"
        )
    if size / buffer > MAX_PIECES:
        raise InputError(f"a checkpoint of {size:g} bytes through a buffer of {buffer:g} is over {MAX_PIECES} pieces")
    pieces: list[tuple[float, float, float]] = []
    left, nothing = size, 1e-9 * size  # what rounding leaves over is no piece of its own
    for start, end in spans:
        now = start
        while left > nothing and (room := (end - now - alpha) * bandwidth) > 0:
            piece = min(left, buffer, room)
            until = end if piece == room else now + alpha + piece / bandwidth
            pieces.append((now, until, piece))
            now, left = until, left - piece
    sent = sum(piece for *_, piece in pieces)
    if not sent:
        raise InputError("no idle span of the iteration has room for a piece of the checkpoint")
    return CheckpointTraffic(tuple(pieces), 1 if left <= nothing else math.ceil(size / sent - 1e-9))


def _require(n_machines: int, n_replicas: int) -> None:
    if not 1 <= n_replicas <= n_machines:
        raise InputError(f"replicas must be 1..{n_machines}, the number of machines, got {n_replicas}")
