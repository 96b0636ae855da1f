"""Varuna's job morphing: for the GPUs that there are just now, how deep a pipeline, how many of them, without whom.

References
----------
Athlur et al., "Varuna: scalable, low-cost training of massive deep learning models", EuroSys 2022, sections 4 and 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from commsim.core.errors import InputError


@dataclass(frozen=True, slots=True)
class MorphingJob:
    """What stays the same whatever GPUs there are.

    Parameters
    ----------
    n_cut_points : int
        Equal blocks that the model is cut into; a stage is some of them.
    forward, backward : float, s
        Of one block and micro-batch, on a GPU of speed 1.
    block_bytes, activation : float, bytes
        Gradients of a block; what a micro-batch sends from stage to stage, and back.
    batch, micro_batch : int
        Examples of an iteration, and of a micro-batch.
    bandwidth : float, bytes/s
        Of a GPU.
    most_blocks : int
        That fit into the memory of one GPU.

    Raises
    ------
    InputError
        If a count is not positive.
    """

    n_cut_points: int
    forward: float
    backward: float
    block_bytes: float
    activation: float
    batch: int
    micro_batch: int
    bandwidth: float
    most_blocks: int

    def __post_init__(self) -> None:
        counts = (self.n_cut_points, self.batch, self.micro_batch, self.most_blocks)
        if min(counts) < 1 or not self.bandwidth > 0:
            raise InputError(f"counts must be at least 1 and the bandwidth positive, got {counts}, {self.bandwidth}")


@dataclass(frozen=True, slots=True)
class Shape:
    """How a job runs: pipelines of `depth` GPUs, `width` of them, `n_micro_batches` each, `time` seconds an iteration.

    `left_out` GPUs are not used: what is over, and stragglers.
    """

    depth: int
    width: int
    n_micro_batches: int
    time: float
    left_out: int


def shape_time(job: MorphingJob, depth: int, width: int, slowest: float = 1.0) -> float:
    """Seconds of an iteration: (N + P - 1) (F + B) of the largest stage, its messages, and the ring of gradients.

    Messages between stages go while others compute, so only those of the first and last micro-batch count: 2 (P - 1).

    Parameters
    ----------
    job : MorphingJob
        The job.
    depth, width : int
        P and D.
    slowest : float
        Speed of the slowest GPU, at which all go.
    """
    blocks = math.ceil(job.n_cut_points / depth)
    n = micro_batches(job, width)
    compute = (n + depth - 1) * blocks * (job.forward + job.backward) / slowest
    messages = 2 * (depth - 1) * job.activation / job.bandwidth
    return compute + messages + 2 * (width - 1) / width * blocks * job.block_bytes / job.bandwidth


def micro_batches(job: MorphingJob, width: int) -> int:
    """Micro-batches of each pipeline: the examples of an iteration stay what they were, as accuracy wants it."""
    return math.ceil(job.batch / (width * job.micro_batch))


def morph(job: MorphingJob, speeds: Sequence[float]) -> Shape:
    """Choose the fastest shape for some GPUs; slow ones are left out when the others are faster without them.

    Parameters
    ----------
    job : MorphingJob
        The job.
    speeds : sequence of float
        Of the GPUs that there are.

    Returns
    -------
    Shape
        Of equal ones that with fewer GPUs.

    Raises
    ------
    InputError
        If the model does not fit.
    """
    order = sorted(speeds, reverse=True)
    if order and not order[-1] > 0:
        raise InputError(f"speeds must be positive, got {order[-1]}")
    shallowest = math.ceil(job.n_cut_points / job.most_blocks)
    shapes = [
        Shape(depth, width, micro_batches(job, width), shape_time(job, depth, width, order[depth * width - 1]),
              len(order) - depth * width)
        for depth in range(shallowest, min(job.n_cut_points, len(order)) + 1)
        for width in range(1, min(len(order) // depth, math.ceil(job.batch / job.micro_batch)) + 1)
    ]  # fmt: skip
    if not shapes:
        raise InputError(
            f"the model needs {shallowest} GPUs, {job.most_blocks} of its {job.n_cut_points} blocks on each, "
            f"got {len(order)}"
        )
    return min(shapes, key=lambda shape: (shape.time, -shape.left_out, shape.depth))
