"""Training on a changing number of GPUs: Varuna's job morphing and Oobleck's pipeline templates and recovery.

References
----------
Athlur et al., "Varuna: scalable, low-cost training of massive deep learning models", EuroSys 2022, sections 4 and 5.
Jang et al., "Oobleck: resilient distributed training of large models using pipeline templates", SOSP 2023, sections 4
and 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth, Bytes, Seconds

from . import Answer, training_system

# All sums of templates are listed, and all layers.
MAX_NODES, MAX_LAYERS = 48, 10_000


@training_system("Athlur et al., EuroSys 2022")
def varuna(
    *,
    n_cut_points: int = 24,
    forward: Seconds = 0.01,
    backward: Seconds = 0.02,
    block_bytes: Bytes = 200e6,
    activation: Bytes = 4e6,
    batch: int = 512,
    micro_batch: int = 4,
    bandwidth: Bandwidth = 1.25e9,
    max_blocks: int = 6,
    n_gpus: int = 36,
    n_slow: int = 0,
    slow_speed: float = 0.5,
) -> Answer:
    """Varuna: the fastest depth and width of pipelines for the GPUs that there are now; stragglers may be left out.

    Parameters
    ----------
    n_cut_points, forward, backward, block_bytes, activation, batch, micro_batch, bandwidth, max_blocks
        Same as in :class:`MorphingJob`.
    n_gpus, n_slow : int
        GPUs, and how many of them are slow.
    slow_speed : float
        Speed of these, over that of the others.

    Returns
    -------
    dict
        The shape.
    """
    job = MorphingJob(
        n_cut_points, forward, backward, block_bytes, activation, batch, micro_batch, bandwidth, max_blocks
    )
    if not 0 <= n_slow <= n_gpus:
        raise InputError(f"n_slow must be 0..{n_gpus}, got {n_slow}")
    shape = asdict(morph(job, [1.0] * (n_gpus - n_slow) + [slow_speed] * n_slow))
    return {"iteration_s": shape.pop("time"), **shape}


@training_system("Jang et al., SOSP 2023")
def oobleck(
    *,
    n_nodes: int = 13,
    min_nodes: int = 3,
    n_failures: int = 2,
    n_layers: int = 24,
    layer_bytes: Bytes = 200e6,
    bandwidth: Bandwidth = 1.25e9,
) -> Answer:
    """Oobleck: pipeline templates that use every node that is left, and what recovery moves after each failure.

    Parameters
    ----------
    n_nodes, min_nodes, n_failures : int
        Nodes, how many a pipeline needs at least, and failures to outlive.
    n_layers : int
        Layers of the model.
    layer_bytes : float, bytes
        State of one layer.
    bandwidth : float, bytes/s
        Bandwidth of a node.

    Returns
    -------
    dict
        Templates, and the pipelines and copied layers after 0, 1, ... failures, the last nodes failing first.
    """
    if n_nodes > MAX_NODES or n_layers > MAX_LAYERS:
        raise InputError(f"at most {MAX_NODES} nodes and {MAX_LAYERS} layers, got {n_nodes} and {n_layers}")
    sizes = template_sizes(n_nodes, min_nodes, n_failures)
    rows: list[Answer] = []
    before: dict[str, range] = {}
    for failed in range(n_failures + 1):
        plan = min(pipelines_of(n_nodes - failed, sizes, n_failures + 1), key=max)  # the most even one
        starts = [sum(plan[:i]) for i in range(len(plan))]
        pipelines = [[f"n{k}" for k in range(at, at + size)] for at, size in zip(starts, plan, strict=True)]
        after = {node: layers for nodes in pipelines for node, layers in even_stages(n_layers, nodes).items()}
        copies = recovery_copies(before, after, [layer_bytes] * n_layers) if before else ()
        sent = {node: sum(copy.size for copy in copies if copy.src == node) for node in before}
        rows.append({"failed": failed, "pipelines": "+".join(map(str, plan)), "copied_layers": len(copies),
                     "recovery_s": max(sent.values(), default=0.0) / bandwidth})  # fmt: skip
        before = after
    return {"templates": list(sizes), "failures": rows}


@dataclass(frozen=True, slots=True)
class MorphingJob:
    """What stays the same whatever GPUs there are.

    Parameters
    ----------
    n_cut_points : int
        Equal blocks that the model is cut into; a stage is some of them.
    forward, backward : float, s
        Time of one block and micro-batch, on a GPU of speed 1.
    block_bytes, activation : float, bytes
        Gradients of a block; what a micro-batch sends from stage to stage, and back.
    batch, micro_batch : int
        Examples of an iteration, and of a micro-batch.
    bandwidth : float, bytes/s
        Bandwidth of a GPU.
    max_blocks : int
        Largest number of blocks that fit into the memory of one GPU.

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
    max_blocks: int

    def __post_init__(self) -> None:
        counts = (self.n_cut_points, self.batch, self.micro_batch, self.max_blocks)
        if min(counts) < 1 or not self.bandwidth > 0:
            raise InputError(f"counts must be at least 1 and the bandwidth positive, got {counts}, {self.bandwidth}")


@dataclass(frozen=True, slots=True)
class PipelineShape:
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


def morph(job: MorphingJob, speeds: Sequence[float]) -> PipelineShape:
    """Choose the fastest shape for some GPUs; slow ones are left out when the others are faster without them.

    Parameters
    ----------
    job : MorphingJob
        The job.
    speeds : sequence of float
        Speeds of the available GPUs.

    Returns
    -------
    PipelineShape
        Of equal ones that with fewer GPUs.

    Raises
    ------
    InputError
        If the model does not fit.
    """
    order = sorted(speeds, reverse=True)
    if order and not order[-1] > 0:
        raise InputError(f"speeds must be positive, got {order[-1]}")
    shallowest = math.ceil(job.n_cut_points / job.max_blocks)
    shapes = [
        PipelineShape(depth, width, micro_batches(job, width), shape_time(job, depth, width, order[depth * width - 1]),
              len(order) - depth * width)
        for depth in range(shallowest, min(job.n_cut_points, len(order)) + 1)
        for width in range(1, min(len(order) // depth, math.ceil(job.batch / job.micro_batch)) + 1)
    ]  # fmt: skip
    if not shapes:
        raise InputError(
            f"the model needs {shallowest} GPUs, {job.max_blocks} of its {job.n_cut_points} blocks on each, "
            f"got {len(order)}"
        )
    return min(shapes, key=lambda shape: (shape.time, -shape.left_out, shape.depth))


@dataclass(frozen=True, slots=True)
class Copy:
    """One layer that a node must get from another: which, from where, to where, and how many bytes."""

    layer: int
    src: str
    dst: str
    size: float


def template_sizes(n_nodes: int, fewest: int, n_failures: int) -> tuple[int, ...]:
    """Nodes of each pipeline template: all numbers from the fewest that hold the model to what f others leave.

    With f + 1 pipelines there is a copy of every layer after any f failures, so the largest has N - f n0 nodes. Larger
    than 2 n0 - 1 none need be for every number of nodes to be a sum of templates, but may be faster.

    Raises
    ------
    InputError
        If there are too few nodes for f + 1 pipelines.
    """
    if min(fewest, n_nodes) < 1 or n_failures < 0 or n_nodes < (n_failures + 1) * fewest:
        raise InputError(
            f"to outlive {n_failures} failures takes {n_failures + 1} pipelines of at least {fewest} nodes, "
            f"got {n_nodes} nodes"
        )
    return tuple(range(fewest, n_nodes - n_failures * fewest + 1))


def pipelines_of(n_nodes: int, sizes: Sequence[int], fewest_pipelines: int) -> list[tuple[int, ...]]:
    """Sizes of pipelines that use exactly all nodes, each way once; empty without any.

    Parameters
    ----------
    n_nodes : int
        Number of nodes that are left.
    sizes : sequence of int
        Sizes of the templates.
    fewest_pipelines : int
        f + 1.
    """
    plans: list[tuple[int, ...]] = []

    def extend(left: int, chosen: tuple[int, ...]) -> None:
        if not left and len(chosen) >= fewest_pipelines:
            plans.append(chosen)
        for size in sizes:
            if size <= left and (not chosen or size >= chosen[-1]):
                extend(left - size, (*chosen, size))

    extend(n_nodes, ())
    return plans


def even_stages(n_layers: int, nodes: Sequence[str]) -> dict[str, range]:
    """Give each node of a pipeline its layers, as even as can be."""
    if not 1 <= len(nodes) <= n_layers:
        raise InputError(f"a pipeline of {n_layers} layers has 1..{n_layers} nodes, got {len(nodes)}")
    bounds = [i * n_layers // len(nodes) for i in range(len(nodes) + 1)]
    return {node: range(bounds[i], bounds[i + 1]) for i, node in enumerate(nodes)}


def recovery_copies(
    before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]], layer_bytes: Sequence[float]
) -> tuple[Copy, ...]:
    """Which layers move when nodes have failed: those that a node now needs and does not hold, from one that does.

    Parameters
    ----------
    before : mapping of node to layers
        Layers that survivors held, of all pipelines; a node that failed is not among them, or is not in `after`.
    after : mapping of node to layers
        Layers that each node has from now on.
    layer_bytes : sequence of float, bytes
        Weights and optimizer states of each layer.

    Returns
    -------
    tuple of Copy
        From the holder that has sent least so far.

    Raises
    ------
    InputError
        If a layer has no holder left: the last checkpoint must be read.
    """
    sent = dict.fromkeys((node for node in before if node in after), 0.0)
    copies: list[Copy] = []
    for node, layers in after.items():
        for layer in sorted(set(layers) - set(before.get(node, ()))):
            holders = [other for other in sent if layer in before[other]]
            if not holders:
                raise InputError(f"layer {layer} is lost with all nodes that held it; a checkpoint must be read")
            source = min(holders, key=lambda other: (sent[other], other))
            sent[source] += layer_bytes[layer]
            copies.append(Copy(layer, source, node, layer_bytes[layer]))
    return tuple(copies)
