"""Traffic volumes: ZeRO-Offload and ZeRO-Infinity (host, NVMe), and Optimus-CC (compressed pipelines).

Per iteration a parameter costs 8 x examples x tokens floating-point operations: 2 forward, 4 backward, and 2 more to
compute the forward pass again.

References
----------
Ren et al., "ZeRO-Offload", USENIX ATC 2021, section 3: gradients to the host and parameters back, 2 bytes each.
Rajbhandari et al., "ZeRO-Infinity", SC 2021, section 4: operations per byte of each kind of state.
Song et al., "Optimus-CC: efficient large NLP model training with 3D parallelism aware communication compression",
ASPLOS 2023, sections 5 to 7.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from commsim.core.errors import InputError

from ..task_graph import Graph

FLOPS_PER_PARAMETER = 8
BYTES_MOVED = {
    "parameters": 8,  # 16-bit numbers: to load for forward, for computing it again, for backward; gradients to store
    "optimizer": 32,  # 16 bytes of 32-bit weights, gradients and both moments, to load and to store
}
"""Bytes per parameter and iteration of what is not on the GPU."""


def offload_bytes(n_parameters: float, data_parallel: int = 1) -> tuple[float, float]:
    """Bytes that ZeRO-Offload sends per iteration and GPU, to the host and back: its part of 16-bit numbers, each way.

    The all-gather of the updated parameters and the reduce-scatter of the gradients stay among the GPUs.
    """
    if not n_parameters > 0 or data_parallel < 1:
        raise InputError(f"parameters and GPUs must be positive, got {n_parameters} and {data_parallel}")
    return 2 * n_parameters / data_parallel, 2 * n_parameters / data_parallel


def intensity(state: str, batch: float, sequence: float) -> float:
    """Operations per byte moved: batch x sequence for parameters and gradients, a quarter of it for the optimizer.

    Parameters
    ----------
    state : {"parameters", "optimizer"}
        What is not on the GPU.
    batch, sequence : float
        Examples per GPU, and tokens of each.

    Raises
    ------
    InputError
        If the state is unknown, or a number is not positive.
    """
    if state not in BYTES_MOVED:
        raise InputError(f"unknown state {state!r}; known: {', '.join(BYTES_MOVED)}")
    if not (batch > 0 and sequence > 0):
        raise InputError(f"batch and sequence must be positive, got {batch} and {sequence}")
    return FLOPS_PER_PARAMETER * batch * sequence / BYTES_MOVED[state]


def activation_intensity(hidden: float, layers_per_checkpoint: float = 1) -> float:
    """Operations per byte of activation checkpoints, stored and loaded once every few layers: 24 x hidden x layers."""
    return 24 * hidden * layers_per_checkpoint


def efficiency(operations_per_byte: float, bandwidth: float, peak: float) -> float:
    """Share of the peak that is left when moving data and computing take turns: i b / (i b + peak).

    Parameters
    ----------
    operations_per_byte : float
        i.
    bandwidth : float, bytes/s
        b, of one GPU.
    peak : float, operations/s
        That a GPU reaches when nothing is moved.
    """
    moved = operations_per_byte * bandwidth
    return 1.0 if math.isinf(moved) else moved / (moved + peak)


def bandwidth_needed(operations_per_byte: float, peak: float, wanted: float) -> float:
    """Bytes per second and GPU for an efficiency of `wanted`, 0..1 without both ends."""
    if not 0 < wanted < 1:
        raise InputError(f"an efficiency lies between 0 and 1, got {wanted}")
    return wanted / (1 - wanted) * peak / operations_per_byte


def embedding_volume(data_parallel: int, *, fused: bool) -> Fraction:
    """Bytes that each rank sends per byte of the embedding, which the first and the last stage share.

    Apart, a ring all-reduce over D ranks and then one over the 2 stages: 2(D-1)/D + 1 = (3D-2)/D. Fused, one ring over
    all 2D ranks: (2D-1)/D.

    Raises
    ------
    InputError
        If D is not positive.
    """
    if data_parallel < 1:
        raise InputError(f"data parallel must be at least 1, got {data_parallel}")
    d = data_parallel
    return ring_volume(2 * d) if fused else ring_volume(d) + ring_volume(2)


def ring_volume(n_ranks: int) -> Fraction:
    """Bytes that each rank of a ring all-reduce sends per byte of the tensor: 2(p-1)/p."""
    return Fraction(2 * (n_ranks - 1), n_ranks)


def low_rank_ratio(rows: int, columns: int, rank: int) -> Fraction:
    """Size of the two factors of a PowerSGD approximation over that of the matrix: r (n + m) / (n m), at most 1."""
    if min(rows, columns, rank) < 1:
        raise InputError(f"rows, columns and rank must be at least 1, got {rows}, {columns}, {rank}")
    return min(Fraction(1), Fraction(rank * (rows + columns), rows * columns))


def compress_backward(graph: Graph, ratio: float, n_micro_batches: int, *, epilogue: int | None = None) -> Graph:
    """Compress the gradients of activations that stages send back; activations stay whole.

    Parameters
    ----------
    graph : Graph
        Of :func:`commsim.workload.parallel.pipeline.pipeline_graph`.
    ratio : float
        Compressed size over size.
    n_micro_batches : int
        Of the graph.
    epilogue : int, optional
        Only the last so many micro-batches of each stage, when no forward pass hides their messages; all by default.

    Raises
    ------
    InputError
        If the ratio is not in (0, 1], or the epilogue longer than the iteration.
    """
    count = n_micro_batches if epilogue is None else epilogue
    if not 0 < ratio <= 1 or not 0 <= count <= n_micro_batches:
        raise InputError(f"needs a ratio in (0, 1] and an epilogue of 0..{n_micro_batches}, got {ratio} and {count}")
    return Graph(
        tuple(
            replace(task, size=task.size * ratio)
            if task.operation == "send" and _gradient_of(task.name) >= n_micro_batches - count
            else task
            for task in graph.tasks
        )
    )


def _gradient_of(name: str) -> int:
    """Micro-batch whose gradient a message carries, -1 if it carries none."""
    words = name.split()
    return int(words[1]) if words[0] == "gradient" else -1
