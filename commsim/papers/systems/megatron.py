"""Megatron-LM: tensor parallelism, with and without sequence parallelism."""

from __future__ import annotations

from commsim.core.units import Bandwidth, Bytes, Seconds
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.parallel.layer_parallel import TransformerLayer, tensor_parallel_graph
from commsim.training.task_graph import simulate_graph

from . import Answer, training_system


@training_system("Shoeybi et al., arXiv 1909.08053; Korthikanti et al., MLSys 2023")
def megatron(
    *,
    n_layers: int = 24,
    n_ranks: int = 8,
    attention: Seconds = 1e-3,
    mlp: Seconds = 2e-3,
    activation: Bytes = 32e6,
    sequence_parallel: bool = False,
    alpha: Seconds = 5e-6,
    bandwidth: Bandwidth = 300e9,
) -> Answer:
    """Megatron-LM: an iteration of layers that are split over a group of ranks.

    Parameters
    ----------
    n_layers, n_ranks : int
        Layers, and ranks of the group.
    attention, mlp : float, s
        Forward computation of the two blocks of a layer on one rank.
    activation : float, bytes
        Size of what each exchange adds up.
    sequence_parallel : bool
        Whether exchanges are a reduce-scatter and an all-gather in place of an all-reduce.
    alpha : float, s
        Latency per message of a ring.
    bandwidth : float, bytes/s
        Bandwidth of a rank.

    Returns
    -------
    dict
        Iteration time and exposed communication.
    """
    layer = TransformerLayer(attention, mlp, activation)
    graph = tensor_parallel_graph(layer, n_layers, n_ranks, sequence_parallel=sequence_parallel)
    timeline = simulate_graph(graph, closed_form_costs(alpha, bandwidth))
    exchanges = sum(bool(task.operation) for task in graph.tasks)
    exposed = timeline.exposed_communication
    return {"iteration_s": timeline.iteration_time, "exposed_comm_s": exposed, "exchanges": exchanges}
