"""Optimus-CC: communication of pipelines with data parallelism, compressed where it is exposed.

References
----------
Song et al., "Optimus-CC: efficient large NLP model training with 3D parallelism aware communication compression",
ASPLOS 2023, sections 5 to 7.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from commsim.core.errors import InputError

from ..task_graph import Graph


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
