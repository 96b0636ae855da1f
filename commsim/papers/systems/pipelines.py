"""Pipelines on unlike resources: PipeDream's partitioning and HetPipe's virtual workers.

A virtual worker pushes once per wave, which is as many mini-batches as its pipeline holds; it may start a wave while
others are at most D waves behind, as :func:`commsim.training.staleness.run_workers` has it.

References
----------
Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP 2019, section 3.1.
Park et al., "HetPipe: enabling large DNN training on (whimpy) heterogeneous GPU clusters", USENIX ATC 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError, unknown_name
from commsim.core.units import Bandwidth, Seconds
from commsim.core.value import Value, freeze
from commsim.training.staleness import WorkerProgress, run_workers

from . import Answer, training_system

ALLOCATIONS = ("node", "equal")


@training_system("Narayanan et al., SOSP 2019")
def pipedream(
    *,
    compute_ms: tuple[float, ...] = (14, 14, 14, 14, 14, 14, 14, 2),
    weights_mb: tuple[float, ...] = (1, 1, 1, 1, 1, 1, 1, 400),
    outputs_mb: tuple[float, ...] = (1, 1, 1, 1, 1, 1, 1, 1),
    n_machines: int = 16,
    bandwidth: Bandwidth = 1.25e9,
) -> Answer:
    """PipeDream: layers cut into stages, each with as many replicas as balance the pipeline.

    Parameters
    ----------
    compute_ms, weights_mb, outputs_mb : tuple of float
        Profile of each layer: time of a mini-batch, weights and activations, such as 14x14x2.
    n_machines : int
        Number of available machines; fewer are used where more do not help.
    bandwidth : float, bytes/s
        Bandwidth between machines.

    Returns
    -------
    dict
        Seconds between mini-batches, and the stages.
    """
    profile = LayerProfile(np.array(compute_ms) / 1e3, np.array(weights_mb) * 1e6, np.array(outputs_mb) * 1e6)
    stages = partition(profile, n_machines, bandwidth)
    rows = [{"first_layer": s.first, "last_layer": s.last, "replicas": s.replicas, "time_s": s.time} for s in stages]
    return {"mini_batch_s": bottleneck(profile, stages, bandwidth), "stages": rows}


@training_system("Park et al., USENIX ATC 2020")
def hetpipe(
    *,
    layers: tuple[float, ...] = (1, 1, 1, 1, 1, 1, 1, 1),
    speeds: tuple[float, ...] = (10, 10, 5, 5),
    gpus_per_node: int = 4,
    allocation: str = "equal",
    n_waves: int = 20,
    bound: int = 0,
    n_concurrent: int = 4,
    push: Seconds = 0.0,
    pull: Seconds = 0.0,
) -> Answer:
    """HetPipe: virtual workers of unlike GPUs, pipelines inside, bounded staleness between them.

    Parameters
    ----------
    layers : tuple of float
        Work of each layer, such as 1x1x2.
    speeds : tuple of float
        Work per second of each node's GPUs.
    gpus_per_node : int
        GPUs of each node.
    allocation : str
        node: each node is a virtual worker; equal: each virtual worker has one GPU of every node.
    n_waves, bound, n_concurrent : int
        Waves, how many of them a worker may be ahead, and mini-batches of a wave.
    push, pull : float, s
        Time of one wave to and from the parameter server.

    Returns
    -------
    dict
        Time, mini-batches per second, and by worker its slowest stage and its waiting time.
    """
    workers = virtual_workers([(speed,) * gpus_per_node for speed in speeds], allocation)
    progress = run_waves(layers, workers, n_waves, bound=bound, n_concurrent=n_concurrent, push=push, pull=pull)
    rows = [
        {"worker": i, "stage_s": stage_seconds(layers, gpus), "waited_s": float(progress.waited[i])}
        for i, gpus in enumerate(workers)
    ]
    ahead = [int(n) for n in progress.histogram()]
    rate = n_concurrent * progress.throughput
    return {"time_s": progress.time, "mini_batches_per_s": rate, "starts_by_waves_ahead": ahead, "workers": rows}


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers `first` to `last`, both included, on `replicas` machines, which need `time` seconds per mini-batch."""

    first: int
    last: int
    replicas: int
    time: float


@dataclass(frozen=True, slots=True, eq=False)
class LayerProfile(Value):
    """What each layer of a model takes for one mini-batch, forward and backward together.

    Parameters
    ----------
    compute : float64[n_layers], s
        Time of each layer on one machine.
    weights : float64[n_layers], bytes
        Size of each layer's weights.
    outputs : float64[n_layers], bytes
        Size of each layer's activations; what the last layer makes goes nowhere.

    Raises
    ------
    InputError
        Without a layer, or if a number is negative or not finite.
    """

    compute: NDArray[np.float64]
    weights: NDArray[np.float64]
    outputs: NDArray[np.float64]

    def __post_init__(self) -> None:
        n = np.size(self.compute)
        if not n:
            raise InputError("a model has at least one layer, got none")
        for name in ("compute", "weights", "outputs"):
            values = freeze(getattr(self, name), np.float64, (n,), name)
            if not ((values >= 0) & np.isfinite(values)).all():
                raise InputError(f"{name} must be 0 or more and finite, got {values.min()}..{values.max()}")
            object.__setattr__(self, name, values)


def stage_time(profile: LayerProfile, first: int, last: int, replicas: int, bandwidth: float) -> float:
    """Seconds per mini-batch of a stage of m replicas: (compute + 4 (m-1) W / (B m)) / m."""
    weights = float(profile.weights[first : last + 1].sum())
    compute = float(profile.compute[first : last + 1].sum())
    return (compute + 4 * (replicas - 1) * weights / (bandwidth * replicas)) / replicas


def boundary_time(profile: LayerProfile, layer: int, replicas: int, bandwidth: float) -> float:
    """Seconds per mini-batch of activations and their gradients behind a layer: 2a/(B m), of the m replicas behind."""
    return 2 * float(profile.outputs[layer]) / (bandwidth * replicas)


def partition(profile: LayerProfile, n_machines: int, bandwidth: float) -> tuple[Stage, ...]:
    """Find the stages whose slowest one, or slowest boundary, is fastest, by dynamic programming.

    A(j, m), the best for layers up to j on m machines, is the least over k and m' of the largest of A(k, m - m'), the
    boundary behind k and the stage of layers k+1..j on m' machines.

    Parameters
    ----------
    profile : LayerProfile
        The model.
    n_machines : int
        Number of available machines; fewer are used where more do not help.
    bandwidth : float, bytes/s
        Bandwidth between machines.

    Returns
    -------
    tuple of Stage
        In the order of the layers.

    Raises
    ------
    InputError
        Without a machine or bandwidth.
    """
    if n_machines < 1 or not bandwidth > 0:
        raise InputError(f"needs at least 1 machine and a positive bandwidth, got {n_machines} and {bandwidth}")
    n = len(profile.compute)
    best = np.full((n, n_machines + 1), math.inf)
    cut: dict[tuple[int, int], tuple[int, int]] = {}
    for j in range(n):
        for m in range(1, n_machines + 1):
            for replicas in range(1, m + 1):
                for k in range(-1, j) if replicas < m else (-1,):
                    before = (
                        max(best[k, m - replicas], boundary_time(profile, k, replicas, bandwidth)) if k >= 0 else 0.0
                    )
                    time = max(float(before), stage_time(profile, k + 1, j, replicas, bandwidth))
                    if time < best[j, m]:
                        best[j, m], cut[j, m] = time, (k, replicas)
    j, m = n - 1, int(best[n - 1].argmin())
    stages: list[Stage] = []
    while j >= 0:
        k, replicas = cut[j, m]
        stages.append(Stage(k + 1, j, replicas, stage_time(profile, k + 1, j, replicas, bandwidth)))
        j, m = k, m - replicas
    return tuple(stages[::-1])


def bottleneck(profile: LayerProfile, stages: tuple[Stage, ...], bandwidth: float) -> float:
    """Seconds between two mini-batches of a full pipeline: its slowest stage or boundary."""
    boundaries: ArrayLike = [boundary_time(profile, s.first - 1, s.replicas, bandwidth) for s in stages[1:]]
    return float(max([s.time for s in stages] + list(np.atleast_1d(boundaries))))


def virtual_workers(speeds: Sequence[Sequence[float]], allocation: str) -> list[tuple[float, ...]]:
    """Make virtual workers of the GPUs of nodes.

    Parameters
    ----------
    speeds : sequence of sequence of float
        Speed of each GPU of each node.
    allocation : {"node", "equal"}
        Each node is a virtual worker, whose GPUs talk inside the node; or each virtual worker has one GPU of every
        node, so that all are equal and none waits for a straggler.

    Raises
    ------
    InputError
        If the allocation is unknown, or nodes are unequal in number where they must not be.
    """
    if allocation not in ALLOCATIONS:
        raise unknown_name("allocation", allocation, ALLOCATIONS)
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
) -> WorkerProgress:
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
        Time of one wave to and from the parameter server.

    Returns
    -------
    WorkerProgress
        By wave.
    """
    compute = np.array([[n_concurrent * stage_seconds(layers, gpus)] * n_waves for gpus in workers])
    return run_workers(compute, bound=bound, push=push, pull=pull)
