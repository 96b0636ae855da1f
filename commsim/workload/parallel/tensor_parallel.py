"""Tensor parallelism: what the ranks of a group that splits every layer say to each other in one iteration.

One worker, ``gpu``, stands for all of the group, which are alike. Communication and computation take turns: each needs
what the other has just made.

References
----------
Shoeybi et al., "Megatron-LM", arXiv 1909.08053, section 3: two all-reduces forward and two backward in each layer.
Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023, section 4.2.2: with
sequence parallelism each is a reduce-scatter and an all-gather, which move the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError

from ..task_graph import Graph, Task


@dataclass(frozen=True, slots=True)
class TransformerLayer:
    """Times and size of one layer on one rank of the group.

    Parameters
    ----------
    attention, mlp : float, s
        Forward time of the two blocks, as split among the ranks.
    activation : float, bytes
        Of the layer's output: batch x sequence x hidden x bytes of a number.
    backward_ratio : float
        Backward over forward time.
    """

    attention: float
    mlp: float
    activation: float
    backward_ratio: float = 2.0


def tensor_parallel_graph(
    layer: TransformerLayer, n_layers: int, n_ranks: int, *, sequence_parallel: bool = False
) -> Graph:
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
    Graph
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
    return Graph(tuple(tasks))
