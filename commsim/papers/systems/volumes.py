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

from commsim.core.errors import InputError, unknown_name
from commsim.core.units import Bandwidth, Seconds
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
from commsim.training.parallel.pipeline_orders import one_forward_one_backward
from commsim.training.task_graph import TaskGraph, simulate_graph

from . import Answer, training_system

FLOPS_PER_PARAMETER = 8
# Bytes per parameter and iteration of what is not on the GPU.
BYTES_MOVED = {
    "parameters": 8,  # 16-bit numbers: to load for forward, for computing it again, for backward; gradients to store
    "optimizer": 32,  # 16 bytes of 32-bit weights, gradients and both moments, to load and to store
}


@training_system("Ren et al., USENIX ATC 2021; Rajbhandari et al., SC 2021")
def zero_offload(
    *,
    n_parameters: float = 10e9,
    data_parallel: int = 1,
    batch: int = 8,
    sequence: int = 1024,
    hidden: int = 8192,
    bandwidth: Bandwidth = 16e9,
    peak_tflops: float = 70.0,
    wanted: float = 0.9,
) -> Answer:
    """ZeRO-Offload and ZeRO-Infinity: bytes to the host and back, efficiency, and the bandwidth that hides moving data.

    Parameters
    ----------
    n_parameters : float
        Number of parameters of the model.
    data_parallel : int
        GPUs that share them.
    batch, sequence, hidden : int
        Examples per GPU, tokens of each, and the model's width.
    bandwidth : float, bytes/s
        Bandwidth of a GPU to the host or NVMe.
    peak_tflops : float
        10^12 operations per second that a GPU reaches when nothing is moved.
    wanted : float
        Efficiency for which the bandwidth is found.

    Returns
    -------
    dict
        Bytes of an iteration, and by kind of state operations per byte, efficiency and the bandwidth needed.
    """
    to_host, to_gpu = offload_bytes(n_parameters, data_parallel)
    if hidden < 1:
        raise InputError(f"hidden must be at least 1, got {hidden}")
    kinds = {state: intensity(state, batch, sequence) for state in BYTES_MOVED}
    rows = [
        {"state": state, "operations_per_B": each, "efficiency": efficiency(each, bandwidth, peak_tflops * 1e12),
         "bandwidth_needed_Bps": bandwidth_needed(each, peak_tflops * 1e12, wanted)}
        for state, each in (kinds | {"activations": activation_intensity(hidden)}).items()
    ]  # fmt: skip
    return {"to_host_B": to_host, "to_gpu_B": to_gpu, "states": rows}


@training_system("Song et al., ASPLOS 2023")
def optimus_cc(
    *,
    n_stages: int = 4,
    n_micro_batches: int = 12,
    data_parallel: int = 4,
    forward: Seconds = 0.01,
    backward: Seconds = 0.02,
    rows: int = 8192,
    columns: int = 3072,
    rank: int = 12,
    epilogue: int = 3,
    bandwidth: Bandwidth = 2.5e9,
) -> Answer:
    """Optimus-CC: gradients of activations compressed by low rank, all or those of the epilogue; fused embeddings.

    Parameters
    ----------
    n_stages, n_micro_batches, data_parallel : int
        Stages and micro-batches of a 1F1B pipeline, and number of pipelines.
    forward, backward : float, s
        Time of a micro-batch on one stage.
    rows, columns, rank : int
        Rows and columns of an activation of 2-byte numbers, and rank of its approximation.
    epilogue : int
        Micro-batches whose gradients are compressed when not all are.
    bandwidth : float, bytes/s
        Bandwidth between stages.

    Returns
    -------
    dict
        Embedding volumes, the compression ratio, and the iteration time without and with compression.
    """
    ratio = float(low_rank_ratio(rows, columns, rank))
    order = one_forward_one_backward(n_stages, n_micro_batches)
    whole = pipeline_graph(order, StageCosts(forward, backward, activation=2.0 * rows * columns))
    graphs = {"none": whole, "epilogue": compress_backward(whole, ratio, n_micro_batches, epilogue=epilogue),
              "all": compress_backward(whole, ratio, n_micro_batches)}  # fmt: skip
    costs = closed_form_costs(bandwidth=bandwidth)
    return {
        "compression_ratio": ratio,
        "embedding_volume": float(embedding_volume(data_parallel, fused=False)),
        "embedding_volume_fused": float(embedding_volume(data_parallel, fused=True)),
        "iterations": [{"compressed": name, "iteration_s": simulate_graph(graph, costs).iteration_time}
                       for name, graph in graphs.items()],
    }  # fmt: skip


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
        raise unknown_name("state", state, BYTES_MOVED)
    if not (batch > 0 and sequence > 0):
        raise InputError(f"batch and sequence must be positive, got {batch} and {sequence}")
    return FLOPS_PER_PARAMETER * batch * sequence / BYTES_MOVED[state]


def activation_intensity(hidden: float, layers_per_checkpoint: float = 1) -> float:
    """Operations per byte of activation checkpoints, stored and loaded once every few layers: 24 x hidden x layers."""
    if not hidden > 0:
        raise InputError(f"hidden must be above 0, got {hidden}")
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
        Rate that a GPU reaches when nothing is moved.
    """
    moved = operations_per_byte * bandwidth
    return 1.0 if math.isinf(moved) else moved / (moved + peak)


def bandwidth_needed(operations_per_byte: float, peak: float, wanted: float) -> float:
    """Bytes per second and GPU for an efficiency of `wanted`, 0..1 without both ends."""
    if not 0 < wanted < 1:
        raise InputError(f"an efficiency is between 0 and 1, got {wanted}")
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


def compress_backward(
    graph: TaskGraph, ratio: float, n_micro_batches: int, *, epilogue: int | None = None
) -> TaskGraph:
    """Compress the gradients of activations that stages send back; activations stay whole.

    Parameters
    ----------
    graph : TaskGraph
        Graph from :func:`commsim.training.parallel.pipeline.pipeline_graph`.
    ratio : float
        Compressed size over size.
    n_micro_batches : int
        Number of micro-batches of the graph.
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
    return TaskGraph(
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
