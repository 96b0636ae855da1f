"""DLRM: embedding tables divided among the ranks, networks copied to each, all-to-alls of embeddings in between.

A rank looks up its own tables for the whole batch, and needs all tables for its part of the batch: an all-to-all moves
embeddings forward and their gradients backward. The networks' gradients are all-reduced.

References
----------
Naumov et al., "Deep learning recommendation model for personalization and recommendation systems", arXiv 1906.00091,
section 4: model parallelism of embeddings, data parallelism of the networks, "butterfly shuffle" between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth, Bytes, Seconds
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.task_graph import Task, TaskGraph, simulate_graph

from . import Answer, training_system


@dataclass(frozen=True, slots=True)
class RecommendationModel:
    """Times and sizes of one iteration on one rank.

    Parameters
    ----------
    lookup, bottom, top : float, s
        Forward time of the rank's tables, and of the networks before and after embeddings are used.
    embeddings : float, bytes
        Size of what a rank sends in one all-to-all, its own part included.
    bottom_gradients, top_gradients : float, bytes
        Size of the gradients of the two networks.
    backward_ratio : float
        Backward over forward time; of tables the update of the rows.
    """

    lookup: float
    bottom: float
    top: float
    embeddings: float
    bottom_gradients: float
    top_gradients: float
    backward_ratio: float = 2.0


def embedding_bytes(n_tables: int, dimension: int, batch: int, n_ranks: int, element_bytes: int = 4) -> float:
    """Bytes that the rank with the most tables sends in one all-to-all: ceil(tables / p) x batch x dimension.

    Raises
    ------
    InputError
        If a number is not positive, or there are fewer tables than ranks.
    """
    if min(n_tables, dimension, batch, n_ranks, element_bytes) < 1:
        raise InputError(
            f"tables, dimension, batch, ranks and bytes of an element must be at least 1, got {n_tables}, {dimension}, "
            f"{batch}, {n_ranks} and {element_bytes}"
        )
    if n_tables < n_ranks:
        raise InputError(f"whole tables are divided: n_ranks must be at most the {n_tables} tables, got {n_ranks}")
    return float(math.ceil(n_tables / n_ranks) * batch * dimension * element_bytes)


def recommendation_graph(model: RecommendationModel, n_ranks: int) -> TaskGraph:
    """Graph of one iteration as one rank sees it; with one rank nothing is sent."""
    tasks: list[Task] = []
    group = tuple(range(n_ranks))

    def compute(name: str, seconds: float, *after: int, priority: int = 0) -> int:
        tasks.append(Task(name, ("gpu.compute",), seconds, priority=priority, after=after))
        return len(tasks) - 1

    def send(name: str, operation: str, size: float, after: int, priority: int = 0) -> int:
        if n_ranks == 1:
            return after
        tasks.append(Task(name, ("gpu.network",), 0.0, operation, group, size, priority, (after,)))
        return len(tasks) - 1

    ratio = model.backward_ratio
    lookup = compute("lookup", model.lookup)
    # The lookup goes first, so that the bottom network hides the all-to-all.
    sent = send("embeddings", "all_to_all", model.embeddings, lookup)
    bottom = compute("forward bottom", model.bottom, priority=1)
    top = compute("backward top", model.top * ratio, compute("forward top", model.top, sent, bottom))
    # Rows wait for their gradients, while nothing of this iteration waits for those of the networks.
    returned = send("embedding gradients", "all_to_all", model.embeddings, top)
    send("top gradients", "all_reduce", model.top_gradients, top, priority=1)
    bottom = compute("backward bottom", model.bottom * ratio, top)
    send("bottom gradients", "all_reduce", model.bottom_gradients, bottom, priority=1)
    compute("update rows", model.lookup * ratio, returned, priority=1)
    return TaskGraph(tuple(tasks))


@training_system("Naumov et al., arXiv 1906.00091")
def dlrm(
    *,
    n_ranks: int = 8,
    n_tables: int = 26,
    dimension: int = 128,
    batch: int = 16384,
    element_bytes: int = 4,
    lookup: Seconds = 0.1e-3,
    bottom: Seconds = 0.5e-3,
    top: Seconds = 1e-3,
    bottom_gradients: Bytes = 2e6,
    top_gradients: Bytes = 10e6,
    alpha: Seconds = 5e-6,
    bandwidth: Bandwidth = 12.5e9,
) -> Answer:
    """DLRM: an iteration with embedding tables divided among ranks, and their all-to-alls.

    Parameters
    ----------
    n_ranks, n_tables : int
        Ranks, and embedding tables; each rank has an equal number or one more.
    dimension, element_bytes : int
        Elements of one row, and bytes of each.
    batch : int
        Samples of all ranks together; each looks up one row per table, or the sum of several.
    lookup : float, s
        Time to look up the whole batch in one table.
    bottom, top : float, s
        Forward time of the networks on one rank's part of the batch.
    bottom_gradients, top_gradients : float, bytes
        Size of the gradients of the networks.
    alpha : float, s
        Latency per message of a ring or an exchange.
    bandwidth : float, bytes/s
        Bandwidth of a rank.

    Returns
    -------
    dict
        Iteration time, exposed communication, and bytes and times of the all-to-alls and all-reduces.
    """
    embeddings = embedding_bytes(n_tables, dimension, batch, n_ranks, element_bytes)
    tables = math.ceil(n_tables / n_ranks)
    model = RecommendationModel(tables * lookup, bottom, top, embeddings, bottom_gradients, top_gradients)
    timeline = simulate_graph(recommendation_graph(model, n_ranks), closed_form_costs(alpha, bandwidth))
    spent = {"all_to_all": 0.0, "all_reduce": 0.0, "": 0.0}
    for task, start, end in zip(timeline.graph.tasks, timeline.start, timeline.end, strict=True):
        spent[task.operation] += float(end - start)
    return {
        "iteration_s": timeline.iteration_time,
        "exposed_comm_s": timeline.exposed_communication,
        "compute_s": spent[""],
        "all_to_all_s": spent["all_to_all"],
        "all_reduce_s": spent["all_reduce"],
        "tables_of_a_rank": tables,
        "all_to_all_B": 2 * embeddings if n_ranks > 1 else 0.0,
    }
