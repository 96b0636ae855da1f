"""HetPipe: virtual workers of several unlike GPUs, pipelines inside, and a parameter server between them.

A virtual worker pushes once per wave, which is as many mini-batches as its pipeline holds; it may start a wave while
others are at most D waves behind, as :func:`commsim.workload.staleness.run_workers` has it.

References
----------
Park et al., "HetPipe: enabling large DNN training on (whimpy) heterogeneous GPU clusters", USENIX ATC 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from commsim.core.errors import InputError

from ..staleness import Progress, run_workers

ALLOCATIONS = ("node", "equal")


def virtual_workers(speeds: Sequence[Sequence[float]], allocation: str) -> list[tuple[float, ...]]:
    """Make virtual workers of the GPUs of nodes.

    Parameters
    ----------
    speeds : sequence of sequence of float
        Of each GPU of each node.
    allocation : {"node", "equal"}
        Each node is a virtual worker, whose GPUs talk inside the node; or each virtual worker has one GPU of every
        node, so that all are equal and none waits for a straggler.

    Raises
    ------
    InputError
        If the allocation is unknown, or nodes are unequal in number where they must not be.
    """
    if allocation not in ALLOCATIONS:
        raise InputError(f"unknown allocation {allocation!r}; known: {', '.join(ALLOCATIONS)}")
    if not speeds or any(not node or min(node) <= 0 for node in speeds):
        raise InputError("every node needs at least one GPU, and every GPU a positive speed")
    if allocation == "node":
        return [tuple(node) for node in speeds]
    if len({len(node) for node in speeds}) > 1:
        raise InputError(f"equal virtual workers need as many GPUs on every node, got {[len(n) for n in speeds]}")
    return [tuple(gpus) for gpus in zip(*speeds, strict=True)]


def unlike_stages(layers: Sequence[float], speeds: Sequence[float]) -> tuple[int, ...]:
    """Cut layers into one stage per GPU, so that the slowest stage is fastest; the GPUs stay in their order.

    Parameters
    ----------
    layers : sequence of float
        Work of each.
    speeds : sequence of float
        Work per second of each GPU.

    Returns
    -------
    tuple of int
        Behind which layer each stage ends; a stage may be empty.
    """
    done = np.concatenate(([0.0], np.cumsum(layers)))
    best = np.full((len(speeds) + 1, len(done)), math.inf)
    best[0, 0] = 0.0
    cut = np.zeros(best.shape, np.int64)
    for gpu, speed in enumerate(speeds):
        for j in range(len(done)):
            times = np.maximum(best[gpu, : j + 1], (done[j] - done[: j + 1]) / speed)
            cut[gpu + 1, j] = int(times.argmin())
            best[gpu + 1, j] = times.min()
    ends, j = [], len(layers)
    for gpu in range(len(speeds), 0, -1):
        ends.append(j)
        j = int(cut[gpu, j])
    return tuple(ends[::-1])


def stage_seconds(layers: Sequence[float], speeds: Sequence[float]) -> float:
    """Seconds of the slowest stage of a virtual worker: how far apart its mini-batches are."""
    bounds = (0, *unlike_stages(layers, speeds))
    return max(sum(layers[a:b]) / speed for a, b, speed in zip(bounds, bounds[1:], speeds, strict=False))


def run_waves(
    layers: Sequence[float],
    workers: Sequence[Sequence[float]],
    n_waves: int,
    *,
    bound: int,
    n_concurrent: int,
    push: float = 0.0,
    pull: float = 0.0,
) -> Progress:
    """Train: each virtual worker runs waves of mini-batches, at most `bound` waves ahead of the slowest.

    Parameters
    ----------
    layers : sequence of float
        Work of each layer.
    workers : sequence of sequence of float
        Speeds of each virtual worker's GPUs.
    n_waves, bound, n_concurrent : int
        Waves of each worker, D, and mini-batches of a wave.
    push, pull : float, s
        Of one wave.

    Returns
    -------
    Progress
        By wave.
    """
    compute = np.array([[n_concurrent * stage_seconds(layers, gpus)] * n_waves for gpus in workers])
    return run_workers(compute, bound=bound, push=push, pull=pull)
